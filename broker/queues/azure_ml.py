"""Azure ML jobs (`az ml job list -o json`, or the answer of Azure Resource Manager).

The size of a compute cluster is not in its jobs: put the answer of `az ml compute list -o json` behind the jobs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from broker.model.job import Job, JobState
from broker.queues import machines, managed
from broker.queues.managed import Record, count, inner, size, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unwanted

_STATES = {
    "NotStarted": JobState.PENDING, "Starting": JobState.PENDING, "Provisioning": JobState.PENDING,
    "Preparing": JobState.PENDING, "Queued": JobState.PENDING, "Scheduled": JobState.PENDING,
    "Running": JobState.RUNNING, "Finalizing": JobState.RUNNING, "CancelRequested": JobState.RUNNING,
    "Completed": JobState.DONE, "Failed": JobState.FAILED, "Canceled": JobState.CANCELLED, "Paused": JobState.HELD,
    "NotResponding": JobState.RUNNING, "Unknown": JobState.UNKNOWN,
}  # fmt: skip
_COMPUTE = frozenset({"amlcompute", "computeinstance", "kubernetes", "virtualmachine", "attachedkubernetes"})
_ISO = re.compile(r"P(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9})(?:\.\d+)?S)?)?")
_PARENTS = frozenset({"pipeline", "sweep"})


def suits(head: str) -> str:
    """Why this looks like Azure ML, "" if it does not."""
    if managed.named(head, "creation_context"):
        return 'it has "creation_context"'
    return "it has ids of Microsoft.MachineLearningServices" if "Microsoft.MachineLearningServices" in head else ""


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("value",), parsed, single="creation_context")


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    found = [_flat(record) for record in records(text, parsed)]
    sizes = _clusters(found)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed, sizes), context, parsed)


def _flat(record: Any) -> Any:
    """A job as the command line shows it; Resource Manager nests it and writes in another case."""
    if not isinstance(record, dict) or not isinstance(record.get("properties"), dict) or "creation_context" in record:
        return record
    nested = record["properties"]
    return {
        **{_snake(str(name)): value for name, value in nested.items()},
        "name": record.get("name"),
        "type": nested.get("jobType") or nested.get("computeType"),
        "compute": str(nested.get("computeId") or "") or None,
        "size": inner(nested, "properties").get("vmSize"),
        "creation_context": {_snake(name): value for name, value in inner(record, "systemData").items()},
        "resources": {_snake(name): value for name, value in inner(nested, "resources").items()},
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f"_{match[1].lower()}", name)


def _clusters(records: Iterable[Any]) -> dict[str, str]:
    """Machine type by name of the compute cluster."""
    found = [record for record in records if isinstance(record, dict) and _is_compute(record)]
    return {str(record.get("name")).lower(): str(record["size"]) for record in found if record.get("size")}


def _is_compute(record: Mapping[str, Any]) -> bool:
    return str(record.get("type")).lower() in _COMPUTE


def _jobs(record: Record, ref: str, context: Context, parsed: Parsed, sizes: Mapping[str, str]) -> Iterator[Job]:
    if _is_compute(record):
        raise Unwanted("is a compute cluster, not a job")
    if str(record.get("type")).lower() in _PARENTS:
        raise Unwanted("is a parent whose steps count")
    state = _state(record, parsed)
    number, model, nodes = _size(record, state, sizes)
    created = inner(record, "creation_context")
    tags, queue = inner(record, "tags"), inner(record, "queue_settings")
    found = text_of(record, "name")
    if found is None:
        raise Unfit("has no name")
    yield Job(
        id=found,
        cluster=context.cluster,
        tenant=text_of(tags, "tenant", "team") or text_of(record, "experiment_name") or context.fallback_tenant,
        user=text_of(created, "created_by"),
        name=text_of(record, "display_name"),
        queue=_cluster(record) or text_of(queue, "job_tier"),
        submit=submitted(created, "created_at"),
        start=_run_time(record, "startTimeUtc", "start_time") if state is not JobState.PENDING else None,
        end=None if state.live else _run_time(record, "endTimeUtc", "end_time"),
        state=state,
        gpus=number * nodes,
        gpu_model=model,
        gpus_per_node=number,
        nodes=nodes,
        time_limit_s=_limit(inner(record, "limits").get("timeout")),
        priority={"low": -1, "high": 1}.get(str(queue.get("priority")).lower(), 0),
        preemptible=queue.get("job_tier") == "Spot",
        source=context.source,
        raw_ref=ref,
    )


def _state(record: Record, parsed: Parsed) -> JobState:
    written = str(record.get("status"))
    if written not in _STATES:
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    return _STATES.get(written, JobState.UNKNOWN)


def _cluster(record: Record) -> str | None:
    """By its name: the field may hold `azureml:name` or a resource id."""
    return re.split("[/:]", text_of(record, "compute") or "")[-1] or None


def _size(record: Record, state: JobState, sizes: Mapping[str, str]) -> tuple[int, str, int]:
    """(GPUs of each node, model, nodes). Raises Unfit or Unwanted."""
    resources, cluster = inner(record, "resources"), _cluster(record)
    written = text_of(resources, "instance_type") or sizes.get((cluster or "").lower())
    if written is None and not state.live:
        raise Unwanted("has ended without saying its GPUs")
    if written is None:
        raise Unfit("runs on a cluster whose machine type is not in the answer", cluster)
    shape = machines.machine(written)
    return shape.gpus, shape.gpu_model, max(size(resources, "instance_count", 1), 1)


def _run_time(record: Record, *names: str) -> Any:
    """Only the run's history has them; exports put them beside the job or into its properties."""
    return when(record, *names) or when(inner(record, "properties"), *names)


def _limit(written: Any) -> int | None:
    """Seconds, or an ISO 8601 span."""
    match = _ISO.fullmatch(str(written or "").strip())
    if not match or not any(match.groups()):
        return count({"timeout": written}, "timeout") or None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
