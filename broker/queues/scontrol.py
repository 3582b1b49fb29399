"""`scontrol show job`, on many lines for each job or with `-o` on one.

What surprised us: values are not quoted, so that a job's name may hold what looks like another field; a job in which a
field that we use stands twice with two values is set aside. Times are local and carry no zone.
"""

import re
from collections.abc import Iterator
from math import ceil

from broker.queues import slurm_record
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest
from broker.queues.slurm_links import linked
from broker.queues.slurm_record import Draft, Record
from broker.queues.times import moment, span

NONE = "No jobs in the system"
"""What scontrol prints for an empty queue."""

_FIELD = re.compile(r"(?:^|\s)([A-Z][\w/:.]*)=")
_WHOLE = ("JobId", "JobState", "SubmitTime", "NumNodes", "Partition")
_TRES = frozenset({"ReqTRES", "AllocTRES", "TRES"})
_BLANK = frozenset({"", "(null)", "N/A", "None", "Unknown"})
_TIMES = {
    "submit_time": "SubmitTime", "eligible_time": "EligibleTime", "start_time": "StartTime", "end_time": "EndTime",
    "deadline": "Deadline",
}  # fmt: skip
_TEXTS = {
    "job_id": "JobId", "array_job_id": "ArrayJobId", "het_job_id": "HetJobId", "het_job_offset": "HetJobOffset",
    "name": "JobName", "account": "Account", "partition": "Partition", "job_state": "JobState",
    "state_reason": "Reason", "restart_cnt": "Restarts", "priority": "Priority", "dependency": "Dependency",
    "tres_per_job": "TresPerJob", "tres_per_node": "TresPerNode", "tres_per_socket": "TresPerSocket",
    "tres_per_task": "TresPerTask", "nodes": "NodeList", "features": "Features",
}  # fmt: skip
_USED = frozenset({*_TIMES.values(), *_TEXTS.values(), *_TRES, "ArrayTaskId", "ArrayTaskThrottle", "UserId",
                   "TimeLimit", "TimeMin", "NumNodes", "NumTasks"})  # fmt: skip

Fields = dict[str, str]


def suits(head: str) -> str:
    """Why this looks like `scontrol show job`, "" if it does not."""
    if head.startswith("JobId="):
        return "it begins with JobId="
    return "it says that there are no jobs, as scontrol does" if head.startswith(NONE) else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    lines = text.replace("\r\n", "\n").lstrip("\n").split("\n")
    parsed = Parsed()
    if text.strip() == NONE:
        return parsed
    if not any(line.startswith("JobId=") for line in lines):
        raise Unreadable(f'holds no job; it begins with "{lines[0][:80]}"; ask slurmctld (scontrol ping)')
    if lines[-1]:
        parsed.damage("the last line has no line end: the output is cut off there")
    parsed.jobs = latest(linked(list(_drafts(lines, context, parsed)), parsed), parsed)
    return parsed


def _drafts(lines: list[str], context: Context, parsed: Parsed) -> Iterator[Draft]:
    for number, text in _records(lines, parsed):
        try:
            record = _record(_fields(text), context)
            yield slurm_record.draft(record, context, f"{context.ref}:{number}", parsed)
        except Unfit as unfit:
            parsed.quarantine(f"line {number}", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)


def _records(lines: list[str], parsed: Parsed) -> Iterator[tuple[int, str]]:
    """(number of the first line, all lines as one) of each job; what belongs to none is said."""
    begun, parts = 0, list[str]()
    for number, line in enumerate(lines, 1):
        if line.startswith("JobId="):
            if parts:
                yield begun, " ".join(parts)
            begun, parts = number, [line]
        elif line[:1].isspace() and parts:
            parts.append(line.strip())
        elif line.strip():
            parsed.damage(f'holds lines that are no part of a job, such as "{line[:60]}"')
    if parts:
        yield begun, " ".join(parts)


def _fields(text: str) -> Fields:
    """Raises Unfit."""
    found: Fields = {}
    marks = list(_FIELD.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        name, value = mark[1], text[mark.end() : end].strip()
        if name in _USED and found.setdefault(name, value) != value:
            raise Unfit(f"names {name} twice, with two values", value)
    return found


def _record(fields: Fields, context: Context) -> Record:
    """Raises Unfit."""
    missing = [name for name in _WHOLE if not fields.get(name)]
    if missing or not _TRES.intersection(fields):
        raise Unfit(f"lacks {', '.join(missing or ['ReqTRES'])}: cut off?", fields.get("JobId", ""))
    texts = {field: _value(fields, name) for field, name in _TEXTS.items()}
    times = {field: _epoch(fields, name, context) for field, name in _TIMES.items()}
    task = _value(fields, "ArrayTaskId")
    single = task.isdigit()
    allocated = _value(fields, "AllocTRES") or _value(fields, "TRES")
    return Record(
        **texts,
        **times,
        array_task_id=task if single else None,
        array_task_string="" if single else task,
        array_max_tasks=_value(fields, "ArrayTaskThrottle"),
        user_name=_value(fields, "UserId").partition("(")[0],
        time_limit=_minutes(fields, "TimeLimit"),
        time_minimum=_minutes(fields, "TimeMin"),
        node_count=_value(fields, "NumNodes").partition("-")[0],
        tasks=_value(fields, "NumTasks"),
        tres_req_str=_value(fields, "ReqTRES") or _value(fields, "TRES"),
        tres_alloc_str=allocated,
    )


def _value(fields: Fields, name: str) -> str:
    written = fields.get(name, "")
    return "" if written in _BLANK else written


def _epoch(fields: Fields, name: str, context: Context) -> int | None:
    try:
        found = moment(_value(fields, name), context.zone)
    except Unfit as unfit:
        raise Unfit(f"{name} {unfit.reason}", unfit.value) from None
    return int(found.timestamp()) if found else None


def _minutes(fields: Fields, name: str) -> int | None:
    try:
        seconds = span(_value(fields, name))
    except Unfit as unfit:
        raise Unfit(f"{name} {unfit.reason}", unfit.value) from None
    return ceil(seconds / 60) if seconds else None
