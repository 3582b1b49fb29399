"""A small file written whole or not at all, for its owner's eyes: the old one stays until then."""

import os
from pathlib import Path

_MODE = 0o600


def write_whole(path: Path, content: bytes) -> None:
    """Replaces the file, on disk when it returns. Raises OSError, and leaves nothing behind then."""
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
