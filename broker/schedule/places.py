"""Which nodes an order can start on: a proposal, from what the queue says of where jobs run. Pure.

The slots that orders count are pooled. Here they are placed: a job of at most one node on one node, the fullest that
has room, a larger one on whole nodes. Names are those of nodes on which something runs; others are numbered.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

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


def with_places(found: PoolSchedule, racks: Sequence[Rack], jobs: Mapping[str, Job]) -> PoolSchedule:
    """Grants first, then loans, each the oldest first. Single slots are no nodes, and have no places."""
    if all(rack.gpus_per_node == 1 for rack in racks):
        return found
    held = [job for job in jobs.values() if job.state in _HOLDS]
    nodes = _inventory(racks, {name for job in held for name in job.node_names})
    lost = _occupy(nodes, held)
    grants, loans = (_placed(nodes, orders, jobs) for orders in (found.grants, found.loans))
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


def _occupy(nodes: Sequence[_Node], held: Iterable[Job]) -> int:
    """Take what running jobs hold. Returns how many of them do not say where they run: those are put somewhere."""
    by_name = {node.name: node for node in nodes if node.named}
    somewhere = []
    for job in held:
        known = [by_name[name] for name in job.node_names if name in by_name]
        for node in known:
            node.free = max(0, node.free - -(-job.gpus // len(job.node_names)))
        if not job.node_names:
            somewhere.append(job)
    for job in sorted(somewhere, key=lambda job: -job.gpus):
        _take(nodes, job)
    return len(somewhere)


def _placed(nodes: Sequence[_Node], orders: tuple[Order, ...], jobs: Mapping[str, Job]) -> tuple[Order, ...]:
    spots = {}
    for order in sorted(orders, key=lambda order: (order.since, order.job)):
        spots[order.job] = _take(nodes, jobs[order.job])
    return tuple(msgspec.structs.replace(order, places=spots[order.job]) for order in orders)


def _take(nodes: Sequence[_Node], job: Job) -> tuple[Spot, ...]:
    """Empty if the job fits nowhere."""
    most = max(node.gpus for node in nodes) if nodes else 0
    if job.nodes and job.nodes > 1:
        each = job.gpus_per_node or -(-job.gpus // job.nodes)
        chosen = [node for node in sorted(nodes, key=lambda node: node.free) if node.free >= each][: job.nodes]
        return _use([(node, each) for node in chosen]) if len(chosen) == job.nodes else ()
    if job.gpus <= most:
        room = [node for node in nodes if node.free >= job.gpus]
        return _use([(min(room, key=lambda node: node.free), job.gpus)]) if room else ()
    left, parts = job.gpus, []
    for node in sorted((node for node in nodes if node.free == node.gpus), key=lambda node: -node.gpus):
        if left > 0:
            parts.append((node, min(left, node.gpus)))
            left -= node.gpus
    return _use(parts) if left <= 0 else ()


def _use(parts: Sequence[tuple[_Node, int]]) -> tuple[Spot, ...]:
    for node, gpus in parts:
        node.free -= gpus
    return tuple(Spot(node=node.name, gpus=gpus, named=node.named) for node, gpus in parts)


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
