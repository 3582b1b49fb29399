"""What others have written down of who is promised how many GPUs: Slurm's associations, Kueue's ClusterQueues.

Text in, GPUs by tenant out. What is not understood is refused as a whole: a promise that is overlooked would be lent.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from broker.model.gpu import satisfies
from broker.queues.gpu_names import named
from broker.queues.kube_documents import objects
from broker.queues.kube_gpus import WHOLE, mapping, model, quantity
from broker.queues.parsed import Parsed, Unfit, Unreadable

Labels = Mapping[str, Mapping[str, str]]
"""Of the nodes that a flavor stands for, by its name."""
_LIMIT = re.compile(r"gres/gpu(?::(?P<kind>[^:=]+))?=(?P<count>\d{1,9})", re.ASCII)
_GPU_ITEM = re.compile(r"gres/gpu(?:[:=]|$)")
_COLUMNS = ("account", "user", "grptres")
_NARROW = "narrow it down: sacctmgr -p show assoc cluster=NAME"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that is asked about: its GPU models, the user's own names of GPUs (lower-case), and the tenants of
    which is stated elsewhere what they are promised in it: what is written of those is not looked at.
    """

    models: tuple[str, ...]
    aliases: Mapping[str, str] = {}
    stated: frozenset[str] = frozenset()


def entitlements(text: str, source_format: str, wanted: Wanted) -> dict[str, int]:
    """GPUs by tenant; those without any are left out. `source_format` is of `broker.config`. Raises Unreadable."""
    found = source_format if source_format != "auto" else _detected(text)
    if found == "sacctmgr":
        return _positive(_of_accounts(text, wanted))
    return _positive(_of_cluster_queues(text, wanted))


def _detected(text: str) -> str:
    if "|" in text.lstrip().partition("\n")[0]:
        return "sacctmgr"
    if text.lstrip().startswith(("{", "[")) or re.search(r"^\s*(?:- )?kind:", text, re.MULTILINE):
        return "clusterqueue"
    raise Unreadable("is neither what sacctmgr -p show assoc prints nor ClusterQueues as JSON or YAML; set its format")


def _positive(shares: Mapping[str, int]) -> dict[str, int]:
    return {tenant: gpus for tenant, gpus in sorted(shares.items()) if gpus}


def _of_accounts(text: str, wanted: Wanted) -> dict[str, int]:
    """The rows of accounts: those without a user. A user's own limit is a part of its account's."""
    found: dict[str, int] = {}
    for number, row in _rows(text):
        account = row["account"]
        if row["user"] or not row["grptres"] or account in wanted.stated:
            continue
        try:
            gpus = _limit(row["grptres"].lower(), wanted)
        except Unfit as unfit:
            raise Unreadable(f"row {number} (account {account}) {unfit.reason}: {unfit.value}") from None
        if gpus is None:
            continue
        if account in found:
            raise Unreadable(f"has more than one GPU limit of account {account}; {_NARROW}")
        found[account] = gpus
    return found


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = text.replace("\r\n", "\n").lstrip("\n").split("\n")
    columns = _header(lines[0])
    if lines[-1]:
        raise Unreadable("has no line end at its end: it is cut off, or still being written")
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.strip():
            continue
        if len(cells) != len(columns):
            raise Unreadable(f"row {number} has not the columns of the header")
        yield number, dict(zip(columns, cells, strict=True))


def _header(line: str) -> list[str]:
    columns = line.strip().lower().split("|")
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise Unreadable(f"has no column {', '.join(missing)}: print it with sacctmgr -p show assoc, with its header")
    return columns


def _limit(tres: str, wanted: Wanted) -> int | None:
    """GPUs of the pool's models, None without a limit on GPUs. Raises Unfit.

    Where types are named, only they promise anything, and a limit on all GPUs bounds their sum.
    """
    total, typed = None, dict[str, int]()
    for item in (item.strip() for item in tres.split(",")):
        if not _GPU_ITEM.match(item):
            continue
        limit = _LIMIT.fullmatch(item)
        if limit is None:
            raise Unfit("has a limit on GPUs that cannot be understood", item)
        if limit["kind"]:
            typed[limit["kind"]] = int(limit["count"])
        else:
            total = int(limit["count"])
    if not typed:
        return total
    here = sum(count for kind, count in typed.items() if _is_here(kind, wanted))
    return here if total is None else min(here, total)


def _is_here(kind: str, wanted: Wanted) -> bool:
    """Pieces of GPUs (MIG) are nobody's whole ones."""
    found = named(kind, wanted.aliases)
    if not found.known:
        raise Unfit("limits a GPU type that is not known; say what it is in gpu_aliases", kind)
    return not found.piece and found.model is not None and _serves(found.model, wanted)


