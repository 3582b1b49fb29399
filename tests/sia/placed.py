"""Tiny random pools of nodes, played to the end, and the placed static schedule read off its definition."""

import random
from collections.abc import Iterable

from broker.backtest.placed_replay import next_placed_instant, replay_placed_until
from broker.backtest.replay import World
from broker.sia.columns import CANCELLED, NEVER, State
from broker.sia.placement_state import Nodes
from tests.sia.tiny import Adversary, Instance, build, draw, latest

SIZES = (1, 2, 2, 4, 4, 8)


def draw_placed(rng: random.Random, extras: Iterable[str] = (), off: Iterable[int] = ()) -> tuple[Instance, int]:
    """As the pooled instances, in slots of nodes; also the nodes' size."""
    instance, size = draw(rng, extras, off), rng.choice(SIZES)
    nodes = [rng.randint(1, 3) for _ in instance.entitlements]
    for job in instance.jobs:
        wide, large = job.most // job.gpus, job.gpus > instance.entitlements[job.tenant]
        job.gpus = rng.randint(1, rng.choice((max(1, size // 2), size, size * nodes[job.tenant])))
        job.gpus += size * nodes[job.tenant] if large else 0
        job.most = job.gpus * wide
    total = sum(nodes)
    instance.entitlements = [size * count for count in nodes]
    instance.kept = [rng.randint(0, share) for share in instance.entitlements] if instance.kept else []
    held = [rng.choice((total, rng.randint(max(nodes), total))) for _ in instance.capacity]
    instance.capacity = [(at, size * count) for (at, _), count in zip(instance.capacity, held, strict=True)]
    return instance, size


def build_placed(instance: Instance, size: int) -> tuple[State, Nodes, World]:
    state, world = build(instance)
    nodes = Nodes.new(size, instance.entitlements, instance.capacity[0][1], instance.rules.reclaim_s)
    return state, nodes, world


def play_placed(
    instance: Instance, size: int, rng: random.Random | None = None, kind: str = ""
) -> tuple[State, World, int]:
    """Also the largest shortfall of capacity below the claims."""
    state, nodes, world = build_placed(instance, size)
    adversary = Adversary.against(rng, kind)
    short = 0
    now = next_placed_instant(state, world)
    while now < NEVER:
        if adversary is not None:
            adversary.forecast(state, world.plan)
        now = replay_placed_until(state, nodes, world, now)
        check_places(state, nodes)
        short = max(short, state.pool[0].short)
    return state, world, short


def check_places(state: State, nodes: Nodes) -> None:
    """No slot is used twice; who holds slots has cells for them, inside one node or whole nodes, on nodes held."""
    used: set[tuple[int, int]] = set()
    floor = nodes.floor
    for cells in [*floor.place.values(), *floor.left.values()]:
        for cell in cells:
            slots = {(cell.node, slot) for slot in range(cell.offset, cell.offset + cell.width)}
            assert not used & slots
            assert floor.held[cell.node]
            assert cell.offset % cell.width == 0
            assert len(cells) == 1 or cell.width == nodes.size
            used |= slots
    assert len(used) == floor.busy_slots() <= state.pool[0].capacity
    for j, job in enumerate(state.jobs):
        holds = sum(cell.width for cell in floor.place.get(j, ()))
        assert (job.held > 0) == (holds > 0)
        assert job.held <= holds
        assert (job.leaving > 0) == (j in floor.left)


def placed_static_ends(instance: Instance, size: int, state: State) -> list[float]:
    """Ends under STATIC on whole nodes, with every work known: what a cancelled job really did is all of its work."""
    ends = [NEVER] * len(instance.jobs)
    for tenant, share in enumerate(instance.entitlements):
        placed: list[tuple[float, frozenset[int]]] = []
        turn = 0.0
        for j, (job, course) in enumerate(zip(instance.jobs, instance.plan, strict=True)):
            if job.tenant != tenant or job.gpus > share:
                continue
            cancelled = state.jobs[j].state == CANCELLED
            leaves = course.cancel_at if cancelled else NEVER
            work = state.jobs[j].service if cancelled else course.duration
            at = max(course.submit, turn)
            times = [at, *sorted({end for end, _ in placed if end > at})]
            at = next(at for at in times if _where(placed, job.gpus, size, share, at, 0.0) is not None)
            turn = max(turn, min(at, leaves))
            ends[j] = leaves
            if at < leaves:
                spot = _where(placed, job.gpus, size, share, at, instance.rules.reclaim_s)
                spot = spot if spot is not None else _where(placed, job.gpus, size, share, at, 0.0)
                assert spot is not None
                end = round(min(at + work, leaves), 6)
                ends[j] = end if work < course.duration else min(at + course.duration, leaves)
                placed.append((end, spot))
    return ends


def _where(
    placed: list[tuple[float, frozenset[int]]], gpus: int, size: int, share: int, at: float, rest_s: float
) -> frozenset[int] | None:
    """Slots for a job: of the free aligned cells that are in no larger free one, the smallest that is enough."""
    taken = {slot for end, slots in placed if end > at - rest_s for slot in slots}
    whole = [range(node, node + size) for node in range(0, share, size) if not taken & set(range(node, node + size))]
    if gpus > size:
        count = -(-gpus // size)
        return frozenset(slot for node in whole[:count] for slot in node) if len(whole) >= count else None
    slots = 1
    while slots < gpus:
        slots *= 2
    width = slots
    while width <= size:
        for first in range(0, share, width):
            above = first // (2 * width) * 2 * width
            if not taken & set(range(first, first + width)) and (
                width == size or taken & set(range(above, above + 2 * width))
            ):
                return frozenset(range(first, first + slots))
        width *= 2
    return None


def largest_placed_excess(
    instance: Instance, size: int, rng: random.Random | None = None, kind: str = ""
) -> float | None:
    """Largest end - (STATIC end + reclaim time); None where nodes did not always cover the claims."""
    state, world, short = play_placed(instance, size, rng, kind)
    if short:
        return None
    return latest(world, placed_static_ends(instance, size, state)) - instance.rules.reclaim_s
