"""Which nodes an order can start on: a proposal, from what the queue says of where jobs run. Pure.

The slots that orders count are pooled. Here they are placed: a job of at most one node on one node, the fullest that
has room, a larger one on whole nodes. Names are those of nodes on which something runs; others are numbered.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import chain, islice

import msgspec

from broker.model.job import Job, JobState
from broker.model.policy import Policy, Pool
from broker.model.reservation import Reservation
from broker.schedule.orders import Order, PoolSchedule, Spot
from broker.schedule.promises import reservations_of, source_of

_HOLDS = frozenset({JobState.RUNNING, JobState.SUSPENDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """Nodes of one kind that one source supplies. Without patterns, a node of any name may be one of them."""

    source: str
    nodes: int
    gpus_per_node: int
    patterns: tuple[str, ...] = ()


@dataclass(slots=True)
class _Node:
    name: str
    named: bool
    gpus: int
    free: int


def racks_of(pool: Pool, policy: Policy, reservations: Sequence[Reservation], now: datetime) -> tuple[Rack, ...]:
    """The pool's slots as `slots_of` counts them, in nodes."""
    own = [
        Rack(
            source=source_of(index, nodes),
            nodes=nodes.nodes,
            gpus_per_node=nodes.gpus_per_node,
            patterns=nodes.node_patterns,
        )
        for index, nodes in enumerate(pool.own)
    ]
    held = [
        Rack(source=each.id, nodes=each.usable_gpus // each.gpus_per_instance, gpus_per_node=each.gpus_per_instance)
        for each in reservations_of(pool, policy, reservations, now)
        if each.gpus_per_instance
    ]
    return (*own, *held)


class _Floor:
    """Nodes by how much of each is free, so that the fullest with room is found without looking at all."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self._nodes = nodes
        self._largest = max((node.gpus for node in nodes), default=0)
        self._by_free: dict[int, list[int]] = {}
        for at, node in enumerate(nodes):
            self._by_free.setdefault(node.free, []).append(at)

    def occupy(self, held: Iterable[Job]) -> int:
        """Take what running jobs hold. Returns how many do not say where they run: those are put somewhere."""
        by_name = {node.name: at for at, node in enumerate(self._nodes) if node.named}
        somewhere = []
        for job in held:
            for name in job.node_names:
                if name in by_name:
                    self._use(by_name[name], -(-job.gpus // len(job.node_names)))
            if not job.node_names:
                somewhere.append(job)
        for job in sorted(somewhere, key=lambda job: -job.gpus):
            self.take(job)
        return len(somewhere)

    def take(self, job: Job) -> tuple[Spot, ...]:
        """Empty if the job fits nowhere."""
        if job.nodes and job.nodes > 1:
            each = job.gpus_per_node or -(-job.gpus // job.nodes)
            parts = [(at, each) for at in islice(self._fullest(each), job.nodes)]
            return self._spots(parts) if len(parts) == job.nodes else ()
        if job.gpus <= self._largest:
            return self._spots([(at, job.gpus) for at in islice(self._fullest(job.gpus), 1)])
        left, parts = job.gpus, []
        for at in self._empty():
            parts.append((at, min(left, self._nodes[at].gpus)))
            left -= self._nodes[at].gpus
            if left <= 0:
                return self._spots(parts)
        return ()

    def _fullest(self, least: int) -> Iterator[int]:
        return chain.from_iterable(self._by_free[free] for free in sorted(self._by_free) if free >= least)

    def _empty(self) -> Iterator[int]:
        """Whole nodes, the largest first."""
        for free in sorted(self._by_free, reverse=True):
            yield from (at for at in self._by_free[free] if self._nodes[at].gpus == free)

    def _spots(self, parts: Sequence[tuple[int, int]]) -> tuple[Spot, ...]:
        for at, gpus in parts:
            self._use(at, gpus)
        return tuple(Spot(node=self._nodes[at].name, gpus=gpus, named=self._nodes[at].named) for at, gpus in parts)

    def _use(self, at: int, gpus: int) -> None:
        node = self._nodes[at]
        beside = self._by_free[node.free]
        del beside[bisect_left(beside, at)]
        node.free -= gpus
        insort(self._by_free.setdefault(node.free, []), at)


def with_places(found: PoolSchedule, racks: Sequence[Rack], jobs: Mapping[str, Job]) -> PoolSchedule:
    """Grants first, then loans, each the oldest first. Single slots are no nodes, and have no places."""
    if all(rack.gpus_per_node == 1 for rack in racks):
        return found
    held = [job for job in jobs.values() if job.state in _HOLDS]
    floor = _Floor(_inventory(racks, {name for job in held for name in job.node_names}))
    lost = floor.occupy(held)
    grants, loans = (_placed(floor, orders, jobs) for orders in (found.grants, found.loans))
    return msgspec.structs.replace(
        found, grants=grants, loans=loans, notes=(*found.notes, *_notes((*grants, *loans), lost))
    )


def _inventory(racks: Sequence[Rack], names: Iterable[str]) -> list[_Node]:
    """Each name in the first rack that it may belong to and that is not full of names; the rest is numbered."""
    found: list[list[_Node]] = [[] for _ in racks]
    for name in sorted(names):
        for rack, nodes in zip(racks, found, strict=True):
            fits = not rack.patterns or any(fnmatchcase(name, pattern) for pattern in rack.patterns)
            if fits and len(nodes) < rack.nodes:
                nodes.append(_Node(name, True, rack.gpus_per_node, rack.gpus_per_node))
                break
    for rack, nodes in zip(racks, found, strict=True):
        for number in range(len(nodes), rack.nodes):
            nodes.append(_Node(f"{rack.source} #{number + 1}", False, rack.gpus_per_node, rack.gpus_per_node))
    return [node for nodes in found for node in nodes]


def _placed(floor: _Floor, orders: tuple[Order, ...], jobs: Mapping[str, Job]) -> tuple[Order, ...]:
    spots = {}
    for order in sorted(orders, key=lambda order: (order.since, order.job)):
        spots[order.job] = floor.take(jobs[order.job])
    return tuple(msgspec.structs.replace(order, places=spots[order.job]) for order in orders)


def _notes(orders: Sequence[Order], lost: int) -> tuple[str, ...]:
    if not orders:
        return ()
    apart = [order.job for order in orders if not order.places]
    notes = []
    if apart:
        notes.append(f"{', '.join(apart)}: the GPUs are free, but not together on nodes as jobs sit now")
    if lost:
        notes.append(f"{lost} running jobs do not say on which nodes they are: places are a guess")
    if any(not spot.named for order in orders for spot in order.places):
        notes.append("nodes on which nothing runs have numbers here, for the queue does not tell their names")
    return tuple(notes)
