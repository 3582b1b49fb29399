"""Bytes of a queue -> text: gzip, byte order marks, Parquet as JSON Lines, and refusal of what is not text."""

import codecs
import gzip
import io
import zlib

from broker.queues import parquet_jobs
from broker.queues.parsed import TooLarge, Unreadable

_GZIP = b"\x1f\x8b"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text(raw: bytes, max_bytes: int) -> str:
    """Raises Unreadable."""
    plain = _unpacked(raw, max_bytes) if raw.startswith(_GZIP) else raw
    if plain.startswith(parquet_jobs.MAGIC):
        return parquet_jobs.lines(plain, max_bytes)
    encoding = "utf-16" if plain.startswith(_WIDE) else "utf-8-sig"
    try:
        found = plain.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not {error.encoding.upper()} (byte {error.start}); save it as UTF-8") from None
    if "\0" in found:
        raise Unreadable("holds NUL bytes: it is not text, or was not written to its end")
    if not found.strip():
        raise Unreadable("is empty: not even an empty queue looks like that")
    return found


def _unpacked(raw: bytes, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            plain = packed.read(max_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise Unreadable(f"is broken gzip ({error}): cut off, or still being written") from None
    if len(plain) > max_bytes:
        raise TooLarge(max_bytes)
    return plain
