"""Naive sharing with capacity that moves: one blocking first-come-first-served queue over all that is held."""

from dataclasses import dataclass
from typing import NamedTuple

from broker.backtest.replay import World, await_finish
from broker.sia.columns import NEVER, NOBODY
from broker.sia.compiling import kernel
from broker.sia.heap import heap_remove


@dataclass(slots=True)
class NaivePool:
    """Named as the fields of the allocator's Pool, so that one driver serves both; there are no claims."""

    capacity: int = 0
    goal: int = 0
    busy: int = 0
    claimed: int = 0
    demand: int = 0
    peak: int = 0
    claims_peak: int = 0
    hold: int = 0
    head: int = 0  # first job that has not started
    now: float = 0.0
    held_s: float = 0.0
    busy_s: float = 0.0
    preemptions: int = 0
    resizes: int = 0
    lost: float = 0.0
    short_s: float = 0.0
    largest_lag: float = 0.0
    sensitive: int = 0
    missed: int = 0
    firm: int = 0
    firm_judged: int = 0
    firm_missed: int = 0


class NaiveState(NamedTuple):
    pool: list[NaivePool]  # one
    gpus: list[int]


@kernel
def naive_until(s: NaiveState, w: World, until: float) -> float:
    """As `replay_until`: ends, capacity, submits, then starts in order."""
    now = naive_next(w)
    while now <= until and now < NEVER:
        pool = s.pool[0]
        pool.held_s += (now - pool.now) * pool.capacity
        pool.busy_s += (now - pool.now) * pool.busy
        pool.now = now
        naive_finish(s, w, now)
        naive_capacity(s, w, now)
        naive_submit(s, w, now)
        naive_start(s, w, now)
        pool.capacity = max(pool.goal, pool.busy)
        pool.peak = max(pool.peak, pool.demand)
        now = naive_next(w)
    return now


@kernel
def naive_next(w: World) -> float:
    now, position = NEVER, w.position[0]
    if position.submitted < len(w.plan):
        now = min(now, w.plan[position.submitted].submit)
    if position.finish != NOBODY:
        now = min(now, w.finish[position.finish].first)
    if position.capacities < position.capacities_known:
        now = min(now, w.capacity_at[position.capacities])
    return now


@kernel
def naive_finish(s: NaiveState, w: World, now: float) -> None:
    root = w.position[0].finish
    while root != NOBODY and w.finish[root].first <= now:
        w.position[0].finish = heap_remove(w.finish, root, root)
        w.plan[root].end = now
        s.pool[0].busy -= s.gpus[root]
        s.pool[0].demand -= s.gpus[root]
        root = w.position[0].finish


@kernel
def naive_capacity(s: NaiveState, w: World, now: float) -> None:
    c = w.position[0].capacities
    while c < w.position[0].capacities_known and w.capacity_at[c] <= now:
        s.pool[0].goal = max(w.capacity[c], s.pool[0].goal) if w.raises[c] else w.capacity[c]
        s.pool[0].capacity = max(s.pool[0].capacity, s.pool[0].goal)
        c += 1
    w.position[0].capacities = c


@kernel
def naive_submit(s: NaiveState, w: World, now: float) -> None:
    k = w.position[0].submitted
    while k < len(w.plan) and w.plan[k].submit <= now:
        s.pool[0].demand += s.gpus[k]
        k += 1
    w.position[0].submitted = k


@kernel
def naive_start(s: NaiveState, w: World, now: float) -> None:
    """A job that no capacity reached so far could hold waits for more, and so does everybody behind it."""
    j = s.pool[0].head
    while j < w.position[0].submitted and s.pool[0].busy + s.gpus[j] <= s.pool[0].goal:
        s.pool[0].busy += s.gpus[j]
        w.plan[j].start = now
        await_finish(w, j, now + w.plan[j].duration, 0.0)
        j += 1
    s.pool[0].head = j
