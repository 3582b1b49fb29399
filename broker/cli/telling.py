"""Events of a run as they happen. Money is at stake: nobody reading on is no reason to stop half-way."""

import sys
from typing import TYPE_CHECKING

from broker.errors import Exit, FileError

if TYPE_CHECKING:
    from broker.commands.events import Event
    from broker.view.console import Console


class Telling:
    """To stdout; with `-q` on stderr too why something was not done, for stdout may go where nobody looks."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._lost: OSError | None = None

    def __call__(self, event: "Event") -> None:
        from broker.view.events import event_json, event_text, reason

        text = event_json(event) if self._console.json else event_text(event, self._console.paint)
        if text:
            self._answer(text)
        if self._console.quiet and (why := reason(event)):
            self._console.insist(f"broker: {why}")

    def ended(self, code: Exit) -> Exit:
        """What was done is in the state all the same; that it could not be told is said once, and is not well."""
        if self._lost is None:
            return code
        sys.stdout = None
        if isinstance(self._lost, BrokenPipeError):
            return code
        self._console.insist(f"broker: {FileError.of(self._lost)}")
        return code if code is not Exit.OK else Exit.PARTLY_DONE

    def _answer(self, text: str) -> None:
        if self._lost is not None:
            return
        try:
            self._console.answer(text)
        except OSError as error:
            self._lost = error
