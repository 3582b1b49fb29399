"""Kubernetes objects as `kubectl get -o json` or `-o yaml` writes them.

A Job, the Kueue Workload that queues it and the Pods that it makes are one job: the Workload counts where there is
one, else what stands highest; the others are merged. Kubernetes forgets what has ended: this is no history.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from broker.model.gpu import normalise
from broker.model.job import Job, JobState
from broker.queues import kube_documents, kube_gpus, kube_kinds
from broker.queues.kube_claims import Surroundings
from broker.queues.kube_gpus import PodGpus, items, mapping
from broker.queues.kube_kinds import KINDS, Kind
from broker.queues.kube_links import Family, workers_of
from broker.queues.kube_pods import Pods
from broker.queues.kube_states import Standing, Thing, at
from broker.queues.parsed import Context, Parsed, Unfit, Unwanted, latest

_JSON = re.compile(r'(?<!\\)"apiVersion"\s*:')
_YAML = re.compile(r"^(?:- )?\s{0,4}apiVersion:\s", re.MULTILINE)
_HEAD = 1 << 16
_NONE = "asks for no GPU"
_ELSEWHERE = {
    "TrainJob": "leaves its GPUs to its runtime: its Workload, JobSet or Pods count",
    "RayJob": "runs on a cluster that exists already",
}


class Draft(NamedTuple):
    """A job and the object that it was made of. `pods_tell`: whether it runs is better known by its pods."""

    job: Job
    uid: str
    kind: str
    pods_tell: bool


def suits(head: str) -> str:
    """Why this looks like Kubernetes objects, "" if it does not."""
    start = head[:_HEAD]
    if start.lstrip().startswith(("{", "[")):
        return 'it is JSON with "apiVersion"' if _JSON.search(start) else ""
    return 'it is YAML with "apiVersion"' if _YAML.search(start) else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    found = kube_documents.objects(text, parsed)
    documents = [each for each in found if isinstance(each, dict)]
    around = Surroundings(documents)
    family = Family((_kind(each), mapping(each.get("metadata"))) for each in documents)
    drafts = list(_drafts(found, context, around, parsed))
    parsed.jobs = latest(_apart(drafts, family, parsed), parsed)
    return parsed


def _kind(document: Mapping[str, Any]) -> str:
    return str(document.get("kind") or "")


def _drafts(found: list[Any], context: Context, around: Surroundings, parsed: Parsed) -> Iterator[Draft]:
    for index, document in enumerate(found):
        where = f"items[{index}]"
        try:
            yield _draft(document, context, f"{context.ref}:{where}", around, parsed)
        except Unfit as unfit:
            parsed.quarantine(where, unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)


def _draft(document: Any, context: Context, ref: str, around: Surroundings, parsed: Parsed) -> Draft:
    """Raises Unfit or Unwanted."""
    if not isinstance(document, dict) or not _kind(document):
        raise Unfit("is no Kubernetes object", document)
    name = _kind(document)
    kind = KINDS.get((kube_kinds.group(document), name))
    if kind is None:
        raise Unwanted(f"is no job ({name[:40]})")
    if document.get("deleted"):
        raise Unwanted("was deleted")
    thing = Thing(*(mapping(document.get(part)) for part in ("metadata", "spec", "status")))
    if not thing.meta or not thing.spec:
        raise Unfit("has no metadata or no spec", name)
    standing = kind.standing(thing)
    job = _job(thing, name, kind, standing, context, ref, around)
    if job.state is JobState.UNKNOWN:
        parsed.note(f"a {name} has a state that is not known: such jobs count as live")
    return Draft(job, str(thing.meta.get("uid") or job.id), name, not standing.settled)


def _job(
    thing: Thing, name: str, kind: Kind, standing: Standing, context: Context, ref: str, around: Surroundings
) -> Job:
    pods = kind.pods(thing.spec, thing.status)
    sizes = [around.gpus(each.spec, str(thing.meta.get("namespace") or "")) for each in pods]
    total = _total(name, pods, sizes)
    submit = at(thing.meta.get("creationTimestamp"))
    if submit is None:
        raise Unfit("has no creationTimestamp", thing.meta.get("name"))
    labels = _labels(pods, sizes)
    least, most = _bounds(pods, sizes)
    each, nodes = _layout(pods, sizes)
    return Job(
        id=_id(thing, name),
        attempt=standing.attempt,
        cluster=context.cluster,
        tenant=str(thing.meta.get("namespace") or "") or context.fallback_tenant,
        user=_user(thing),
        name=_name(thing, name),
        queue=kube_kinds.queue(thing),
        submit=submit,
        requeued=standing.requeued,
        start=standing.start,
        end=standing.end,
        state=standing.state,
        gpus=total,
        min_gpus=least if least != total else None,
        max_gpus=most if most != total else None,
        gpu_model=kube_gpus.model(labels) or _flavor(thing, around),
        gpus_per_node=each,
        nodes=nodes,
        time_limit_s=kube_kinds.limit(thing),
        priority=_priority(thing, around),
        not_before=standing.not_before,
        gang=kind.gang or sum(each.count for each in pods) == 1,
        node_names=_node_names(thing),
        constraint=_constraint(labels),
        source=context.source,
        raw_ref=ref,
    )


def _total(name: str, pods: list[Pods], sizes: list[PodGpus]) -> int:
    """Raises Unwanted or Unfit where there is none."""
    if total := sum(each.count * size.count for each, size in zip(pods, sizes, strict=True)):
        return total
    if any(size.count for size in sizes):
        raise Unwanted("asks for no GPU just now")
    if any(size.parts for size in sizes):
        raise Unwanted("asks for a fraction of a GPU")
    if unknown := next((claim for size in sizes for claim in size.claims), None):
        raise Unfit("claims devices that the list does not describe (resourceclaimtemplates)", unknown)
    raise Unwanted(_ELSEWHERE.get(name, _NONE) if not pods else _NONE)


def _id(thing: Thing, name: str) -> str:
    """Of a Workload that queues for one job the job's, so that both are the same to another source."""
    queued = workers_of(thing.meta) if name == "Workload" else []
    found = queued[0] if len(queued) == 1 else thing.meta.get("uid")
    if not found:
        space, called = thing.meta.get("namespace"), thing.meta.get("name")
        if not called:
            raise Unfit("has neither a uid nor a name", name)
        found = f"{space}/{name}/{called}"
    return str(found)


