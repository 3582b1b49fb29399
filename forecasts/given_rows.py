"""Rows of a forecast made elsewhere, as its file has them: CSV, JSONL, or Parquet (which needs pyarrow, an extra)."""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from broker import regular
from broker.errors import InputError

NEXT_STEP = "See docs/forecasts.md for the columns"
MAX_BYTES = 512 << 20
"""More than this, unpacked, is no forecast of a few pools and hours."""
Row = tuple[int, dict[str, Any]]
"""The line, or the row of a table, and its columns by name."""


def rows(path: Path) -> Iterator[Row]:
    """Raises InputError where the file cannot be read."""
    if path.suffix == ".parquet":
        return _parquet(path)
    return _text(path)


def may_be_cut(path: Path) -> bool:
    """Whether the last line of a CSV with rows has no end: its last number may have lost digits. Others show it."""
    if path.suffix != ".csv":
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() not in (b"\n", b"\r")


def _text(path: Path) -> Iterator[Row]:
    try:
        regular.require(path)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", next_step="Check the path and its mode") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start})", next_step="Save it as UTF-8") from None
    if path.suffix == ".csv":
        yield from enumerate(csv.DictReader(io.StringIO(text)), start=2)
        return
    for line, part in enumerate(text.splitlines(), start=1):
        if part.strip():
            yield line, _object(path, line, part)


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path}:{line}: {error}", next_step=NEXT_STEP) from None


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        need = "Install it: pip install 'gpu-capacity-broker[parquet]', or give a CSV"
        raise InputError(f"{path} is Parquet, which needs pyarrow", next_step=need) from None
    try:
        regular.require(path)
        with parquet.ParquetFile(path) as file:
            _refuse_size(path, file.metadata)
            table = file.read()
        table = pyarrow.table([_microseconds(column, pyarrow) for column in table.columns], names=table.column_names)
        yield from enumerate(table.to_pylist(), start=1)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        cause = (str(error).splitlines() or ["unreadable"])[0][:120]
        raise InputError(f"{path}: broken Parquet ({cause})", next_step="Write it again, whole") from None


def _refuse_size(path: Path, metadata: Any) -> None:
    unpacked = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    if unpacked > MAX_BYTES:
        raise InputError(f"{path} is larger than {MAX_BYTES >> 20} MiB unpacked", next_step="Forecast fewer hours")


def _microseconds(column: Any, pyarrow: Any) -> Any:
    """Python's time stamps hold no nanoseconds."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column
