"""The Standard Workload Format 2.2: `;` lines with facts about the log, then 18 columns; -1 is unknown.

What surprised us: times count from UnixStartTime, which many logs lack; processors are CPUs, and how many of them go
with a GPU is nowhere said; a job that was interrupted has a line for each part (status 2, 3, 4) beside its own. Logs in
the wild have fractions of seconds, waits of -0.0, and jobs in no order.
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

from broker.model.job import Job, JobState
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, latest

_COLUMNS = 18
_START = re.compile(r"^;\s*UnixStartTime\s*:\s*(\d{1,12})", re.MULTILINE | re.IGNORECASE)
_STATES = {0: JobState.FAILED, 1: JobState.DONE, 5: JobState.CANCELLED}
_PARTS = frozenset({2, 3, 4})


class Line(NamedTuple):
    """Seconds, counted from the log's start; None is unknown."""

    id: str
    submit_s: float | None
    wait_s: float | None
    run_s: float | None
    processors: int | None
    limit_s: int | None
    status: int
    user: str | None
    queue: str | None
    partition: str | None
    former: str | None


def suits(head: str) -> str:
    """Why this looks like SWF, "" if it does not."""
    lines = [line for line in head.splitlines()[:500] if line.strip()]
    first = next((line for line in lines if not line.startswith(";")), "")
    if len(first.split()) == _COLUMNS and not any(mark in first for mark in ',{|"='):
        return "it has 18 columns with spaces between, as SWF does"
    return "it begins with ; lines, as SWF does" if lines and lines[0].startswith(";") and not first else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    if not context.procs_per_gpu:
        raise Unreadable(
            "counts processors, not GPUs; say how many go with one GPU (--procs-per-gpu, or procs_per_gpu of "
            "the [[queue]])"
        )
    start = _start(text, context)
    parsed = Parsed()
    if not text.endswith("\n"):
        parsed.damage("the last line has no line end: the log is cut off there")
    jobs = list(_jobs(text, start, context, parsed))
    if not parsed.rows and not jobs:
        raise Unreadable("holds no line of a job: a log is not an empty queue")
    parsed.jobs = latest(jobs, parsed)
    return parsed


def _start(text: str, context: Context) -> datetime:
    if context.epoch:
        return context.epoch
    found = _START.search(text)
    if not found or not int(found[1]):
        raise Unreadable(
            'does not say when it began; set epoch, give --epoch, or put a line "; UnixStartTime: SECONDS" before it'
        )
    try:
        return datetime.fromtimestamp(int(found[1]), UTC)
    except (OverflowError, ValueError, OSError):
        raise Unreadable(f"began at a time that cannot be ({found[1]})") from None


def _jobs(text: str, start: datetime, context: Context, parsed: Parsed) -> Iterator[Job]:
    """Parts of jobs that have a line of their own are merged into that."""
    parts: list[tuple[int, str]] = []
    whole: set[str] = set()
    for number, written in enumerate(text.splitlines(), 1):
        if not written.strip() or written.startswith(";"):
            continue
        try:
            line = _line(written)
            if line.status in _PARTS:
                parts.append((number, line.id))
                continue
            whole.add(line.id)
            yield _job(line, start, context, f"{context.ref}:{number}", parsed)
        except Unfit as unfit:
            parsed.quarantine(f"line {number}", unfit)
    for number, job in parts:
        if job in whole:
            parsed.merged += 1
        else:
            parsed.quarantine(f"line {number}", Unfit("is a part of a job that has no line of its own", job))


def _line(written: str) -> Line:
    """Raises Unfit."""
    cells = written.split()
    if len(cells) != _COLUMNS:
        raise Unfit("has not 18 columns: cut off?", written)
    numbers = [_number(cell) for cell in cells]
    status = numbers[10]
    used, asked = _whole(numbers[4]), _whole(numbers[7])
    return Line(
        id=cells[0],
        submit_s=_known(numbers[1]),
        wait_s=_known(numbers[2]),
        run_s=_known(numbers[3]),
        processors=used or asked,
        limit_s=_whole(numbers[8]),
        status=int(status),
        user=_name(cells[11]),
        queue=_name(cells[14]),
        partition=_name(cells[15]),
        former=_name(cells[16]) if numbers[16] > 0 else None,
    )


def _number(cell: str) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or abs(found) > 1e15:
        raise Unfit("has a column that is not a number", cell)
    return found


def _known(number: float) -> float | None:
    return number if number >= 0 else None


def _whole(number: float) -> int | None:
    return int(number) if number > 0 else None


def _name(cell: str) -> str | None:
    return None if cell.startswith("-") else cell


def _job(line: Line, start: datetime, context: Context, ref: str, parsed: Parsed) -> Job:
    """Raises Unfit."""
    if line.submit_s is None:
        raise Unfit("has no submit time", line.id)
    if not line.processors:
        raise Unfit("has no number of processors", line.id)
    state = _state(line)
    begun, ended = _span(line, parsed)
    return Job(
        id=line.id,
        cluster=context.cluster,
        tenant=line.queue or line.partition or context.fallback_tenant,
        user=line.user,
        queue=line.queue,
        submit=_at(start, line.submit_s),
        start=None if begun is None or state is JobState.PENDING else _at(start, begun),
        end=None if ended is None or state.live else _at(start, ended),
        state=state,
        gpus=ceil(line.processors / context.procs_per_gpu),
        time_limit_s=line.limit_s,
        depends_on=(line.former,) if line.former else (),
        source=context.source,
        raw_ref=ref,
    )


def _state(line: Line) -> JobState:
    """Of a line that does not say how its job ended, a run time says that it did."""
    return _STATES.get(line.status) or (JobState.GONE if line.run_s is not None else JobState.UNKNOWN)


def _span(line: Line, parsed: Parsed) -> tuple[float | None, float | None]:
    """(start, end) in seconds of the log."""
    if line.wait_s is None and line.run_s is not None:
        parsed.note("some jobs' waiting times are not known: they are taken to have started when submitted")
    begun = None if line.wait_s is None and line.run_s is None else (line.submit_s or 0) + (line.wait_s or 0)
    return begun, None if begun is None or line.run_s is None else begun + line.run_s


def _at(start: datetime, seconds: float) -> datetime:
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        raise Unfit("holds a time that cannot be", seconds) from None
