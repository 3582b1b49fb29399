"""Errors named by cause. A leaf: imports nothing of ours, everybody may import it.

Each says what happened, to what, and what to do next; the class holds the exit code. Nothing else is ever shown to
a user as an error, and none of these is shown with a traceback.
"""

import errno
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
    """`what` happened, to `what`; `next_step` is what the user does about it, a sentence of its own behind it."""

    exit: ClassVar[Exit] = Exit.ERROR

    def __init__(self, what: str, *, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = as_sentence(next_step)

    def __str__(self) -> str:
        return joined(self.what, self.next_step)


def as_sentence(hint: str) -> str:
    """It follows a full stop, so it begins with a capital, unless with a command or a flag."""
    first = hint.split(maxsplit=1)[0] if hint.strip() else ""
    plain = first.rstrip(",:;").isalpha() and first != "broker"
    return hint[0].upper() + hint[1:] if plain else hint


def joined(what: str, hint: str) -> str:
    """Both on one line, whatever a library's message looked like."""
    stop = "" if what.rstrip().endswith(("?", "!")) else "."
    sentences = f"{what.rstrip('. ')}{stop} {hint}" if hint else what
    return " ".join(sentences.split())


class UsageError(BrokerError):
    """The command line is wrong: a flag, an argument, an id that does not exist."""


class ConfigError(BrokerError):
    """The configuration is wrong; every mistake is reported at once in `problems`, one line each."""

    def __init__(self, what: str, *, next_step: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(what, next_step=next_step)
        self.problems = problems


class InputError(BrokerError):
    """A queue, history, price or plan file cannot be used."""


class FileError(BrokerError):
    """A file or folder that the broker needs cannot be read or written."""

    @classmethod
    def of(cls, error: OSError) -> "FileError":
        """For what no other code foresaw: the system's own word, and what usually helps."""
        where = f"use {error.filename}" if error.filename is not None else "write"
        why = error.strerror or type(error).__name__
        return cls(f"cannot {where}: {why}", next_step=_REMEDIES.get(error.errno or 0, _CHECK))


def about_a_file(error: OSError) -> bool:
    """Rather than about a connection, which has no name and other numbers."""
    return error.filename is not None or error.errno in _DISK


_ROOM = "Free some space and run again; what was bought: broker status"
_CHECK = "Check the path and its mode"
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO})
_REMEDIES = {errno.ENOSPC: _ROOM, errno.EDQUOT: _ROOM, errno.EIO: "Check the disk; what was bought: broker status"}


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
