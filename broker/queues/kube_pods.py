"""Which pods each kind of object makes: how many, of which template."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from broker.queues.kube_gpus import items, mapping
from broker.queues.kube_states import conditions
from broker.queues.parsed import Unfit

_MOST_PODS = 10**6


class Pods(msgspec.Struct, frozen=True):
    """`count` pods of one `spec`. `least` and `most` differ from it where the number may be changed while they run."""

    count: int
    spec: Mapping[str, Any]
    least: int
    most: int


def whole(value: Any, default: int) -> int:
    """A number of pods. Raises Unfit."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_PODS:
        raise Unfit("has a number of pods that cannot be", value)
    return value


def template(value: Any) -> Mapping[str, Any]:
    """The pod spec of a template."""
    return mapping(mapping(mapping(value).get("template")).get("spec"))


def _fixed(count: int, spec: Mapping[str, Any]) -> Pods:
    return Pods(count, spec, count, count)


def workload(spec: Mapping[str, Any], status: Mapping[str, Any]) -> list[Pods]:
    """Kueue: the pod sets, at the number that was admitted, without those that are already given back.

    Only before it is admitted may there be fewer than asked for (`minCount`).
    """
    admitted = _counts(mapping(status.get("admission")).get("podSetAssignments"))
    returned = {} if "Finished" in conditions(status) else _counts(status.get("reclaimablePods"))
    found = []
    for each in items(spec, "podSets"):
        entry = mapping(each)
        name, asked = str(entry.get("name") or "main"), whole(entry.get("count"), 1)
        count = max(admitted.get(name, asked) - returned.get(name, 0), 0)
        least = count if name in admitted else min(whole(entry.get("minCount"), count), count)
        found.append(Pods(count, template(entry), least, count))
    return found


def _counts(entries: Any) -> dict[str, int]:
    found = [mapping(entry) for entry in entries] if isinstance(entries, list) else []
    return {str(each.get("name") or "main"): whole(each.get("count"), 0) for each in found if "count" in each}


def job(spec: Mapping[str, Any], status: Mapping[str, Any]) -> list[Pods]:
    """As many pods at one time as `parallelism` says, and no more than completions are missing."""
    at_once = whole(spec.get("parallelism"), 1)
    if spec.get("completions") is not None:
        asked = whole(spec["completions"], 1)
        at_once = min(at_once, max(asked - whole(status.get("succeeded"), 0), 0) or asked)
    return [_fixed(at_once, template(spec))]


def jobset(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    found = []
    for each in items(spec, "replicatedJobs"):
        inner = mapping(mapping(mapping(each).get("template")).get("spec"))
        replicas = whole(mapping(each).get("replicas"), 1)
        found += [_fixed(pods.count * replicas, pods.spec) for pods in job(inner, {})]
    return found


def volcano(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    tasks = [mapping(task) for task in items(spec, "tasks")]
    return [_fixed(whole(task.get("replicas"), 1), template(task)) for task in tasks]


def replicas(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    """Kubeflow's `pytorchReplicaSpecs`, `mpiReplicaSpecs` and the like. Only workers are elastic."""
    elastic, found = mapping(spec.get("elasticPolicy")), []
    for name, groups in spec.items():
        if not str(name).endswith("ReplicaSpecs"):
            continue
        for role, each in mapping(groups).items():
            count = whole(mapping(each).get("replicas"), 1)
            bounds = (count, count)
            if role == "Worker" and elastic:
                bounds = (whole(elastic.get("minReplicas"), count), whole(elastic.get("maxReplicas"), count))
            found.append(Pods(count, template(each), *bounds))
    return found


def trainer(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    """TrainJob: the nodes of the trainer; without `resourcesPerNode` the runtime knows them, and we do not."""
    own = mapping(spec.get("trainer"))
    if not own.get("resourcesPerNode"):
        return []
    return [_fixed(whole(own.get("numNodes"), 1), {"resources": own["resourcesPerNode"]})]


def ray_cluster(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    """The head and every worker group; a group's replica may be several hosts."""
    found = [_fixed(1, template(spec.get("headGroupSpec")))] if spec.get("headGroupSpec") else []
    scales = spec.get("enableInTreeAutoscaling") is True
    for each in items(spec, "workerGroupSpecs"):
        group = mapping(each)
        hosts = max(whole(group.get("numOfHosts"), 1), 1)
        least, most = whole(group.get("minReplicas"), 0), whole(group.get("maxReplicas"), _MOST_PODS)
        count = min(max(whole(group.get("replicas"), least), least), most)
        bounds = (least * hosts, most * hosts) if scales else (count * hosts, count * hosts)
        found.append(Pods(0 if group.get("suspend") is True else count * hosts, template(group), *bounds))
    return found


def ray_job(spec: Mapping[str, Any], status: Mapping[str, Any]) -> list[Pods]:
    """None where it runs on a cluster that exists already."""
    return ray_cluster(mapping(spec.get("rayClusterSpec")), status)


def pod(spec: Mapping[str, Any], _: Mapping[str, Any]) -> list[Pods]:
    return [_fixed(1, spec)]


PodsOf = Callable[[Mapping[str, Any], Mapping[str, Any]], list[Pods]]
