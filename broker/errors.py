"""Errors named by cause. A leaf: imports nothing of ours, everybody may import it.

Each says what happened, to what, and what to do next; the class holds the exit code. Nothing else is ever shown to
a user as an error, and none of these is shown with a traceback.
"""

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    ERROR = 1
    CHANGES_PROPOSED = 2
    PARTLY_DONE = 3
    LOCKED = 4
    REFUSED = 5
    INTERRUPTED = 130


class BrokerError(Exception):
    """`what` happened, to `what`; `next_step` is what the user does about it."""

    exit: ClassVar[Exit] = Exit.ERROR

    def __init__(self, what: str, *, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.what}. {self.next_step}" if self.next_step else self.what


class UsageError(BrokerError):
    """The command line is wrong: a flag, an argument, an id that does not exist."""


class ConfigError(BrokerError):
    """The configuration is wrong; every mistake is reported at once in `problems`, one line each."""

    def __init__(self, what: str, *, next_step: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(what, next_step=next_step)
        self.problems = problems


class InputError(BrokerError):
    """A queue, history, price or plan file cannot be used."""


class StateError(BrokerError):
    """The state is missing, damaged, read-only, of a newer version, or of another lineage."""


class PlanError(BrokerError):
    """A saved plan was edited, cut off, or is not a plan."""


class StalePlanError(BrokerError):
    """A saved plan no longer fits the world or this state."""

    exit = Exit.REFUSED


class GuardError(BrokerError):
    """Nothing was done because guards refused all of it."""

    exit = Exit.REFUSED


class LockedError(BrokerError):
    """Another run holds the lock."""

    exit = Exit.LOCKED
