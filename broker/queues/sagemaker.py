"""SageMaker training jobs (`aws sagemaker describe-training-job`, one answer for each job).

Their capacity is SageMaker's own: no reservation of EC2 serves them, so that they stand in a queue of that name.
"""

from collections.abc import Iterator
from typing import Any

from broker.model.job import Job, JobState
from broker.queues import machines, managed
from broker.queues.managed import Record, count, inner, sequence, size, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable

QUEUE = "sagemaker"
_ENDED = {
    "Completed": JobState.DONE, "Failed": JobState.FAILED, "Stopped": JobState.CANCELLED,
    "Deleting": JobState.CANCELLED,
}  # fmt: skip
_WAITING = frozenset({"Starting", "LaunchingMLInstances", "Pending", "Interrupted", "Restarting", "Updating"})
_LATE = frozenset({"MaxRuntimeExceeded", "MaxWaitTimeExceeded", "MaxPendingTimeExceeded"})


def suits(head: str) -> str:
    """Why this looks like SageMaker, "" if it does not."""
    keys = ("TrainingJobSummaries", "TrainingJobName", "TrainingJobs")
    return next((f'it has "{key}"' for key in keys if managed.named(head, key)), "")


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("TrainingJobs",), parsed, single="TrainingJobName")


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    if managed.named(text, "TrainingJobSummaries"):
        raise Unreadable("is the answer of list-training-jobs, which has no GPUs; ask describe-training-job for each")
    found = records(text, parsed)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed), context, parsed)


def _jobs(record: Record, ref: str, context: Context, parsed: Parsed) -> Iterator[Job]:
    state, limits = _state(record, parsed), inner(record, "StoppingCondition")
    gpus, per_node, nodes, model = _size(inner(record, "ResourceConfig"))
    found = text_of(record, "TrainingJobName")
    if found is None:
        raise Unfit("has no TrainingJobName")
    tags = {str(each.get("Key")): each.get("Value") for each in sequence(record, "Tags")}
    yield Job(
        id=found,
        cluster=context.cluster,
        tenant=text_of(tags, "tenant", "team", "project") or context.fallback_tenant,
        user=text_of(tags, "user", "owner"),
        name=found,
        queue=QUEUE,
        submit=submitted(record, "CreationTime"),
        start=when(record, "TrainingStartTime") if state is not JobState.PENDING else None,
        end=None if state.live else when(record, "TrainingEndTime", "LastModifiedTime"),
        state=state,
        gpus=gpus,
        gpu_model=model,
        gpus_per_node=per_node,
        nodes=nodes,
        time_limit_s=count(limits, "MaxRuntimeInSeconds") or None,
        preemptible=record.get("EnableManagedSpotTraining") is True,
        constraint=text_of(inner(record, "ResourceConfig"), "TrainingPlanArn"),
        source=context.source,
        raw_ref=ref,
    )


def _state(record: Record, parsed: Parsed) -> JobState:
    status, detail = str(record.get("TrainingJobStatus")), str(record.get("SecondaryStatus"))
    if status in _ENDED:
        return JobState.TIMEOUT if detail in _LATE else _ENDED[status]
    if status == "InProgress":
        return JobState.PENDING if detail in _WAITING else JobState.RUNNING
    if status != "Stopping":
        parsed.note(f'state "{status[:40]}" is not known: such jobs count as live')
    return JobState.RUNNING if status == "Stopping" else JobState.UNKNOWN


def _size(config: Record) -> tuple[int, int | None, int | None, str]:
    """(GPUs, of each instance, instances, model), of one machine type or of groups. Raises Unfit or Unwanted."""
    groups = sequence(config, "InstanceGroups") or [config]
    chosen = text_of(config, "SelectedInstanceType")
    found = []
    for group in groups:
        written = chosen or text_of(group, "InstanceType")
        if written is None:
            raise Unfit("has no InstanceType")
        found.append((size(group, "InstanceCount", 1), machines.machine(written)))
    total, each = sum(number * shape.gpus for number, shape in found), {shape.gpus for _, shape in found}
    nodes = sum(number for number, _ in found)
    if not total:
        raise Unfit("has no instances")
    model = "+".join(sorted({shape.gpu_model for _, shape in found}))
    return (total, each.pop(), nodes, model) if len(each) == 1 else (total, None, None, model)
