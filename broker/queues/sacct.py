"""`sacct --parsable2`: one line a job or attempt, columns by header.

Ask with `sacct -aXPD -S now-7days --format=JobIDRaw,JobID,Cluster,User,Account,Partition,Submit,Eligible,Start,End,
State,Reason,TimelimitRaw,ReqTRES,AllocTRES,NNodes,Priority`, best with SLURM_TIME_FORMAT=%s. Steps are dropped; every
requeue is an attempt; SUBMIT of a later attempt is reset by Slurm, so all attempts get the first one. Since 26.05 SLUID
and OriginalSLUID may be asked for: a requeue renews both, a resize only the first, so the second names an attempt.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from broker.model.job import Job, JobState
from broker.queues import words
from broker.queues.arrays import waiting
from broker.queues.hostlist import names
from broker.queues.parsed import MOST_DIGITS, Context, Parsed, Unfit, Unreadable, Unwanted
from broker.queues.slurm_links import linked
from broker.queues.slurm_record import HELD_REASONS, Draft, note_limit
from broker.queues.times import NOT_KNOWN, limit_minutes, moment, span
from broker.queues.tres import Gpus, gpus, kind_in

_NEEDED = ("submit", "state")
_STEP = re.compile(r"\d+(?:_\d+|\+\d+)?\.\w+", re.ASCII)
_ID = re.compile(r"(?P<job>\d+)(?:_(?P<task>\d+)|_\[(?P<tasks>[^\]]*)\]|\+(?P<part>\d{1,9}))?")
_STARTED = frozenset({JobState.RUNNING, JobState.SUSPENDED})

Row = Mapping[str, str]


def suits(head: str) -> str:
    """Why this looks like `sacct --parsable2`, "" if it does not."""
    columns = head.partition("\n")[0].strip().lower().split("|")
    return "its first line names JobID and State with bars between" if (
        len(columns) > 2 and "state" in columns and {"jobid", "jobidraw"}.intersection(columns)
    ) else ""  # fmt: skip


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    lines = text.replace("\r\n", "\n").lstrip("\n").split("\n")
    names = columns(lines[0], cut=len(lines) == 1)
    parsed = Parsed()
    if lines[-1]:
        parsed.damage("the last line has no line end: the output is cut off there")
    drafts = list(_drafts(lines[1:], names, context, parsed))
    parsed.jobs = attempts(linked(drafts, parsed), parsed)
    return parsed


def columns(header: str, *, cut: bool) -> list[str]:
    """Lower-case names; `-p` adds an empty last one. `cut`: nothing follows the header. Raises Unreadable."""
    found = header.strip().lower().split("|")
    if not {"jobid", "jobidraw"}.intersection(found):
        raise Unreadable("has no header with JobID; leave out -n and use --parsable2")
    missing = [name for name in _NEEDED if name not in found]
    if missing or not {"reqtres", "alloctres"}.intersection(found):
        lacking = ", ".join(missing or ["ReqTRES or AllocTRES"])
        raise Unreadable(f"its header lacks {lacking}; name the columns with --format")
    if cut:
        raise Unreadable("ends within its header line: it is cut off, or still being written")
    return found


class Named(NamedTuple):
    """What a row's JobID says. `id` is of the job, or of the task of an array; `part` of a heterogeneous job."""

    job: str
    id: str
    task: str | None
    tasks: str | None
    part: int | None


def named(written: str) -> Named:
    """Raises Unfit, and Unwanted for a step."""
    if _STEP.fullmatch(written):
        raise Unwanted("is a step of a job")
    match = _ID.fullmatch(written)
    if not match:
        raise Unfit("has a job id that cannot be understood", written)
    job, task, part = match["job"], match["task"], match["part"]
    return Named(job, f"{job}_{task}" if task else job, task, match["tasks"], None if part is None else int(part))


def _drafts(lines: list[str], columns: list[str], context: Context, parsed: Parsed) -> Iterator[Draft]:
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            yield _row_draft(_row(line, columns), context, f"{context.ref}:{number}", parsed)
        except Unfit as unfit:
            parsed.quarantine(f"row {number}", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)


def _row(line: str, columns: list[str]) -> Row:
    cells = line.split("|")
    if len(cells) != len(columns):
        raise Unfit("has not the columns of the header; leave JobName, SubmitLine and Comment out", line)
    return {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}


def _row_draft(row: Row, context: Context, ref: str, parsed: Parsed) -> Draft:
    """A row for an array that waits stands for all its tasks."""
    if _STEP.fullmatch(row.get("jobidraw", "")):
        raise Unwanted("is a step of a job")
    which = named(row.get("jobid") or row.get("jobidraw", ""))
    job = _job(row, context, which.job, ref)
    tasks = waiting(which.tasks, parsed) if which.tasks else None
    note_limit(row.get("reason", ""), job.state, parsed, len(tasks.ids) if tasks else 1)
    if tasks:
        return Draft(job, array=which.job, tasks=tasks.ids, at_once=tasks.at_once)
    het = which.job if which.part is not None else ""
    return Draft(msgspec.structs.replace(job, id=which.id), array=which.job if which.task else "", het=het)


