"""Parquet in the normal form: a column a field, as in CSV. Needs pyarrow, an extra.

The table is laid out as JSON Lines, announced by a first line, and read as those. Time stamps without a zone stay
without one; in a column that pandas has turned into floats, NaN is nothing.
"""

import base64
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from broker.queues import jsonl_jobs
from broker.queues.parsed import Context, Parsed, TooLarge, Unreadable

MAGIC = b"PAR1"
_ANNOUNCED = '{"meta":{"parquet":true,'
_ENCODE = msgspec.json.Encoder()


def suits(head: str) -> str:
    """Why this looks like Parquet, "" if it does not; `head` is of `lines`."""
    return "it begins with PAR1" if head.startswith(_ANNOUNCED) else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    if not suits(text):
        raise Unreadable("is not Parquet: it does not begin with PAR1")
    return jsonl_jobs.read(text, context)


def lines(raw: bytes, max_bytes: int) -> str:
    """The table as JSON Lines. Raises Unreadable."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise Unreadable("is Parquet, which needs pyarrow: pip install 'gpu-capacity-broker[parquet]'") from None
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(raw))
        _refuse_size(file.metadata, max_bytes)
        announced = f'{_ANNOUNCED}"jobs":{file.metadata.num_rows}}}}}'
        return "\n".join([announced, *_rows(file, pyarrow)]) + "\n"
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise Unreadable(f"is broken Parquet ({str(error).splitlines()[0][:120]}): cut off, or being written") from None


def _refuse_size(metadata: Any, max_bytes: int) -> None:
    unpacked = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    if unpacked > max_bytes:
        raise TooLarge(max_bytes)


def _rows(file: Any, pyarrow: Any) -> Iterator[str]:
    for batch in file.iter_batches(batch_size=10_000):
        columns = [_microseconds(column, pyarrow) for column in batch.columns]
        for row in pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist():
            yield _ENCODE.encode({name: _value(value) for name, value in row.items()}).decode()


def _microseconds(column: Any, pyarrow: Any) -> Any:
    """Python's time stamps hold no nanoseconds."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column


def _value(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str | dict) else str(value)