def _of_cluster_queues(text: str, wanted: Wanted) -> dict[str, int]:
    """By the namespaces of LocalQueues; a ClusterQueue that has none goes by its own name."""
    documents = _objects(text)
    quotas = {_name(each): each for each in documents if each.get("kind") == "ClusterQueue"}
    if not quotas:
        raise Unreadable("holds no ClusterQueue: kubectl get clusterqueues,localqueues,resourceflavors -A -o json")
    users = _namespaces(documents, quotas)
    labels = {_name(each): _node_labels(each) for each in documents if each.get("kind") == "ResourceFlavor"}
    found: dict[str, int] = defaultdict(int)
    for name, queue in quotas.items():
        tenant = _tenant(name, users.get(name, {name}), wanted.stated)
        if tenant:
            found[tenant] += _quota(name, queue, labels, wanted)
    return found


def _objects(text: str) -> list[dict[str, Any]]:
    """Those that there still are. A list that is not whole would leave somebody without what was promised."""
    parsed = Parsed()
    found = objects(text, parsed)
    if not parsed.whole:
        raise Unreadable("; ".join(parsed.account()))
    if not all(isinstance(each, dict) for each in found):
        raise Unreadable("holds something that is no Kubernetes object")
    return [each for each in found if not each.get("deleted")]


def _name(document: Mapping[str, Any]) -> str:
    name = mapping(document.get("metadata")).get("name")
    if not isinstance(name, str) or not name:
        raise Unreadable(f"holds a {document.get('kind')} without a name")
    return name


def _node_labels(flavor: Mapping[str, Any]) -> Mapping[str, str]:
    found = mapping(mapping(flavor.get("spec")).get("nodeLabels"))
    return {name: str(value) for name, value in found.items()}


def _namespaces(documents: list[dict[str, Any]], quotas: Collection[str]) -> dict[str, set[str]]:
    """By ClusterQueue."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in documents:
        if each.get("kind") != "LocalQueue":
            continue
        namespace = mapping(each.get("metadata")).get("namespace")
        queue = mapping(each.get("spec")).get("clusterQueue")
        where = f"LocalQueue {namespace}/{_name(each)}"
        if not isinstance(namespace, str) or not namespace:
            raise Unreadable(f"holds a LocalQueue {_name(each)} without a namespace")
        if not isinstance(queue, str) or queue not in quotas:
            raise Unreadable(f"{where} is of ClusterQueue {queue}, which is not in the list")
        found[queue].add(namespace)
    return found


def _tenant(name: str, users: set[str], stated: frozenset[str]) -> str | None:
    """Whom the quota is promised to; None where it is stated elsewhere. Nobody can tell how several share one."""
    if users <= stated:
        return None
    if len(users) > 1:
        shared = ", ".join(sorted(users))
        raise Unreadable(f"ClusterQueue {name} is shared by {shared}: state each one's part in [[tenant]] entitlements")
    return next(iter(users))


class _Share(NamedTuple):
    """What one flavor promises: `model` None where neither its nodes' labels nor its name say."""

    flavor: str
    model: str | None
    gpus: int


def _quota(name: str, queue: Mapping[str, Any], labels: Labels, wanted: Wanted) -> int:
    """Of the flavors with the pool's models; of all, where no flavor says anything else."""
    spec = queue.get("spec")
    if not isinstance(spec, dict) or "resources" in spec:
        raise Unreadable(f"ClusterQueue {name} has no spec of Kueue's v1beta1 or later")
    try:
        shares = [share for share in _shares(spec, labels, wanted) if share.gpus]
    except Unfit as unfit:
        raise Unreadable(f"ClusterQueue {name} {unfit.reason}: {unfit.value}") from None
    here = [share for share in shares if share.model is None or _serves(share.model, wanted)]
    unclear = ", ".join(share.flavor for share in here if share.model is None)
    if unclear and len(here) < len(shares):
        why = f"has other GPU models beside flavors that name none ({unclear}): list resourceflavors too"
        raise Unreadable(f"ClusterQueue {name} {why}")
    return sum(share.gpus for share in here)


def _shares(spec: Mapping[str, Any], labels: Labels, wanted: Wanted) -> Iterator[_Share]:
    """Raises Unfit."""
    for group in _mappings(spec, "resourceGroups"):
        for flavor in _mappings(group, "flavors"):
            name = str(flavor.get("name"))
            whole = [each for each in _mappings(flavor, "resources") if str(each.get("name")) in WHOLE]
            gpus = sum(quantity(resource.get("nominalQuota")) for resource in whole)
            yield _Share(name, model(labels.get(name, {})) or named(name, wanted.aliases).model, gpus)


def _serves(model: str, wanted: Wanted) -> bool:
    """As a job that wants the model would be taken by the pool."""
    return any(satisfies(model, own) or satisfies(own, model) for own in wanted.models)


def _mappings(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Raises Unfit for anything but a list of them; one that is left out is empty."""
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Unfit(f"has {name} that are no list of objects", found)
    return found
