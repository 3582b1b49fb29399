"""Vertex AI custom jobs (`gcloud ai custom-jobs list --format=json`, or the REST answer).

Machine types of the A2 and A3 families bring their GPUs with them; for others the accelerator is named.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from broker.model.job import Job, JobState
from broker.queues import machines, managed
from broker.queues.managed import Record, inner, sequence, size, spelled, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unwanted

_STATES = {
    "QUEUED": JobState.PENDING, "PENDING": JobState.PENDING, "RUNNING": JobState.RUNNING, "SUCCEEDED": JobState.DONE,
    "FAILED": JobState.FAILED, "CANCELLING": JobState.RUNNING, "CANCELLED": JobState.CANCELLED,
    "PAUSED": JobState.HELD, "EXPIRED": JobState.TIMEOUT, "UPDATING": JobState.RUNNING,
    "PARTIALLY_SUCCEEDED": JobState.DONE,
}  # fmt: skip
_SECONDS = re.compile(r"(\d{1,12})(?:\.\d*)?s")


class _Workers(NamedTuple):
    """`each`: GPUs of one replica."""

    replicas: int
    each: int
    model: str


def suits(head: str) -> str:
    """Why this looks like Vertex AI, "" if it does not."""
    if managed.named(head, "customJobs"):
        return 'it has "customJobs"'
    marked = managed.named(head, "workerPoolSpecs", "hyperparameterTuningJobs")
    return 'it has "workerPoolSpecs"' if marked else ""


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("customJobs", "hyperparameterTuningJobs"), parsed, single="jobSpec")


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    found = records(text, parsed)
    counted = _trials(found)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed, counted), context, parsed)


def _trials(records: Iterable[Any]) -> frozenset[str]:
    """The custom jobs that tuning jobs have made: each is listed beside its tuning job, which counts."""
    tuning = [record for record in records if isinstance(record, dict) and "trialJobSpec" in record]
    return frozenset(str(trial.get("customJob")) for record in tuning for trial in sequence(record, "trials"))


def _jobs(record: Record, ref: str, context: Context, parsed: Parsed, counted: frozenset[str]) -> Iterator[Job]:
    if str(record.get("name")) in counted:
        raise Unwanted("is a trial of a tuning job that counts")
    state = _state(record, parsed)
    spec, trials = _spec(record)
    workers = [each for pool in sequence(spec, "workerPoolSpecs") if (each := _workers(pool)).each and each.replicas]
    if not workers:
        raise Unwanted("asks for no GPU")
    scheduling, labels = inner(spec, "scheduling"), inner(record, "labels")
    sizes, nodes = {worker.each for worker in workers}, sum(worker.replicas for worker in workers) * trials
    yield Job(
        id=_id(record),
        cluster=context.cluster,
        tenant=text_of(labels, "tenant", "team", "project") or context.fallback_tenant,
        user=text_of(labels, "user", "owner"),
        name=text_of(record, "displayName"),
        queue=text_of(labels, "queue"),
        submit=submitted(record, "createTime"),
        start=when(record, "startTime") if state is not JobState.PENDING else None,
        end=None if state.live else when(record, "endTime", "updateTime"),
        state=state,
        gpus=sum(worker.replicas * worker.each for worker in workers) * trials,
        gpu_model="+".join(sorted({worker.model for worker in workers})),
        gpus_per_node=max(sizes) if len(sizes) == 1 else None,
        nodes=nodes if len(sizes) == 1 else None,
        time_limit_s=_seconds(scheduling.get("timeout")),
        gang=trials == 1,
        preemptible=scheduling.get("strategy") == "SPOT",
        constraint=text_of(spec, "persistentResourceId"),
        source=context.source,
        raw_ref=ref,
    )


def _spec(record: Record) -> tuple[Record, int]:
    """The job's, or a tuning job's trials that run side by side."""
    if "trialJobSpec" in record:
        return inner(record, "trialJobSpec"), max(size(record, "parallelTrialCount", 1), 1)
    return inner(record, "jobSpec"), 1


def _id(record: Record) -> str:
    """The number at the end of the resource's name."""
    found = (text_of(record, "name") or "").rpartition("/")[2]
    if not found:
        raise Unfit("has no name")
    return found


def _state(record: Record, parsed: Parsed) -> JobState:
    written = str(record.get("state")).removeprefix("JOB_STATE_")
    state = _STATES.get(written, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    return state


def _workers(pool: Record) -> _Workers:
    """Raises Unfit or Unwanted; a pool on machines without GPUs has none."""
    spec = inner(pool, "machineSpec")
    replicas, kind = size(pool, "replicaCount", 1), text_of(spec, "acceleratorType") or ""
    if spec.get("gpuPartitionSize"):
        raise Unwanted("asks for a fraction of a GPU")
    if kind.startswith("NVIDIA"):
        return _Workers(replicas, size(spec, "acceleratorCount", 1), spelled(kind) or kind)
    if (kind and kind != "ACCELERATOR_TYPE_UNSPECIFIED") or not spec.get("machineType"):
        return _Workers(replicas, 0, "")
    try:
        shape = machines.machine(str(spec["machineType"]))
    except Unwanted as unwanted:
        if "fraction" in unwanted.reason:
            raise
        return _Workers(replicas, 0, "")
    return _Workers(replicas, shape.gpus, shape.gpu_model)


def _seconds(written: object) -> int | None:
    match = _SECONDS.fullmatch(str(written or ""))
    return (int(match[1]) or None) if match else None
