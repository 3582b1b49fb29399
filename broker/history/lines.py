"""A history file as lines, in bounded memory: plain or gzip, UTF-8 or UTF-16 with a mark."""

import codecs
import gzip
import hashlib
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from broker.queues.parsed import Unreadable

_BLOCK = 1 << 20
_HEAD = 1 << 16
_LONGEST = 16 << 20
_GZIP = b"\x1f\x8b"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Mark = tuple[int, int, int]


def mark(path: Path) -> Mark:
    """Changes when the file does. Raises Unreadable."""
    with _plainly():
        found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable("is not a regular file")
    return found.st_ino, found.st_size, found.st_mtime_ns


def head(path: Path) -> str:
    """The first lines, for telling the format. Raises Unreadable."""
    return next(_texts(path))[:_HEAD]


def digest(path: Path, options: str) -> str:
    """Of the content as it lies there, and of the options that it is read with. Raises Unreadable."""
    summed = hashlib.sha256(options.encode())
    with _plainly(), path.open("rb") as file:
        while block := file.read(_BLOCK):
            summed.update(block)
    return summed.hexdigest()


def check(path: Path) -> None:
    """Raises Unreadable for what makes the whole file no history: to be seen before any row of it is taken."""
    left = 0
    for text in _texts(path):
        first, last = text.find("\n"), text.rfind("\n")
        if left + (len(text) if first < 0 else first) > _LONGEST:
            raise _too_long()
        left = left + len(text) if last < 0 else len(text) - last - 1


def batches(path: Path) -> Iterator[list[str]]:
    """Whole lines without their ends, about a megabyte at a time; at last what follows the last line end, mostly "".

    Raises Unreadable.
    """
    left = ""
    for text in _texts(path):
        lines = (left + text).split("\n")
        left = lines.pop()
        if len(left) > _LONGEST:
            raise _too_long()
        if lines:
            yield lines
    yield [left]


def _too_long() -> Unreadable:
    return Unreadable(f"has a line of more than {_LONGEST >> 20} MiB: it is no history")


def _texts(path: Path) -> Iterator[str]:
    with _plainly(), _opened(path) as file:
        start = file.read(_BLOCK)
        if not start.strip():
            raise Unreadable("is empty")
        decoder = codecs.getincrementaldecoder("utf-16" if start.startswith(_WIDE) else "utf-8-sig")()
        while start:
            yield _checked(decoder.decode(start))
            start = file.read(_BLOCK)
        yield _checked(decoder.decode(b"", final=True))


def _checked(text: str) -> str:
    if "\0" in text:
        raise Unreadable("holds NUL bytes: it is not text, or was not written to its end")
    return text


def _opened(path: Path) -> BinaryIO | gzip.GzipFile:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path) if packed else path.open("rb")


@contextmanager
def _plainly() -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Unreadable(f"is broken gzip ({error}): cut off, or still being written") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not {error.encoding.upper()}; save it as UTF-8") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}; check the path and its mode") from None
