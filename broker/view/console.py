"""Where answers, remarks and errors go: stdout is the answer, stderr everything else."""

import os
import sys
import traceback

from broker.errors import BrokerError, ConfigError, Exit, joined
from broker.view.document import document
from broker.view.text import Paint, plain

_NOISE = "Value error, "
"""What the library of the flags puts before its reasons."""
_CODES = {"green": "32", "yellow": "33", "red": "31", "bold": "1"}


class Console:
    """How loudly and in which form a command speaks; `json` keeps stdout to documents only."""

    def __init__(self, *, json: bool = False, quiet: bool = False, verbosity: int = 0, colour: bool = True) -> None:
        self.json = json
        self.quiet = quiet
        self.verbosity = verbosity
        self.colour = colour

    @property
    def verbose(self) -> bool:
        return self.verbosity > 0

    @property
    def paint(self) -> Paint:
        """For text on stdout: colour only on a terminal, and never with NO_COLOR."""
        wanted = self.colour and not self.json and "NO_COLOR" not in os.environ
        return _ansi if wanted and sys.stdout.isatty() else plain

    def answer(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """For the person watching; left out with `-q`."""
        if not self.quiet:
            self._err(text)

    def insist(self, text: str) -> None:
        """For whoever must know it, also with `-q`: why something was not done, or what is being asked."""
        self._err(text)

    def detail(self, text: str) -> None:
        if self.verbose:
            self._err(text)

    def error(self, error: BrokerError) -> None:
        """One line with what, where and what to do next; further mistakes of a configuration a line each."""
        self._err(f"broker: {error}")
        problems = error.problems if isinstance(error, ConfigError) else ()
        for problem in problems:
            self._err(f"  {problem}")
        if self.verbosity > 1:
            self._err("".join(traceback.format_exception(error)).rstrip())
        if self.json:
            self.answer(_error_document(error.what, error.next_step, problems, error.exit))

    def usage(self, text: str, hint: str) -> None:
        self._err(f"broker: {joined(text.replace(_NOISE, ''), hint)}")
        if self.json:
            self.answer(_error_document(text, hint, (), Exit.ERROR))

    def crash(self, error: Exception) -> None:
        """What we did not foresee: still one line; the traceback is there for who asks."""
        what = f"internal error: {type(error).__name__}: {error}".replace("\n", " ")
        next_step = "Run again with -vv for the traceback and report it; what was bought: broker status"
        self._err(f"broker: {joined(what, next_step)}")
        if self.verbosity > 1:
            self._err("".join(traceback.format_exception(error)).rstrip())
        if self.json:
            self.answer(_error_document(what, next_step, (), Exit.ERROR))

    def _err(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _error_document(what: str, next_step: str, problems: tuple[str, ...], code: int) -> str:
    fields = {"what": what, "next_step": next_step, "problems": problems, "exit_code": int(code)}
    return document("error", fields)


def _ansi(text: str, colour: str) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colour in _CODES else text
