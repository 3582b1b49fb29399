"""How many live jobs each queue held when it was last read, in a small file beside the state.

Overwritten, and nothing is derived from it that could cost money: it only makes the next read doubt a queue that has
suddenly lost nearly all its jobs. Without the file nothing is doubted.
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


_DECODE = msgspec.json.Decoder(list[QueueRead])


def recall(state: Path) -> dict[str, QueueRead]:
    """By source; nothing where there is no such file, or it cannot be read."""
    try:
        return {read.source: read for read in _DECODE.decode(regular.content(_beside(state)))}
    except (OSError, msgspec.DecodeError):
        return {}


def remember(state: Path, reads: dict[str, QueueRead]) -> None:
    """Raises StateError."""
    path = _beside(state)
    try:
        write_whole(path, msgspec.json.encode(list(reads.values())))
    except OSError as error:
        what = f"cannot write {path}: {error.strerror}"
        raise StateError(what, next_step="Make room and check the folder's mode; nothing was done") from None


def _beside(state: Path) -> Path:
    return state.with_name(f"{state.name}.queues")
