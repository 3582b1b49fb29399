"""The history as a table: CSV that reads back as the same jobs, or Parquet. Written whole, or not at all."""

import csv
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

from broker.errors import InputError, UsageError
from broker.extras import require
from broker.model.job import Job
from broker.queues.csv_jobs import cell
from broker.queues.normal import FIELDS, flat

Write = Callable[[IO[bytes], Iterable[Job]], int]
_ROWS = 20_000
_TIMES = frozenset({"submit", "requeued", "eligible", "start", "end", "not_before", "deadline"})
_WHOLE = frozenset({"attempt", "gpus", "min_gpus", "max_gpus", "gpus_per_node", "nodes", "time_limit_s", "time_min_s",
                    "priority"})  # fmt: skip
_LISTS = frozenset({"depends_on", "node_names"})
_FLAGS = frozenset({"gang", "preemptible"})


def writer(form: str) -> Write:
    """Raises UsageError."""
    if form == "csv":
        return as_csv
    if form == "parquet":
        require("Parquet needs", ("pyarrow",), "parquet", instead="use --to csv")
        return as_parquet
    raise UsageError(f"--to {form} is no form of export", next_step="Use csv or parquet")


def to_file(target: Path, write: Write, jobs: Iterable[Job]) -> int:
    """How many rows. A file that was there is replaced only by a whole one. Raises InputError."""
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
            try:
                count = write(file, jobs)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}", next_step="Check the directory and the disk"
        ) from None
    return count


def as_csv(file: IO[bytes], jobs: Iterable[Job]) -> int:
    rows = csv.writer(_Encoded(file), lineterminator="\n")
    rows.writerow(FIELDS)
    count = 0
    for job in jobs:
        record = flat(job)
        rows.writerow([cell(record.get(name)) for name in FIELDS])
        count += 1
    return count


def as_parquet(file: IO[bytes], jobs: Iterable[Job]) -> int:
    """Times as UTC time stamps in microseconds."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, _type(name, pa)) for name in FIELDS])
    count = 0
    with parquet.ParquetWriter(file, schema) as out:
        records = map(_record, jobs)
        while some := list(islice(records, _ROWS)):
            out.write_table(pa.Table.from_pylist(some, schema=schema))
            count += len(some)
    return count


def _record(job: Job) -> Mapping[str, Any]:
    return {name: _plain(getattr(job, "gpu_model" if name == "gpu_type" else name)) for name in FIELDS}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _type(name: str, pa: Any) -> Any:
    if name in _TIMES:
        return pa.timestamp("us", tz="UTC")
    if name in _LISTS:
        return pa.list_(pa.string())
    return pa.int64() if name in _WHOLE else pa.bool_() if name in _FLAGS else pa.string()


class _Encoded:
    """What `csv` writes to."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())
