"""The queue as it was read, as text and JSON."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from broker.commands.queue_reading import Group, Queue, Row, Unrouted
from broker.counted import number
from broker.model.job import Job
from broker.model.snapshot import SourceView, Trust
from broker.queues.explain import Explained, Raw
from broker.view.document import document
from broker.view.text import Paint, plain, span, table, when

_WIDEST = 60
_WIDEST_NAME = 24
_LONGEST_S = 10**13
"""Of a limit that can be shown: a queue may hold any number."""
_COUNTS = frozenset({2, 3, 4, 5})


def jobs_text(queue: Queue, *, verbose: bool = False, paint: Paint = plain) -> str:
    """With `verbose`, each live job."""
    blocks = [
        "\n".join(_source(source, paint, verbose=verbose) for source in queue.sources) or "No queue is configured."
    ]
    header = ["tenant", "pool", "queued jobs", "GPUs", "running jobs", "GPUs"]
    rows = [[each.tenant, each.pool, *_figures(each)] for each in queue.groups]
    if rows:
        blocks.append(table(header, rows, right=_COUNTS))
    if queue.unrouted:
        blocks.append(_left(queue.unrouted))
    if verbose:
        blocks.append(_each([job for source in queue.sources for job in source.jobs if job.state.live]))
    return "\n\n".join(block for block in blocks if block)


def _figures(group: Group) -> list[str]:
    return [f"{each:,}" for each in (group.queued_jobs, group.queued_gpus, group.running_jobs, group.running_gpus)]


def _source(source: SourceView, paint: Paint, *, verbose: bool) -> str:
    sign = "" if source.trust is Trust.COMPLETE else f"{paint('!', 'yellow')} "
    if source.trust is Trust.UNKNOWN:
        line = f"{sign}{source.source}: NOT READ; what it holds is unknown, not empty"
    else:
        counts = f"{source.kept} kept, {source.merged} merged, {source.dropped} dropped"
        rows = f"{number(source.rows, 'row')} read = {counts}, {source.quarantined} quarantined"
        line = f"{sign}{source.source}: {rows}; as of {when(source.as_of)}"
    dropped = ", ".join(f"{reason} ({count})" for reason, count in source.dropped_why)
    why = [f"  dropped: {dropped}"] if dropped else []
    format = [f"  read as {source.read_as}"] if verbose and source.read_as else []
    return "\n".join([line, *why, *format, *(f"  {problem}" for problem in source.problems)])


def _left(unrouted: tuple[Unrouted, ...]) -> str:
    """What no pool takes, so that a pool can be given what is missing."""
    header = ["tenant", "queue", "model", "constraint", "jobs", "GPUs", "such as"]
    rows = [
        [each.tenant, each.queue or "-", each.gpu_model or "-", each.constraint or "-", *_amounts(each), each.example]
        for each in unrouted
    ]
    return "No pool takes these jobs:\n" + table(header, rows, right=frozenset({4, 5}))


def _amounts(each: Unrouted) -> list[str]:
    return [f"{each.jobs:,}", f"{each.gpus:,}"]


def _each(jobs: list[Job]) -> str:
    header = ["id", "tenant", "user", "name", "queue", "state", "GPUs", "model", "nodes", "limit", "submitted"]
    rows = [_job(job) for job in jobs]
    return table(header, rows, right=frozenset({6, 8, 9})) if rows else ""


def _job(job: Job) -> list[str]:
    whose = [job.tenant, job.user or "-", (job.name or "-")[:_WIDEST_NAME], job.queue or "-"]
    limit = span(timedelta(seconds=min(job.time_limit_s, _LONGEST_S))) if job.time_limit_s else "-"
    wants = [str(job.gpus), job.gpu_model or "-", str(job.nodes or "-"), limit]
    return [job.id, *whose, job.state.value, *wants, when(job.submit)]


def quarantine_text(rows: Sequence[Row]) -> str:
    """Each row that was set aside."""
    if not rows:
        return "No row was set aside."
    return table(["source", "where", "why", "value"], [[row.source, row.where, row.reason, row.value] for row in rows])


def quarantine_json(rows: Sequence[Row]) -> str:
    return document("jobs-quarantine", {"rows": rows})


def explained_text(found: Sequence[Explained]) -> str:
    """Our fields, then the source's, each with what of ours hangs on it."""
    return "\n\n".join(_explained(each) for each in found)


def explained_json(found: Sequence[Explained]) -> str:
    return document("jobs-explain", {"jobs": found})


def _explained(each: Explained) -> str:
    job = each.job
    head = f"{job.id}, attempt {job.attempt}: read as {each.format} at {job.raw_ref} of {job.source}"
    ours = [[name, _value(value)] for name, value in msgspec.structs.asdict(job).items() if value not in (None, "", ())]
    raw = [[field.name, field.value[:_WIDEST], _makes(field)] for field in each.raw]
    theirs = table(["raw field", "value", "makes"], raw) if raw else "Its raw record cannot be looked at by itself."
    return "\n\n".join([head, table(["our field", "value"], ours), theirs])


def _makes(field: Raw) -> str:
    return ", ".join(field.makes) or (f"{', '.join(field.shares)} (so does another)" if field.shares else "-")


def _value(value: object) -> str:
    if isinstance(value, datetime):
        return when(value)
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def jobs_json(queue: Queue) -> str:
    return document("jobs", {"sources": queue.sources, "groups": queue.groups, "unrouted": queue.unrouted})
