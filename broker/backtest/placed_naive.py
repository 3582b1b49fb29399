"""Naive sharing on nodes: one blocking queue, jobs placed by the allocator's buddy allocator, capacity that moves."""

from dataclasses import dataclass, field
from heapq import heappop, heappush

from broker.backtest.naive import NaivePool, naive_next
from broker.backtest.replay import World, await_finish
from broker.sia.columns import NEVER, NOBODY
from broker.sia.heap import heap_remove
from broker.sia.placement import slots_of
from broker.sia.placement_floor import Floor


@dataclass(slots=True)
class PlacedNaive:
    """Jobs are served by rank, then in order of submit; `waiting` is a heap of (rank, job)."""

    pool: list[NaivePool]  # one
    slots: list[int]
    rank: list[float]
    floor: Floor
    waiting: list[tuple[float, int]] = field(default_factory=list)

    @classmethod
    def new(cls, gpus: list[int], rank: list[float], capacity: int, node_gpus: int) -> "PlacedNaive":
        floor = Floor.new(node_gpus, [], capacity // node_gpus)
        pool = NaivePool(capacity=floor.capacity(), goal=floor.capacity())
        return cls([pool], [slots_of(each, node_gpus) for each in gpus], rank, floor)


def replay_placed_naive_until(s: PlacedNaive, w: World, until: float) -> float:
    """As `naive_until`: ends, capacity, submits, then starts in order."""
    now = naive_next(w)
    while now <= until and now < NEVER:
        pool = s.pool[0]
        pool.held_s += (now - pool.now) * pool.capacity
        pool.busy_s += (now - pool.now) * pool.busy
        pool.now = now
        _finish(s, w, now)
        _take_capacity(s, w, now)
        _submit(s, w, now)
        _start(s, w, now)
        s.floor.give_back()
        pool.capacity = s.floor.capacity()
        pool.peak = max(pool.peak, pool.demand)
        now = naive_next(w)
    return now


def _finish(s: PlacedNaive, w: World, now: float) -> None:
    root = w.position[0].finish
    while root != NOBODY and w.finish[root].first <= now:
        w.position[0].finish = heap_remove(w.finish, root, root)
        w.plan[root].end = now
        s.floor.lift(root)
        s.pool[0].busy -= s.slots[root]
        s.pool[0].demand -= s.slots[root]
        root = w.position[0].finish


def _take_capacity(s: PlacedNaive, w: World, now: float) -> None:
    c, pool, size = w.position[0].capacities, s.pool[0], s.floor.size
    while c < w.position[0].capacities_known and w.capacity_at[c] <= now:
        goal = max(w.capacity[c], pool.goal) if w.raises[c] else w.capacity[c]
        pool.goal = goal // size * size
        c += 1
    w.position[0].capacities = c
    s.floor.hold(pool.goal)


def _submit(s: PlacedNaive, w: World, now: float) -> None:
    k = w.position[0].submitted
    while k < len(w.plan) and w.plan[k].submit <= now:
        s.pool[0].demand += s.slots[k]
        heappush(s.waiting, (s.rank[k], k))
        k += 1
    w.position[0].submitted = k


def _start(s: PlacedNaive, w: World, now: float) -> None:
    """A job that fits nowhere waits for more, and so does everybody behind it."""
    while s.waiting:
        j = s.waiting[0][1]
        cells = s.floor.loans.find(s.slots[j])
        if not cells:
            break
        heappop(s.waiting)
        s.floor.settle(j, cells)
        s.pool[0].busy += s.slots[j]
        w.plan[j].start = now
        await_finish(w, j, now + w.plan[j].duration, 0.0)
    s.floor.close_surplus(s.pool[0].goal)
