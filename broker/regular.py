"""Files are files: a named pipe, a device or a terminal in the place of one would keep a command waiting for ever."""

import errno
import os
import stat
from pathlib import Path

_TURNED_AWAY = (stat.S_ISFIFO, stat.S_ISCHR, stat.S_ISBLK, stat.S_ISSOCK)


def content(path: Path) -> bytes:
    """All of it. Raises OSError, also where it is no regular file."""
    require(path)
    return path.read_bytes()


def require(path: Path) -> None:
    """Raises OSError where something is there that only looks like a file; what is missing is for others to say."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if any(kind(mode) for kind in _TURNED_AWAY):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", os.fspath(path))
