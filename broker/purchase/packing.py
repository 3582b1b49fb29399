"""Does a job fit? Summed GPUs are not capacity.

A job that spans nodes fits only into one zone of one cloud, its GPUs per node must be free on single instances, and
all its nodes are distinct. So free GPUs are kept by node, in sites: one place with one GPU model. Within a site nodes
stand in bays, which differ in who may use them and when. Each bay sorts its nodes by how many GPUs they have free, so
that finding the tightest fit costs as much for a thousand nodes as for ten.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from heapq import heappop, heappush

import msgspec

from broker.model.gpu import satisfies
from broker.model.place import Place
from broker.purchase.needs import Need, Standing


class Audience(IntEnum):
    """Who may use the nodes of a bay."""

    WARM = 0
    """In use, ours: the jobs that run are there, and what they leave free is free."""

    FOREIGN = 1
    """In use, bought by others: only jobs that run already can be there."""

    FREE = 2
    """Not in use: for what waits. What runs is not there, whatever the queue says."""

    OWN = 3
    """Not from a reservation: for what runs there by its node names, and for what waits."""

    ANY = 4
    """Not from a reservation, and nothing tells which jobs run there: for all."""


class Node:
    """One instance. `rank` orders equals: lower is filled first. `touched` is whether any need was ever placed."""

    __slots__ = ("free", "lot", "rank", "touched")

    def __init__(self, free: int, lot: str, rank: tuple[object, ...]) -> None:
        self.free = free
        self.lot = lot
        self.rank = rank
        self.touched = False


class BayKey(msgspec.Struct, frozen=True, kw_only=True):
    """What all nodes of a bay have in common. They can be used in [opens, closes). `kept` are bought for a job that
    still waits.
    """

    place: Place | None
    gpu_model: str
    machine_type: str
    match: tuple[tuple[str, str], ...]
    audience: Audience
    opens: datetime
    closes: datetime
    interruptible: bool = False
    kept: bool = False
    own: tuple[str, int] | None = None

    def admits(self, need: Need) -> bool:
        """A running job is where it is, however long the node can be used; what waits must fit in entirely."""
        if self.interruptible and not need.preemptible:
            return False
        if need.standing is Standing.RUNNING:
            return self._may_run(need)
        return self.audience is not Audience.FOREIGN and self.opens <= need.begins and need.ends <= self.closes

    def _may_run(self, need: Need) -> bool:
        if need.own is not None:
            return self.own == (need.pool, need.own)
        return self.audience in (Audience.WARM, Audience.FOREIGN, Audience.ANY)


class Bay:
    """Nodes of one kind, by free GPUs. Entries of a heap that no longer hold are dropped when met."""

    def __init__(self, key: BayKey) -> None:
        self.key = key
        self.free_gpus = 0
        self._heaps: dict[int, list[tuple[tuple[object, ...], int, Node]]] = {}
        self._counts: dict[int, int] = {}
        self._sequence = 0

    def add(self, node: Node) -> None:
        self._sequence += 1
        self.free_gpus += node.free
        self._counts[node.free] = self._counts.get(node.free, 0) + 1
        heappush(self._heaps.setdefault(node.free, []), (node.rank, self._sequence, node))

    def holding(self, gpus: int) -> int:
        """How many nodes have at least so many free."""
        return sum(count for free, count in self._counts.items() if free >= gpus)

    def tightest(self, gpus: int) -> int | None:
        """The least number of free GPUs, at least `gpus`, that a node here has."""
        return min((free for free, count in self._counts.items() if count and free >= gpus), default=None)

    def loosest(self) -> int:
        return max((free for free, count in self._counts.items() if count), default=0)

    def pop(self, free: int) -> Node:
        """The first node, by rank, with exactly so many free; it leaves the bay until it is added again."""
        heap = self._heaps[free]
        self._counts[free] -= 1
        self.free_gpus -= free
        return heappop(heap)[2]

    def remove(self, node: Node) -> None:
        """Take out a given node (its job ended, so that its place among the others changes)."""
        heap = self._heaps[node.free]
        index = next(index for index, entry in enumerate(heap) if entry[2] is node)
        self._counts[node.free] -= 1
        self.free_gpus -= node.free
        heap[index] = heap[-1]
        heap.pop()
        heap.sort()


class Placement(msgspec.Struct, frozen=True):
    """Where a need went: GPUs taken from nodes of bays."""

    parts: tuple[tuple[Bay, Node, int], ...]

    def undo(self) -> None:
        for bay, node, gpus in self.parts:
            bay.remove(node)
            node.free += gpus
            bay.add(node)


class Site:
    """One GPU model in one place: the widest thing that a single job can span."""

    def __init__(self, place: Place | None, gpu_model: str) -> None:
        self.place = place
        self.gpu_model = gpu_model
        self.bays: list[Bay] = []

    def serves(self, need: Need) -> bool:
        return need.model is None or satisfies(need.model, self.gpu_model)

    def admitting(self, need: Need, *, sparing: bool = False) -> list[Bay]:
        """The bays that the need may use; without the kept ones when it is `sparing`."""
        if not self.serves(need):
            return []
        return [bay for bay in self.bays if bay.key.admits(need) and not (sparing and bay.key.kept)]


def place(need: Need, sites: Iterable[Site], *, sparing: bool = False) -> Placement | None:
    """Take what the need wants from the first site that it fits into; None if it fits into none."""
    for site in sites:
        bays = site.admitting(need, sparing=sparing)
        if bays and fits(need, bays):
            parts = _take_nodes(need, bays) if need.gpus_per_node else _take_any(need.gpus, bays)
            return _settle(parts)
    return None


def fits(need: Need, bays: Sequence[Bay]) -> bool:
    """Whether the nodes of these bays, all of one site, hold the need now."""
    if need.gpus_per_node:
        return free_nodes(bays, need.gpus_per_node) >= need.nodes
    return free_gpus(bays) >= need.gpus


def free_nodes(bays: Iterable[Bay], gpus: int) -> int:
    return sum(bay.holding(gpus) for bay in bays)


def free_gpus(bays: Iterable[Bay]) -> int:
    return sum(bay.free_gpus for bay in bays)


def _take_nodes(need: Need, bays: Sequence[Bay]) -> list[tuple[Bay, Node, int]]:
    """The tightest nodes; each leaves its bay until all are found, so that no node serves twice."""
    return [_pop_tightest(bays, need.gpus_per_node) for _ in range(need.nodes)]


def _take_any(gpus: int, bays: Sequence[Bay]) -> list[tuple[Bay, Node, int]]:
    """As few nodes as possible: whole ones first, and the tightest for the rest."""
    parts: list[tuple[Bay, Node, int]] = []
    while gpus > 0:
        loosest = max(bay.loosest() for bay in bays)
        parts.append(_pop_tightest(bays, min(gpus, loosest)))
        gpus -= parts[-1][2]
    return parts


def _pop_tightest(bays: Sequence[Bay], gpus: int) -> tuple[Bay, Node, int]:
    found = [(free, index) for index, bay in enumerate(bays) if (free := bay.tightest(gpus)) is not None]
    free, index = min(found)
    return bays[index], bays[index].pop(free), gpus


def _settle(parts: list[tuple[Bay, Node, int]]) -> Placement:
    for bay, node, gpus in parts:
        node.free -= gpus
        node.touched = True
        bay.add(node)
    return Placement(tuple(parts))
