"""Trace files -> Trace: seconds in columns, and every format of job queues (SWF, Helios, Philly, our CSV, ...)."""

import csv
import io
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from broker import regular
from broker.backtest.trace import Rows, Trace, build
from broker.config import values
from broker.errors import InputError, UsageError
from broker.model.job import Job
from broker.queues import encoding, registry
from broker.queues.normal import NO, YES
from broker.queues.parsed import Context, Unreadable
from broker.queues.registry import FORMATS, detect

COLUMNS = "columns"
"""job_id, tenant, user, submit_s, duration_s, gpus: seconds from any zero, one job a line."""

NAN = float("nan")
_MOST_BYTES = 4 << 30
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_REQUIRED = ("submit_s", "duration_s", "gpus")
_MS_FROM = 1e11  # an epoch in seconds reaches this in the year 5138; smaller numbers of milliseconds end in 1973


def read_trace(path: Path, format: str = "auto", timezone: str = "UTC") -> Trace:
    """`format` is one of `formats()` or "auto", which looks at the content; `timezone` is that of times without one.

    Raises InputError, with one line.
    """
    zone = _zone(timezone)
    text = _text(path)
    name = _guess(text, path) if format == "auto" else format
    if name not in formats():
        raise InputError(f"unknown trace format {name!r}", next_step=f"Use one of {', '.join(formats())}")
    if name == COLUMNS:
        return build(read_columns(text, str(path)), str(path))
    return build(read_jobs(text, name, path, zone), str(path))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(values.timezone(name))
    except values.Wrong as wrong:
        raise UsageError(f"--tz {wrong}", next_step="See: broker backtest --help") from None


def formats() -> tuple[str, ...]:
    """The names of all that can be read."""
    return (COLUMNS, *FORMATS)


def _text(path: Path) -> str:
    try:
        return encoding.text(regular.content(path), _MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", next_step="Give a readable file") from error
    except Unreadable as why:
        raise _refused(path, why) from None


def _refused(path: Path, why: Unreadable) -> InputError:
    return InputError(f"{path} {why}", next_step=f"Formats that are read: {', '.join(formats())}")


def _guess(text: str, path: Path) -> str:
    header = text.lstrip()[:2000].partition("\n")[0].lower()
    if "submit_s" in header.split(","):
        return COLUMNS
    try:
        return detect(text).name
    except Unreadable as why:
        raise _refused(path, why) from None


def _records(text: str, required: tuple[str, ...], source: str) -> Iterator[dict[str, str | None]]:
    """Rows of a CSV with a header, keys lower-cased."""
    reader = csv.DictReader(io.StringIO(text))
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    missing = [name for name in required if name not in reader.fieldnames]
    if missing:
        raise InputError(
            f"{source} has no column {', '.join(missing)}", next_step=f"It has {', '.join(reader.fieldnames)}"
        )
    for record in reader:
        yield {key: value for key, value in record.items() if key is not None}


def _whole(records: list[dict[str, str | None]], text: str, notes: Counter[str]) -> list[dict[str, str]]:
    """A last line without an end may have been cut off: left out where columns are missing, else said."""
    if records and not text.endswith("\n"):
        cut = None in records[-1].values()
        notes["left out: the last line is cut off" if cut else "kept: the last line has no end, it may be cut off"] += 1
        records = records[:-1] if cut else records
    return [{key: value or "" for key, value in record.items()} for record in records]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return NAN


def read_columns(text: str, source: str) -> Rows:
    """Columns job_id, tenant, user, submit_s, duration_s, gpus; wait_s, reclaim_s and preemptible when known."""
    rows = Rows()
    records = _whole(list(_records(text, _REQUIRED, source)), text, rows.notes)
    submits = [_number(record["submit_s"]) for record in records]
    scale = _scale(submits, rows.notes)
    for record, submit in zip(records, submits, strict=True):
        rows.add(
            id=record.get("job_id", ""),
            tenant=record.get("tenant", ""),
            user=record.get("user", ""),
            submit_s=submit * scale,
            duration_s=_number(record["duration_s"]) * scale,
            gpus=_number(record["gpus"]),
            wait_s=_number(record.get("wait_s", "")) * scale,
            reclaim_s=_number(record.get("reclaim_s", "")) * scale,
            preemptible=_flag(record.get("preemptible", ""), rows.notes),
        )
    return rows


def _flag(value: str, notes: Counter[str]) -> float:
    """1, 0, or NaN where nothing is said."""
    word = value.strip().lower()
    if word and word not in YES | NO:
        notes["preemptible is neither yes nor no: taken as not said"] += 1
    return 1.0 if word in YES else 0.0 if word in NO else NAN


def _scale(submits: list[float], notes: Counter[str]) -> float:
    known = [value for value in submits if math.isfinite(value)]
    large = sum(value >= _MS_FROM for value in known)
    if not large:
        return 1.0
    if large < len(known):
        raise InputError("submit times mix seconds and milliseconds", next_step="Convert them to seconds")
    notes["times read as milliseconds"] += large
    return 1e-3


def read_jobs(text: str, format: str, path: Path, zone: ZoneInfo) -> Rows:
    """A queue's format, read as queues are. Attempts of one job ran one after the other: their times add up.

    Processors are taken as GPUs. Only differences of times matter here, which a zone changes where clocks are.
    """
    context = Context(str(path), zone=zone, procs_per_gpu=1, epoch=_ZERO if format == "swf" else None)
    try:
        parsed = registry.read(format, text, context)
    except Unreadable as why:
        raise _refused(path, why) from None
    rows = _rows(parsed.jobs)
    rows.notes += Counter({f"left out: {reason}": count for reason, count in parsed.dropped.items()})
    rows.notes += Counter({f"left out: {reason}": count for reason, count in parsed.quarantined.items()})
    return rows if format == "swf" else _from_midnight(rows)


def from_jobs(jobs: Iterable[Job], source: str) -> Trace:
    """Jobs that are known already. Raises InputError where none of them can be replayed."""
    return build(_from_midnight(_rows(jobs)), source)


def _rows(jobs: Iterable[Job]) -> Rows:
    """Where no job says that it can be called back, nothing is taken to be said of any."""
    rows, found = Rows(), list(_by_job(jobs))
    said = any(job.preemptible for attempts in found for job in attempts)
    for attempts in found:
        rows.add(**_row(attempts), preemptible=float(any(job.preemptible for job in attempts)) if said else NAN)
    return rows


def _by_job(jobs: Iterable[Job]) -> Iterable[list[Job]]:
    found: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.cluster, job.id), []).append(job)
    return found.values()


def _row(attempts: list[Job]) -> dict[str, Any]:
    first = attempts[0]
    submit = min(job.submit for job in attempts)
    starts = [job.start for job in attempts if job.start]
    return {
        "id": first.id,
        "tenant": first.tenant,
        "user": first.user or "",
        "submit_s": (submit - _ZERO).total_seconds(),
        "duration_s": sum(_duration_s(job) for job in attempts),
        "gpus": max(job.gpus for job in attempts),
        "wait_s": (min(starts) - submit).total_seconds() if starts else NAN,
    }


def _duration_s(job: Job) -> float:
    return (job.end - job.start).total_seconds() if job.start and job.end else NAN


def _from_midnight(rows: Rows) -> Rows:
    """Count from the first day's midnight, so that `submit_s % 86400` stays the time of day."""
    if rows.submit_s:
        zero = min(rows.submit_s) // 86400 * 86400
        rows.submit_s = array("d", (value - zero for value in rows.submit_s))
    return rows
