"""How many live jobs each queue held when it was last read, in a small file beside the state.

Overwritten, and nothing is derived from it that could cost money: it only makes the next read doubt a queue that has
suddenly lost nearly all its jobs. Where there is no such file yet nothing is doubted; where it cannot be used, whoever
asks must doubt everything.
"""

from datetime import datetime
from pathlib import Path

import msgspec

from broker import regular
from broker.errors import StateError
from state.whole_file import write_whole


class QueueRead(msgspec.Struct, frozen=True, kw_only=True):
    """`live` jobs were believed to be there. `doubted_as_of`: a read that held far fewer, and is not believed yet."""

    source: str
    live: int
    doubted_as_of: datetime | None = None


_REMOVE = "Remove it: the next run makes it anew"
_DECODE = msgspec.json.Decoder(list[QueueRead])


def recall(state: Path) -> dict[str, QueueRead]:
    """By source; nothing where there is no such file. Raises StateError where there is one that cannot be used."""
    path = _beside(state)
    try:
        return {read.source: read for read in _DECODE.decode(regular.content(path))}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}", next_step=_REMOVE) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise StateError(f"{path} is damaged", next_step=_REMOVE) from None


def recall_or_begin(state: Path) -> dict[str, QueueRead]:
    """For what is about to replace the file: one that cannot be used holds nothing."""
    try:
        return recall(state)
    except StateError:
        return {}


def remember(state: Path, reads: dict[str, QueueRead]) -> None:
    """Raises StateError."""
    path = _beside(state)
    try:
        write_whole(path, msgspec.json.encode(list(reads.values())))
    except OSError as error:
        what = f"cannot write {path}: {error.strerror}"
        raise StateError(what, next_step="Make room and check the folder's mode") from None


def _beside(state: Path) -> Path:
    return state.with_name(f"{state.name}.queues")
