"""The replay on nodes: the same events in the same order as the pooled one, in plain Python."""

from broker.backtest.replay import World, await_finish, follow_log
from broker.sia.columns import NEVER, NOBODY, State
from broker.sia.heap import heap_remove
from broker.sia.placement_state import Nodes
from broker.sia.placement_step import cancel, decide, end, finish_drains, set_capacity, submit
from broker.sia.step import begin, next_wake


def replay_placed_until(s: State, n: Nodes, w: World, until: float) -> float:
    """Play all instants up to and including `until`; the time of the next instant, NEVER when all is done."""
    now = next_placed_instant(s, w)
    while now <= until and now < NEVER:
        begin(s, now)
        _finish_jobs(s, n, w, now)
        finish_drains(s, n, now)
        _take_capacity(s, n, w, now)
        _submit_jobs(s, n, w, now)
        decide(s, n, now)
        follow_log(s, w, now)
        now = next_placed_instant(s, w)
    return now


def next_placed_instant(s: State, w: World) -> float:
    position = w.position[0]
    now = next_wake(s)
    if position.submitted < len(w.plan):
        now = min(now, w.plan[position.submitted].submit)
    if position.finish != NOBODY:
        now = min(now, w.finish[position.finish].first)
    if position.capacities < position.capacities_known:
        now = min(now, w.capacity_at[position.capacities])
    return now


def _finish_jobs(s: State, n: Nodes, w: World, now: float) -> None:
    root = w.position[0].finish
    while root != NOBODY and w.finish[root].first <= now:
        w.position[0].finish = heap_remove(w.finish, root, root)
        w.plan[root].due, w.plan[root].end = 0, now
        if w.finish[root].second > 0:
            cancel(s, n, root, now)
        else:
            end(s, n, root, now)
        root = w.position[0].finish


def _take_capacity(s: State, n: Nodes, w: World, now: float) -> None:
    c = w.position[0].capacities
    while c < w.position[0].capacities_known and w.capacity_at[c] <= now:
        set_capacity(s, n, max(w.capacity[c], s.pool[0].goal) if w.raises[c] else w.capacity[c])
        c += 1
    w.position[0].capacities = c


def _submit_jobs(s: State, n: Nodes, w: World, now: float) -> None:
    k = w.position[0].submitted
    while k < len(w.plan) and w.plan[k].submit <= now:
        submit(s, n, k, now)
        if w.plan[k].cancel_at < NEVER:
            await_finish(w, k, w.plan[k].cancel_at, 1.0)
        k += 1
    w.position[0].submitted = k