def _job(row: Row, context: Context, identity: str, ref: str) -> Job:
    state = _state(row)
    wanted = _gpus(row, state)
    submit, start, end = (_time(row, name, context) for name in ("submit", "start", "end"))
    if submit is None:
        raise Unfit("has no Submit time", identity)
    if start and end and end < start and not state.live:
        raise Unfit("ends before it starts", identity)
    nodes = _count(row, "nnodes")
    eligible = _time(row, "eligible", context)
    return Job(
        id=identity,
        cluster=row.get("cluster") or context.cluster,
        tenant=row.get("account") or context.fallback_tenant,
        user=row.get("user") or None,
        name=row.get("jobname") or None,
        queue=row.get("partition", "").split(",")[0] or None,
        submit=submit,
        eligible=eligible,
        start=start if state in _STARTED or not state.live else None,
        end=None if state.live else end,
        state=state,
        gpus=wanted.count,
        gpu_model=wanted.kind or kind_in(row.get("constraints")),
        gpus_per_node=wanted.count // nodes if nodes and wanted.count % nodes == 0 else None,
        nodes=nodes or None,
        time_limit_s=_limit(row),
        priority=_count(row, "priority") or 0,
        not_before=eligible if row.get("reason") == "BeginTime" else None,
        node_names=names(row.get("nodelist")) if state in _STARTED else (),
        constraint=row.get("constraints") or None,
        uid=row.get("originalsluid") or row.get("sluid") or None,
        source=context.source,
        raw_ref=ref,
    )


def _state(row: Row) -> JobState:
    if row["state"].upper().startswith("REVOKED"):
        raise Unwanted("runs in another cluster of the federation")
    state = words.state(row["state"])
    held = row.get("reason") in HELD_REASONS
    return JobState.HELD if state is JobState.PENDING and held else state


def _gpus(row: Row, state: JobState) -> Gpus:
    """What was given to a job that has started, what is asked for by one that waits."""
    asked, given = gpus(row.get("reqtres")), gpus(row.get("alloctres"))
    found = given if given.count and state not in (JobState.PENDING, JobState.HELD) else asked
    found = found if found.count else (given if given.count else asked)
    if found.count:
        return msgspec.structs.replace(found, kind=found.kind or given.kind or asked.kind)
    raise Unwanted("asks for a fraction of a GPU" if found.fractions else "asks for no GPU")


def _time(row: Row, name: str, context: Context) -> datetime | None:
    try:
        return moment(row.get(name, ""), context.zone)
    except Unfit as unfit:
        raise Unfit(f"{name} {unfit.reason}", unfit.value) from None


def _limit(row: Row) -> int | None:
    raw = row.get("timelimitraw", "")
    return limit_minutes(raw) if raw else span(row.get("timelimit", ""))


def _count(row: Row, name: str) -> int | None:
    text = row.get(name, "")
    if text.lower() in NOT_KNOWN:
        return None
    if not (text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS):
        raise Unfit(f"{name} is not a whole number", text)
    return int(text)


def attempts(jobs: list[Job], parsed: Parsed) -> list[Job]:
    """Rows of one id, oldest first, numbered; identical rows are merged."""
    first: dict[tuple[str, str], Job] = {}
    several: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        key = (job.cluster, job.id)
        if (earlier := first.setdefault(key, job)) is not job:
            several.setdefault(key, [earlier]).append(job)
    if not several:
        return [_attempt(job, 1, job.submit) for job in jobs]
    found: list[Job] = []
    for key, job in first.items():
        if key in several:
            found += _numbered(_each_once(several[key], parsed))
        else:
            found.append(_attempt(job, 1, job.submit))
    return found


def _each_once(same: list[Job], parsed: Parsed) -> list[Job]:
    """But for where they stand."""
    rows: dict[Job, Job] = {}
    for job in same:
        rows.setdefault(msgspec.structs.replace(job, raw_ref=""), job)
    parsed.merged += len(same) - len(rows)
    return list(rows.values())


def _numbered(rows: list[Job]) -> list[Job]:
    ordered = sorted(rows, key=lambda job: (job.submit, job.state.live, job.start or job.submit))
    first = ordered[0].submit
    return [_attempt(job, number, first) for number, job in enumerate(ordered, 1)]


def _attempt(job: Job, number: int, first: datetime) -> Job:
    if number == job.attempt == 1 and job.eligible:
        return job
    return msgspec.structs.replace(
        job,
        attempt=number,
        submit=first,
        requeued=job.submit if number > 1 else None,
        eligible=job.eligible or job.submit,
    )
