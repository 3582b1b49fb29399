"""AWS Batch (`aws batch describe-jobs`). Times are in milliseconds; ended jobs are listed for about a week.

An array's parent stands for its tasks where these are not in the answer themselves. Which of its tasks have ended is
not said, only how many: the first ones are taken to be the furthest.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from broker.model.job import Job, JobState
from broker.queues import kube_gpus, machines, managed
from broker.queues.managed import Record, count, inner, sequence, size, submitted, text_of, when
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted

_STATES = {
    "SUBMITTED": JobState.PENDING, "PENDING": JobState.PENDING, "RUNNABLE": JobState.PENDING,
    "STARTING": JobState.PENDING, "RUNNING": JobState.RUNNING, "SUCCEEDED": JobState.DONE, "FAILED": JobState.FAILED,
}  # fmt: skip
_FURTHEST_FIRST = ("SUCCEEDED", "FAILED", "RUNNING", "STARTING", "RUNNABLE", "PENDING", "SUBMITTED")
_MOST_TASKS = 10_000
_NODES = re.compile(r"(?P<first>\d{0,7})(?P<colon>:?)(?P<last>\d{0,7})", re.ASCII)


def suits(head: str) -> str:
    """Why this looks like AWS Batch, "" if it does not."""
    if managed.named(head, "jobSummaryList"):
        return 'it has "jobSummaryList"'
    return 'it has "jobDefinition" and "jobQueue"' if _keys(head) else ""


def _keys(head: str) -> bool:
    return managed.named(head, "jobDefinition") and managed.named(head, "jobQueue")


def records(text: str, parsed: Parsed) -> list[Any]:
    """As they are written. Raises Unreadable."""
    return managed.listed(text, ("jobs",), parsed)


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    if managed.named(text, "jobSummaryList"):
        raise Unreadable("is the answer of list-jobs, which has no GPUs; ask describe-jobs for these jobs")
    found = records(text, parsed)
    children = _children(found)
    return managed.read(found, lambda record, ref: _jobs(record, ref, context, parsed, children), context, parsed)


def _children(records: list[Any]) -> dict[str, dict[int, str]]:
    """By array: the status of those of its tasks that are listed."""
    found: dict[str, dict[int, str]] = {}
    for record in records:
        parent, colon, index = str(record.get("jobId")).rpartition(":") if isinstance(record, dict) else ("", "", "")
        if colon and index.isascii() and index.isdigit() and len(index) < 8:
            found.setdefault(parent, {})[int(index)] = str(record.get("status"))
    return found


def _jobs(
    record: Record, ref: str, context: Context, parsed: Parsed, children: Mapping[str, Mapping[int, str]]
) -> Iterator[Job]:
    tasks, listed = inner(record, "arrayProperties"), children.get(str(record.get("jobId")), {})
    whole = size(tasks, "size") if "index" not in tasks else 0
    if whole > _MOST_TASKS:
        raise Unfit("is an array of more tasks than there can be", whole)
    missing = [index for index in range(whole) if index not in listed]
    if whole and not missing:
        raise Unwanted("is an array whose tasks are listed")
    try:
        job = _job(record, ref, context, parsed)
    except Unwanted as unwanted:
        raise Unwanted(unwanted.reason, max(len(missing), 1)) from None
    yield from _tasks(job, inner(tasks, "statusSummary"), missing, listed) if whole else [job]


def _tasks(job: Job, summary: Record, missing: list[int], listed: Mapping[int, str]) -> Iterator[Job]:
    """Those that are not listed themselves, in the states that are left over for them."""
    seen = list(listed.values())
    left = {status: max(size(summary, status) - seen.count(status), 0) for status in _FURTHEST_FIRST}
    states = [status for status, number in left.items() for _ in range(min(number, len(missing)))]
    for index, status in zip(missing, states + ["SUBMITTED"] * len(missing), strict=False):
        state = _STATES[status]
        yield msgspec.structs.replace(
            job,
            id=f"{job.id}:{index}",
            state=state,
            start=job.start if state is not JobState.PENDING else None,
            end=None if state.live else job.end,
        )


def _job(record: Record, ref: str, context: Context, parsed: Parsed) -> Job:
    state, attempts = _state(record, parsed), len(sequence(record, "attempts"))
    gpus, per_node, nodes = _size(record)
    found = text_of(record, "jobId")
    if found is None:
        raise Unfit("has no jobId")
    return Job(
        id=found,
        attempt=max(attempts + state.live, 1),
        cluster=context.cluster,
        tenant=text_of(record, "shareIdentifier") or context.fallback_tenant,
        user=text_of(inner(record, "tags"), "user", "owner"),
        name=text_of(record, "jobName"),
        queue=(text_of(record, "jobQueue") or "").rpartition("/")[2] or None,
        submit=submitted(record, "createdAt"),
        start=when(record, "startedAt") if state is not JobState.PENDING else None,
        end=None if state.live else when(record, "stoppedAt"),
        state=state,
        gpus=gpus,
        gpu_model=_model(record),
        gpus_per_node=per_node,
        nodes=nodes,
        time_limit_s=count(inner(record, "timeout"), "attemptDurationSeconds") or None,
        priority=count(record, "schedulingPriority"),
        depends_on=tuple(str(each["jobId"]) for each in sequence(record, "dependsOn") if each.get("jobId")),
        source=context.source,
        raw_ref=ref,
    )


def _state(record: Record, parsed: Parsed) -> JobState:
    written, reason = str(record.get("status")), str(record.get("statusReason") or "").lower()
    state = _STATES.get(written, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    if state is JobState.FAILED and "timeout" in reason:
        return JobState.TIMEOUT
    cancelled = record.get("isCancelled") is True or record.get("isTerminated") is True
    return JobState.CANCELLED if state is JobState.FAILED and cancelled else state


def _size(record: Record) -> tuple[int, int | None, int | None]:
    """(GPUs, of each node, nodes). Raises Unwanted."""
    ranges = sequence(inner(record, "nodeProperties"), "nodeRangeProperties")
    if ranges:
        nodes = max(size(inner(record, "nodeProperties"), "numNodes", 1), 1)
        sizes = [(_span(each, nodes), _of_node(each)) for each in ranges]
        total, each = sum(span * gpus for span, gpus in sizes), {gpus for _, gpus in sizes}
        per_node = each.pop() if len(each) == 1 else None
    else:
        total, per_node, nodes = _of_node(record), _of_node(record), 1
    if not total:
        raise Unwanted("asks for no GPU")
    return total, per_node, nodes if per_node else None


def _span(each: Record, nodes: int) -> int:
    """Of `0:3`, `4:` or `:2` how many nodes. Raises Unfit."""
    match = _NODES.fullmatch(str(each.get("targetNodes") or ""))
    if not match:
        raise Unfit("has a range of nodes that cannot be understood", each.get("targetNodes"))
    first = int(match["first"] or 0)
    until = int(match["last"] or nodes - 1) if match["colon"] else first
    return max(min(until, nodes - 1) - first + 1, 0)


def _of_node(record: Record) -> int:
    """Containers of ECS, of EKS, or the one of a plain job."""
    plain = _required(inner(record, "container"))
    tasks = [*sequence(inner(record, "ecsProperties"), "taskProperties")]
    ecs = sum(_required(each) for task in tasks for each in sequence(task, "containers"))
    pods: Mapping[str, Any] = inner(record, "eksProperties", "podProperties")
    return plain + ecs + kube_gpus.of_pod(pods).count


def _required(container: Record) -> int:
    """Amounts are texts."""
    asked = sequence(container, "resourceRequirements")
    return sum(size(each, "value") for each in asked if each.get("type") == "GPU")


def _model(record: Record) -> str | None:
    """Only where the job names its machine type: the compute environment of its queue decides otherwise."""
    ranges = sequence(inner(record, "nodeProperties"), "nodeRangeProperties")
    named = [inner(each, "container").get("instanceType") for each in [record, *ranges]]
    models = {machines.model_of(str(name)) or str(name).lower() for name in named if name}
    return "+".join(sorted(models)) or None
