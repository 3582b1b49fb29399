"""Asking before money moves: only "yes" confirms, and nothing is asked where nobody can answer."""

import sys

from broker.errors import UsageError
from broker.view.console import Console


class Asking:
    """`interactive` is whether a person is at the keyboard and the answer is not a document."""

    def __init__(self, console: Console, *, yes: bool, interactive: bool) -> None:
        self._console = console
        self._yes = yes
        self._interactive = interactive

    def possible(self) -> None:
        """Before the clouds are looked at. Raises UsageError where the answer could not be had."""
        if not self._yes and not self._interactive:
            raise UsageError("nothing was done: nobody is here to confirm", next_step="Give --yes to go ahead")

    def confirmed(self, text: str, question: str) -> bool:
        """Show `text`, then ask; without a terminal on stdout the text goes to stderr all the same.

        Whoever is asked sees what about, also with `-q`. Raises UsageError where the answer could not be had.
        """
        if self._yes:
            self._console.remark(text)
            return True
        self.possible()
        self._console.insist(text)
        sys.stderr.write(f'{question} Only "yes" goes ahead: ')
        sys.stderr.flush()
        return sys.stdin.readline().strip() == "yes"
