"""Trace files -> Trace: our own columns, Helios, Philly's JSON and the Standard Workload Format, plain or gzipped."""

import csv
import gzip
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from broker.backtest.trace import Rows, Trace, build
from broker.errors import InputError

NAN = float("nan")
_REQUIRED = ("submit_s", "duration_s", "gpus")
_MS_FROM = 1e11  # an epoch in seconds reaches this in the year 5138; smaller numbers of milliseconds end in 1973


def read_trace(path: Path, format: str = "auto") -> Trace:
    """`format` is one of FORMATS or "auto", which looks at the content. InputError says what is wrong in one line."""
    text = _text(path)
    name = _guess(text) if format == "auto" else format
    if name not in FORMATS:
        raise InputError(f"unknown trace format {name!r}", next_step=f"Use one of {', '.join(FORMATS)}")
    return build(FORMATS[name](text, str(path)), str(path))


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", next_step="Give a readable text or gzip file") from error


def _guess(text: str) -> str:
    head = text.lstrip()[:2000]
    first = head.splitlines()[0] if head else ""
    if first.startswith("["):
        return "philly"
    if first.startswith(";") or (first and "," not in first and len(first.split()) >= 18):
        return "swf"
    return "helios" if "gpu_num" in first else "columns"


def _records(text: str, required: tuple[str, ...], source: str) -> Iterator[dict[str, str]]:
    """Rows of a CSV with a header, keys lower-cased; a last line that is cut off is left out by the caller's checks."""
    reader = csv.DictReader(io.StringIO(text))
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    missing = [name for name in required if name not in reader.fieldnames]
    if missing:
        raise InputError(f"{source} has no column {', '.join(missing)}", next_step=f"It has {reader.fieldnames}")
    for record in reader:
        yield {key: value or "" for key, value in record.items() if key is not None}


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return NAN


def read_columns(text: str, source: str) -> Rows:
    """Columns job_id, tenant, user, submit_s, duration_s, gpus; wait_s when known."""
    rows = Rows()
    records = list(_records(text, _REQUIRED, source))
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
            wait_s=_number(record.get("wait_s", "")),
        )
    return rows


def _scale(submits: list[float], notes: Counter[str]) -> float:
    known = [value for value in submits if math.isfinite(value)]
    large = sum(value >= _MS_FROM for value in known)
    if not large:
        return 1.0
    if large < len(known):
        raise InputError("submit times mix seconds and milliseconds", next_step="Convert them to seconds")
    notes["times read as milliseconds"] += large
    return 1e-3


def read_helios(text: str, source: str) -> Rows:
    """SenseTime Helios `cluster_log.csv`; rows with gpu_num 0 are CPU jobs. Local times without zone, read as UTC."""
    rows = Rows()
    for record in _records(text, ("gpu_num", "submit_time", "duration"), source):
        rows.add(
            id=record.get("job_id", ""),
            tenant=record.get("vc", ""),
            user=record.get("user", ""),
            submit_s=_time(record["submit_time"]),
            duration_s=_number(record["duration"]),
            gpus=_number(record["gpu_num"]),
            wait_s=_number(record.get("queue", "")),
        )
    return _from_midnight(rows)


def _time(value: str | None) -> float:
    try:
        moment = datetime.fromisoformat((value or "").strip())
    except ValueError:
        return NAN
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _from_midnight(rows: Rows) -> Rows:
    """Count from the first day's midnight, so that `submit_s % 86400` stays the time of day."""
    if rows.submit_s:
        zero = min(rows.submit_s) // 86400 * 86400
        rows.submit_s = [value - zero for value in rows.submit_s]
    return rows


def read_philly(text: str, source: str) -> Rows:
    """Microsoft Philly `cluster_job_log`: attempts run one after the other; their times add up (retries multiply)."""
    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{source} is not complete JSON: {error}", next_step="Fetch the file again") from error
    rows = Rows()
    for record in records:
        submit = _time(record.get("submitted_time"))
        attempts = record.get("attempts") or []
        starts = [_time(attempt.get("start_time")) for attempt in attempts]
        ends = [_time(attempt.get("end_time")) for attempt in attempts]
        rows.add(
            id=str(record.get("jobid", "")),
            tenant=str(record.get("vc", "")),
            user=str(record.get("user") or ""),
            submit_s=submit,
            duration_s=sum((end - start for start, end in zip(starts, ends, strict=True)), 0.0) if attempts else NAN,
            gpus=max((_philly_gpus(attempt) for attempt in attempts), default=0),
            wait_s=starts[0] - submit if starts else NAN,
        )
    return _from_midnight(rows)


def _philly_gpus(attempt: dict[str, Any]) -> int:
    return sum(len(place.get("gpus", ())) for place in attempt.get("detail", ()))


def read_swf(text: str, source: str) -> Rows:
    """Standard Workload Format: processors are read as GPUs, the queue number (or partition) as the tenant."""
    rows = Rows()
    if not text.strip():
        raise InputError(f"{source} is empty", next_step="Give a workload log")
    for line in text.splitlines():
        fields = line.split()
        if not fields or line.startswith(";"):
            continue
        if len(fields) < 18:
            rows.notes["left out: cut line"] += 1
            continue
        number = [_number(value) for value in fields]
        rows.add(
            id=fields[0],
            tenant=fields[14] if number[14] >= 0 else fields[15],
            user=fields[11],
            submit_s=number[1],
            duration_s=number[3] if number[3] >= 0 else NAN,
            gpus=number[4] if number[4] > 0 else number[7],
            wait_s=number[2],
        )
    return rows


FORMATS: dict[str, Callable[[str, str], Rows]] = {
    "columns": read_columns,
    "helios": read_helios,
    "philly": read_philly,
    "swf": read_swf,
}
