"""How far each kind of object has come: its state, when it began and ended, whether it was put back."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from broker.model.job import JobState
from broker.queues.kube_gpus import items, mapping
from broker.queues.parsed import Unfit
from broker.queues.times import moment

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class Standing(NamedTuple):
    """`settled` false: whether its pods run is not said by the object, and its pods may tell."""

    state: JobState
    start: datetime | None = None
    end: datetime | None = None
    requeued: datetime | None = None
    not_before: datetime | None = None
    attempt: int = 1
    settled: bool = True


class Thing(NamedTuple):
    """One object, in its parts."""

    meta: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]


StandingOf = Callable[[Thing], Standing]
_PENDING = Standing(JobState.PENDING)


def at(written: Any) -> datetime | None:
    """Kubernetes' times are RFC 3339, with a zone. Raises Unfit."""
    return moment(written, None) if isinstance(written, str | int) and not isinstance(written, bool) else None


def conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Those that hold, by type."""
    found = [mapping(each) for each in items(status, "conditions")]
    return {str(each.get("type")): each for each in found if str(each.get("status")) == "True"}


def denied(status: Mapping[str, Any], kind: str) -> bool:
    """Whether the condition is there, and says no."""
    found = [mapping(each) for each in items(status, "conditions")]
    return any(each.get("type") == kind and str(each.get("status")) == "False" for each in found)


def since(held: Mapping[str, Mapping[str, Any]], kind: str) -> datetime | None:
    return at(held[kind].get("lastTransitionTime")) if kind in held else None


def workload(thing: Thing) -> Standing:
    """Kueue. Quota that is held while the pods still wait for nodes is demand; an eviction puts the work back."""
    held, requeue = conditions(thing.status), mapping(thing.status.get("requeueState"))
    attempt = 1 + _count(requeue.get("count"))
    if "Finished" in held:
        return Standing(_finished(held["Finished"]), since(held, "Admitted"), since(held, "Finished"), attempt=attempt)
    if thing.spec.get("active") is False:
        return Standing(JobState.HELD, attempt=attempt)
    back = since(held, "Evicted") or since(held, "Requeued")
    if "Admitted" in held and "Evicted" not in held:
        waits = denied(thing.status, "PodsReady")
        state = JobState.PENDING if waits else JobState.RUNNING
        start = None if waits else since(held, "Admitted")
        return Standing(state, start, requeued=back, attempt=attempt, settled=waits or "PodsReady" in held)
    return Standing(JobState.PENDING, requeued=back, not_before=at(requeue.get("requeueAt")), attempt=attempt)


def _finished(condition: Mapping[str, Any]) -> JobState:
    said = f"{condition.get('reason')} {condition.get('message')}".lower()
    if "outofsync" in said or "notfound" in said:
        return JobState.CANCELLED
    return JobState.FAILED if "fail" in said else JobState.DONE


def job(thing: Thing) -> Standing:
    """batch/v1. `startTime` is when the controller took it up, not when its pods got nodes."""
    held, status = conditions(thing.status), thing.status
    start = at(status.get("startTime"))
    if "Complete" in held:
        return Standing(JobState.DONE, start, at(status.get("completionTime")) or since(held, "Complete"))
    if "Failed" in held:
        late = held["Failed"].get("reason") == "DeadlineExceeded"
        return Standing(JobState.TIMEOUT if late else JobState.FAILED, start, since(held, "Failed"))
    if thing.spec.get("suspend") is True:
        return Standing(_suspended(thing))
    if status.get("active") and (status.get("ready") or "ready" not in status):
        return Standing(JobState.RUNNING, start, settled="ready" in status)
    return _PENDING


def _suspended(thing: Thing) -> JobState:
    """A queue suspends what waits in it; a person suspends what shall not run."""
    labels = mapping(thing.meta.get("labels"))
    return JobState.PENDING if KUEUE_LABEL in labels else JobState.HELD


def jobset(thing: Thing) -> Standing:
    held, attempt = conditions(thing.status), 1 + _count(thing.status.get("restarts"))
    ended = _by_conditions(held, done="Completed", failed="Failed")
    if ended:
        return ended._replace(attempt=attempt)
    if thing.spec.get("suspend") is True:
        return Standing(_suspended(thing), attempt=attempt)
    jobs = [mapping(each) for each in items(thing.status, "replicatedJobsStatus")]
    if any(_count(each.get("ready")) for each in jobs):
        return Standing(JobState.RUNNING, attempt=attempt)
    return Standing(JobState.PENDING, attempt=attempt)


def kubeflow(thing: Thing) -> Standing:
    """PyTorchJob and its kin; TrainJob says Complete where the older ones say Succeeded."""
    held, policy = conditions(thing.status), mapping(thing.spec.get("runPolicy"))
    start = at(thing.status.get("startTime"))
    ended = _by_conditions(held, done="Succeeded" if "Succeeded" in held else "Complete", failed="Failed")
    if ended:
        return ended._replace(start=start, end=at(thing.status.get("completionTime")) or ended.end)
    if thing.spec.get("suspend") is True or policy.get("suspend") is True:
        return Standing(_suspended(thing))
    if "Running" in held:
        return Standing(JobState.RUNNING, since(held, "Running") or start)
    return Standing(JobState.PENDING, settled="Running" in str(thing.status.get("conditions")))


def _by_conditions(held: Mapping[str, Mapping[str, Any]], done: str, failed: str) -> Standing | None:
    if done in held:
        return Standing(JobState.DONE, end=since(held, done))
    if failed in held:
        late = held[failed].get("reason") == "DeadlineExceeded"
        return Standing(JobState.TIMEOUT if late else JobState.FAILED, end=since(held, failed))
    return None


_VOLCANO = {
    "": JobState.PENDING, "Pending": JobState.PENDING, "Inqueue": JobState.PENDING, "Running": JobState.RUNNING,
    "Completing": JobState.RUNNING, "Restarting": JobState.PENDING, "Aborting": JobState.RUNNING,
    "Aborted": JobState.HELD, "Terminating": JobState.RUNNING, "Terminated": JobState.CANCELLED,
    "Completed": JobState.DONE, "Failed": JobState.FAILED,
}  # fmt: skip


def volcano(thing: Thing) -> Standing:
    """An aborted job can be resumed: it is held, not ended."""
    said = mapping(thing.status.get("state"))
    state = _VOLCANO.get(str(said.get("phase") or ""), JobState.UNKNOWN)
    changed = at(said.get("lastTransitionTime"))
    start = changed if state is JobState.RUNNING else None
    return Standing(state, start, None if state.live else changed, attempt=1 + _count(thing.status.get("retryCount")))


_RAY_JOB = {
    "": JobState.PENDING, "Initializing": JobState.PENDING, "Waiting": JobState.PENDING, "Running": JobState.RUNNING,
    "Retrying": JobState.PENDING, "Suspending": JobState.RUNNING, "Suspended": JobState.HELD,
    "Complete": JobState.DONE, "Failed": JobState.FAILED, "ValidationFailed": JobState.FAILED,
}  # fmt: skip


def ray_job(thing: Thing) -> Standing:
    status = thing.status
    state = _RAY_JOB.get(str(status.get("jobDeploymentStatus") or ""), JobState.UNKNOWN)
    if state is JobState.HELD:
        state = _suspended(thing)
    if state is JobState.DONE and status.get("jobStatus") in ("FAILED", "STOPPED"):
        state = JobState.FAILED if status["jobStatus"] == "FAILED" else JobState.CANCELLED
    if state is JobState.FAILED and status.get("reason") == "DeadlineExceeded":
        state = JobState.TIMEOUT
    begun = at(status.get("startTime")) if state is not JobState.PENDING else None
    return Standing(
        state, begun, None if state.live else at(status.get("endTime")), attempt=1 + _count(status.get("failed"))
    )


def ray_cluster(thing: Thing) -> Standing:
    """It runs until it is deleted; "ready" means that all its pods are."""
    state = str(thing.status.get("state") or "").lower()
    if thing.spec.get("suspend") is True or state == "suspended":
        return Standing(_suspended(thing))
    if state == "ready":
        return Standing(JobState.RUNNING, at(mapping(thing.status.get("stateTransitionTimes")).get("ready")))
    return Standing(JobState.PENDING, settled=False)


_POD = {
    "": JobState.PENDING, "Pending": JobState.PENDING, "Running": JobState.RUNNING, "Succeeded": JobState.DONE,
    "Failed": JobState.FAILED, "Unknown": JobState.UNKNOWN,
}  # fmt: skip


def pod(thing: Thing) -> Standing:
    status = thing.status
    state = _POD.get(str(status.get("phase") or ""), JobState.UNKNOWN)
    if state is JobState.PENDING and thing.spec.get("nodeName"):
        return Standing(JobState.RUNNING, since(conditions(status), "PodScheduled"))
    if state is JobState.PENDING and items(thing.spec, "schedulingGates"):
        return Standing(_suspended(thing))
    start = at(status.get("startTime")) if state is not JobState.PENDING else None
    return Standing(state, start, None if state.live else _last_end(status))


def _last_end(status: Mapping[str, Any]) -> datetime | None:
    ended = [
        mapping(mapping(mapping(each).get("state")).get("terminated")) for each in items(status, "containerStatuses")
    ]
    return max((end for each in ended if (end := at(each.get("finishedAt")))), default=None)


def _count(value: Any) -> int:
    """How often something happened; nothing said is never. Raises Unfit."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**6:
        raise Unfit("has a count that cannot be", value)
    return value
