"""Which objects are the same work: a Job, its Workload and its Pods are one."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.queues.kube_gpus import items, mapping

_JOB_LABEL = "kueue.x-k8s.io/job-uid"
_PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"


def owners(meta: Mapping[str, Any]) -> list[str]:
    """Uids of what it belongs to. A node owns the pods that were written on it, which says nothing."""
    found = [mapping(each) for each in items(meta, "ownerReferences")]
    return [str(each["uid"]) for each in found if each.get("uid") and each.get("kind") != "Node"]


class Family:
    """The objects of one reading by uid, and which of them a Workload stands for."""

    def __init__(self, metas: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """By kind and metadata."""
        self._owners: dict[str, list[str]] = {}
        self._workload_of: dict[str, str] = {}
        named: dict[tuple[str, str], str] = {}
        prebuilt: list[tuple[str, tuple[str, str]]] = []
        for kind, meta in metas:
            uid, space = str(meta.get("uid") or ""), str(meta.get("namespace") or "")
            labels = mapping(meta.get("labels"))
            self._owners[uid] = owners(meta)
            if kind == "Workload":
                named[space, str(meta.get("name"))] = uid
                self._workload_of |= dict.fromkeys(workers_of(meta), uid)
            elif labels.get(_PREBUILT):
                prebuilt.append((uid, (space, str(labels[_PREBUILT]))))
        self._workload_of |= {uid: named[workload] for uid, workload in prebuilt if workload in named}

    def workload(self, uid: str) -> str | None:
        """The uid of the Workload that stands for the object or for one that it belongs to."""
        return next((found for each in [uid, *self.ancestors(uid)] if (found := self._workload_of.get(each))), None)

    def ancestors(self, uid: str) -> list[str]:
        """Nearest first, also those that were not read."""
        found: dict[str, None] = {}
        ahead = list(self._owners.get(uid, ()))
        while ahead:
            owner = ahead.pop(0)
            if owner not in found and owner != uid:
                found[owner] = None
                ahead += self._owners.get(owner, ())
        return list(found)


def workers_of(meta: Mapping[str, Any]) -> list[str]:
    """What a Workload queues for: its owners, or the job that its label names."""
    labelled = mapping(meta.get("labels")).get(_JOB_LABEL)
    return list(dict.fromkeys([*owners(meta), *([str(labelled)] if labelled else [])]))
