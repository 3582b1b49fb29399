"""A small file written whole or not at all, for its owner's eyes: the old one stays until then."""

import os
from collections.abc import Callable
from pathlib import Path

from broker import regular

_MODE = 0o600


def holds_else(path: Path, ours: Callable[[bytes], bool], most: int = 32) -> bool:
    """Whether a file is there already that begins as `ours` never does: a mistyped name must not cost it.

    An empty file is nobody's. Raises OSError.
    """
    regular.require(path)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begun = file.read(most)
    return bool(begun) and not ours(begun)


def write_whole(path: Path, content: bytes) -> None:
    """Replaces the file, on disk when it returns. Raises OSError, and leaves nothing behind then.

    Not what only looks like a file: who names `/dev/null` does not want it gone.
    """
    regular.require(path)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, _MODE), "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
