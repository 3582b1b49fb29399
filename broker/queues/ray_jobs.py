"""Ray's jobs (`GET /api/jobs/`). They carry no GPU count, user, limit or priority: the submitter's `metadata` does.

`start_time` is when the job was submitted; Ray does not say when it began.
"""

from collections.abc import Iterator
from typing import Any

from broker.model.job import Job, JobState
from broker.queues import managed
from broker.queues.managed import Record, count, inner, size, spelled, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unwanted

_STATES = {
    "PENDING": JobState.PENDING, "RUNNING": JobState.RUNNING, "STOPPED": JobState.CANCELLED,
    "SUCCEEDED": JobState.DONE, "FAILED": JobState.FAILED,
}  # fmt: skip


def suits(head: str) -> str:
    """Why this looks like Ray's jobs, "" if it does not."""
    return 'it has "submission_id" and "entrypoint"' if _keys(head) else ""


def _keys(head: str) -> bool:
    return managed.named(head, "submission_id") and managed.named(head, "entrypoint")


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("jobs",), parsed)


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    found = records(text, parsed)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed), context, parsed)


def _jobs(record: Record, ref: str, context: Context, parsed: Parsed) -> Iterator[Job]:
    written = str(record.get("status"))
    state = _STATES.get(written, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    named = inner(record, "metadata")
    begun = submitted(record, "start_time")
    found = text_of(record, "submission_id", "job_id")
    if found is None:
        raise Unfit("has no submission_id")
    yield Job(
        id=found,
        attempt=count(record, "attempt_number") + 1,
        cluster=context.cluster,
        tenant=text_of(named, "tenant", "team", "project") or context.fallback_tenant,
        user=text_of(named, "user", "owner"),
        name=text_of(named, "name", "job_name"),
        queue=text_of(named, "queue"),
        submit=begun,
        start=begun if state is not JobState.PENDING else None,
        end=None if state.live else when(record, "end_time"),
        state=state,
        gpus=_gpus(record, named, state),
        gpu_model=spelled(text_of(named, "gpu_type", "gpu_model")),
        gpus_per_node=size(named, "gpus_per_node") or None,
        nodes=size(named, "nodes") or None,
        time_limit_s=count(named, "time_limit_s") or None,
        priority=count(named, "priority"),
        source=context.source,
        raw_ref=ref,
    )


def _gpus(record: Record, named: Record, state: JobState) -> int:
    """What the submitter wrote down; the driver's own GPUs are the least there can be."""
    key = next((key for key in ("gpus", "num_gpus", "gpus_total") if key in named), "")
    found = size(named, key) if key else size(record, "entrypoint_num_gpus")
    if found:
        return found
    if key:
        raise Unwanted("asks for no GPU")
    if not state.live:
        raise Unwanted("has ended without saying its GPUs")
    raise Unfit('says no GPU count; submit with metadata {"gpus": "8"}', record.get("submission_id"))