def _name(thing: Thing, name: str) -> str | None:
    """Of a Workload its job's name: its own is made up."""
    if name == "Workload":
        named = [mapping(each).get("name") for each in items(thing.meta, "ownerReferences")]
        if len(named) == 1 and named[0]:
            return str(named[0])
    return str(thing.meta["name"]) if thing.meta.get("name") else None


def _user(thing: Thing) -> str | None:
    """Kubernetes keeps no user; some platforms write one down."""
    places = (mapping(thing.meta.get("labels")), mapping(thing.meta.get("annotations")))
    keys = ("user", "username", "owner", "hub.jupyter.org/username", "created-by")
    return next((str(place[key]) for place in places for key in keys if place.get(key)), None)


def _labels(pods: list[Pods], sizes: list[PodGpus]) -> dict[str, str]:
    """What the pods with GPUs insist on, where they agree."""
    wanted = [kube_gpus.selector(each.spec) for each, size in zip(pods, sizes, strict=True) if size.count]
    names = dict.fromkeys(name for each in wanted for name in each)
    return {name: "+".join(sorted({each[name] for each in wanted if name in each})) for name in names}


def _constraint(labels: Mapping[str, str]) -> str | None:
    return "&".join(f"{name}={value}" for name, value in sorted(labels.items())) or None


def _bounds(pods: list[Pods], sizes: list[PodGpus]) -> tuple[int, int]:
    both = list(zip(pods, sizes, strict=True))
    return sum(each.least * size.count for each, size in both), sum(each.most * size.count for each, size in both)


def _layout(pods: list[Pods], sizes: list[PodGpus]) -> tuple[int | None, int | None]:
    """A pod's GPUs are on one node; pods of one GPU fit anywhere."""
    asking = [(each.count, size.count) for each, size in zip(pods, sizes, strict=True) if each.count and size.count]
    per_pod = {size for _, size in asking}
    if len(per_pod) != 1 or per_pod == {1}:
        return (1, 1) if asking == [(1, 1)] else (None, None)
    return per_pod.pop(), sum(count for count, _ in asking)


def _flavor(thing: Thing, around: Surroundings) -> str | None:
    """The model that the admitted flavor's nodes have, or that its name says."""
    assigned = [mapping(each) for each in items(mapping(thing.status.get("admission")), "podSetAssignments")]
    names = {str(flavor) for each in assigned for key, flavor in mapping(each.get("flavors")).items()
             if key in kube_gpus.WHOLE}  # fmt: skip
    models = {kube_gpus.model(around.flavors.get(name, {})) or normalise(name) for name in names} - {None}
    return str(models.pop()) if len(models) == 1 else None


def _priority(thing: Thing, around: Surroundings) -> int:
    stated = thing.spec.get("priority")
    if isinstance(stated, int) and not isinstance(stated, bool) and abs(stated) < 2**40:
        return stated
    return around.priorities.get(kube_kinds.priority_class(thing), 0)


def _node_names(thing: Thing) -> tuple[str, ...]:
    named = thing.spec.get("nodeName")
    return (str(named),) if named else ()


def _apart(drafts: list[Draft], family: Family, parsed: Parsed) -> list[Job]:
    """Each work once, with what its merged pods know: where it runs, and whether it runs at all."""
    by_uid = {draft.uid: draft for draft in drafts}
    pods: dict[str, list[Job]] = {}
    kept = []
    for draft in drafts:
        above = _counted_by(draft, family, by_uid)
        if above is None:
            kept.append(draft)
            continue
        parsed.merged += 1
        if draft.kind == "Pod":
            pods.setdefault(above, []).append(draft.job)
    return [_with_pods(draft, pods.get(draft.uid, [])) for draft in kept]


def _counted_by(draft: Draft, family: Family, by_uid: Mapping[str, Draft]) -> str | None:
    """The uid of the draft that this one is a part of; None if it counts itself."""
    if draft.kind == "Workload":
        return None
    workload = family.workload(draft.uid)
    if workload in by_uid and workload != draft.uid:
        return workload
    above = [owner for owner in family.ancestors(draft.uid) if owner in by_uid and owner != draft.uid]
    return above[-1] if above else None


def _with_pods(draft: Draft, pods: list[Job]) -> Job:
    if not pods or not draft.job.state.live:
        return draft.job
    running = [pod for pod in pods if pod.state is JobState.RUNNING]
    names = tuple(dict.fromkeys(name for pod in running for name in pod.node_names))
    job = msgspec.structs.replace(draft.job, node_names=names)
    if not draft.pods_tell:
        return job
    if not running and all(pod.state in (JobState.PENDING, JobState.HELD) for pod in pods):
        return msgspec.structs.replace(job, state=JobState.PENDING, start=None)
    starts = [pod.start for pod in running if pod.start]
    if running and job.state is JobState.PENDING:
        return msgspec.structs.replace(job, state=JobState.RUNNING, start=max(starts, default=None))
    return job
