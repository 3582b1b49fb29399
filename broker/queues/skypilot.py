"""SkyPilot's managed jobs (`sky jobs queue -o json`). There is no time limit; a recovery is a new attempt."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from broker.model.job import Job, JobState
from broker.queues import managed
from broker.queues.managed import Record, count, inner, spelled, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unwanted

_STATES = {
    "PENDING": JobState.PENDING, "SUBMITTED": JobState.PENDING, "STARTING": JobState.PENDING,
    "RECOVERING": JobState.PENDING, "RUNNING": JobState.RUNNING, "CANCELLING": JobState.RUNNING,
    "SUCCEEDED": JobState.DONE, "CANCELLED": JobState.CANCELLED, "FAILED": JobState.FAILED,
    "FAILED_SETUP": JobState.FAILED, "FAILED_PRECHECKS": JobState.FAILED, "FAILED_NO_RESOURCE": JobState.FAILED,
    "FAILED_CONTROLLER": JobState.FAILED,
}  # fmt: skip
_NODES = re.compile(r"^\s*(\d{1,6})x\s*[\[({]")
_GPU = re.compile(r"(?<![\w.:-])([A-Za-z][\w.-]*):(\d{1,6}(?:\.\d+)?)(?![\w.])")
_NO_GPU = frozenset({"cpu", "cpus", "mem", "memory", "disk"})


class Wanted(NamedTuple):
    """By node."""

    nodes: int
    gpus: int
    model: str


def suits(head: str) -> str:
    """Why this looks like SkyPilot's jobs, "" if it does not."""
    marked = managed.named(head, "job_id") and managed.named(head, "schedule_state", "recovery_count")
    return 'it has "job_id" and "recovery_count" or "schedule_state"' if marked else ""


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("jobs", "managed_jobs"), parsed)


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    found = records(text, parsed)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed), context, parsed)


def _jobs(record: Record, ref: str, context: Context, parsed: Parsed) -> Iterator[Job]:
    written = str(record.get("status")).rpartition(".")[2].upper()
    state = _STATES.get(written, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    wanted, task = wants(record), count(record, "task_id")
    started = state is not JobState.PENDING
    recovered = when(record, "last_recovered_at") if count(record, "recovery_count") else None
    region = text_of(record, "region")
    yield Job(
        id=_id(record, task),
        attempt=count(record, "recovery_count") + 1,
        cluster=context.cluster,
        tenant=text_of(record, "workspace") or context.fallback_tenant,
        user=text_of(record, "user_name", "user_hash"),
        name=text_of(record, "job_name"),
        queue=text_of(record, "pool"),
        submit=submitted(record, "submitted_at"),
        requeued=recovered,
        start=(recovered or when(record, "start_at")) if started else None,
        end=None if state.live else when(record, "end_at"),
        state=state,
        gpus=wanted.nodes * wanted.gpus,
        gpu_model=spelled(wanted.model),
        gpus_per_node=wanted.gpus,
        nodes=wanted.nodes,
        priority=count(record, "priority"),
        depends_on=(_id(record, task - 1),) if task else (),
        constraint=region if region != "-" else None,
        source=context.source,
        raw_ref=ref,
    )


def _id(record: Record, task: int) -> str:
    """The tasks of a pipeline run one after the other under one job id."""
    found = count(record, "job_id")
    if not found:
        raise Unfit("has no job_id")
    return f"{found}-{task}" if task else str(found)


def wants(record: Record) -> Wanted:
    """From `accelerators` where it is stated, else from the text of `resources`. Raises Unfit or Unwanted."""
    resources = text_of(record, "resources") or ""
    nodes = _NODES.match(resources)
    found = [(str(name), str(amount)) for name, amount in inner(record, "accelerators").items()]
    found = found or [pair for pair in _GPU.findall(resources) if pair[0].lower() not in _NO_GPU]
    if not found:
        raise Unwanted("asks for no GPU") if resources else Unfit("says nothing of its resources")
    amounts = {amount.removesuffix(".0") for _, amount in found}
    if len(amounts) != 1:
        raise Unfit("asks for alternatives of different sizes", resources)
    amount = amounts.pop()
    if re.fullmatch(r"\d*\.\d+", amount):
        raise Unwanted("asks for a fraction of a GPU")
    per_node = count({"accelerators": amount}, "accelerators")
    if not per_node:
        raise Unwanted("asks for no GPU")
    model = "+".join(sorted({spelled(name) or name for name, _ in found}))
    return Wanted(max(int(nodes[1]) if nodes else 1, 1), per_node, model)
