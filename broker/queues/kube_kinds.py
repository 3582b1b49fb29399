"""The kinds of objects that ask for GPUs, one line each."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from broker.queues import kube_pods, kube_states
from broker.queues.kube_pods import PodsOf
from broker.queues.kube_states import StandingOf, Thing


class Kind(NamedTuple):
    """`gang`: all of its pods start together, or none. `resource`: what `kubectl get` calls it."""

    pods: PodsOf
    standing: StandingOf
    resource: str
    gang: bool = True


_KUBEFLOW = ("PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob")
KINDS: dict[tuple[str, str], Kind] = {
    ("kueue.x-k8s.io", "Workload"): Kind(kube_pods.workload, kube_states.workload, "workloads"),
    ("batch", "Job"): Kind(kube_pods.job, kube_states.job, "jobs", gang=False),
    ("jobset.x-k8s.io", "JobSet"): Kind(kube_pods.jobset, kube_states.jobset, "jobsets"),
    ("batch.volcano.sh", "Job"): Kind(kube_pods.volcano, kube_states.volcano, "jobs"),
    **{
        ("kubeflow.org", name): Kind(kube_pods.replicas, kube_states.kubeflow, f"{name.lower()}s") for name in _KUBEFLOW
    },
    ("trainer.kubeflow.org", "TrainJob"): Kind(kube_pods.trainer, kube_states.kubeflow, "trainjobs"),
    ("ray.io", "RayJob"): Kind(kube_pods.ray_job, kube_states.ray_job, "rayjobs"),
    ("ray.io", "RayCluster"): Kind(kube_pods.ray_cluster, kube_states.ray_cluster, "rayclusters"),
    ("", "Pod"): Kind(kube_pods.pod, kube_states.pod, "pods"),
}
"""By API group and kind."""


def group(document: Mapping[str, Any]) -> str:
    """The API group of an object, without the version."""
    version = str(document.get("apiVersion") or "")
    return version.partition("/")[0] if "/" in version else ""


def limit(thing: Thing) -> int | None:
    """Seconds, of what is left of it where the work ran before."""
    policy = thing.spec.get("runPolicy")
    nested = policy.get("activeDeadlineSeconds") if isinstance(policy, dict) else None
    if (most := _seconds(thing.spec.get("maximumExecutionTimeSeconds"))) is not None:
        return max(most - (_seconds(thing.status.get("accumulatedPastExecutionTimeSeconds")) or 0), 1)
    return _seconds(thing.spec.get("activeDeadlineSeconds")) or _seconds(nested)


def _seconds(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40 else None


def queue(thing: Thing) -> str | None:
    """Kueue's local queue, Volcano's queue, or the one that the scheduling policy names."""
    labels, policy = thing.meta.get("labels"), thing.spec.get("runPolicy")
    scheduling = policy.get("schedulingPolicy") if isinstance(policy, dict) else None
    places = (
        (thing.spec, "queueName"), (thing.spec, "queue"), (labels, kube_states.KUEUE_LABEL),
        (labels, "volcano.sh/queue-name"), (labels, "runai/queue"), (labels, "kai.scheduler/queue"),
        (scheduling, "queue"),
    )  # fmt: skip
    named = (place.get(key) for place, key in places if isinstance(place, dict))
    return next((str(name) for name in named if name), None)


def priority_class(thing: Thing) -> str:
    """The name of the class that its priority comes from, "" if none is named."""
    policy = thing.spec.get("runPolicy")
    scheduling = policy.get("schedulingPolicy") if isinstance(policy, dict) else None
    labels, ref = thing.meta.get("labels"), thing.spec.get("priorityClassRef")
    places = (
        (labels, "kueue.x-k8s.io/priority-class"), (ref, "name"), (thing.spec, "priorityClassName"),
        (scheduling, "priorityClass"),
    )  # fmt: skip
    named = (place.get(key) for place, key in places if isinstance(place, dict))
    return next((str(name) for name in named if name), "")
