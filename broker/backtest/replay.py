"""The allocator's state machine on a trace: the trace's durations decide when a running job really ends."""

from dataclasses import dataclass
from typing import NamedTuple

from broker.sia.columns import (
    NEVER,
    NOBODY,
    RUNNING,
    State,
    speed_of,
)
from broker.sia.compiling import kernel
from broker.sia.heap import Heap, heap_push, heap_remove
from broker.sia.step import begin, cancel, decide, end, finish_drains, next_wake, set_capacity, submit


@dataclass(slots=True)
class Course:
    """What really happens to a job."""

    submit: float = 0.0
    duration: float = 0.0
    cancel_at: float = NEVER  # NEVER: it runs to its end
    start: float = NEVER
    end: float = NEVER
    due: int = 0  # 1: in World.finish


@dataclass(slots=True)
class Position:
    submitted: int = 0
    finish: int = NOBODY  # root of World.finish
    capacities: int = 0
    capacities_known: int = 0


class World(NamedTuple):
    """What the allocator does not know."""

    plan: list[Course]
    finish: Heap
    capacity_at: list[float]
    capacity: list[int]
    raises: list[int]  # 1: more has arrived; 0: hold no more than this
    position: list[Position]  # one


@kernel
def replay_until(s: State, w: World, until: float) -> float:
    """Play all instants up to and including `until`; the time of the next instant, NEVER when all is done."""
    now = next_instant(s, w)
    while now <= until and now < NEVER:
        begin(s, now)
        finish_jobs(s, w, now)
        finish_drains(s, now)
        take_capacity(s, w, now)
        submit_jobs(s, w, now)
        decide(s, now)
        follow_log(s, w, now)
        now = next_instant(s, w)
    return now


@kernel
def next_instant(s: State, w: World) -> float:
    now = next_wake(s)
    k, c = w.position[0].submitted, w.position[0].capacities
    if k < len(w.plan):
        now = min(now, w.plan[k].submit)
    if w.position[0].finish != NOBODY:
        now = min(now, w.finish[w.position[0].finish].first)
    if c < w.position[0].capacities_known:
        now = min(now, w.capacity_at[c])
    return now


@kernel
def finish_jobs(s: State, w: World, now: float) -> None:
    root = w.position[0].finish
    while root != NOBODY and w.finish[root].first <= now:
        w.position[0].finish = heap_remove(w.finish, root, root)
        w.plan[root].due = 0
        w.plan[root].end = now
        if w.finish[root].second > 0:
            cancel(s, root, now)
        else:
            end(s, root, now)
        root = w.position[0].finish


@kernel
def take_capacity(s: State, w: World, now: float) -> None:
    c = w.position[0].capacities
    while c < w.position[0].capacities_known and w.capacity_at[c] <= now:
        set_capacity(s, max(w.capacity[c], s.pool[0].goal) if w.raises[c] else w.capacity[c])
        c += 1
    w.position[0].capacities = c


@kernel
def submit_jobs(s: State, w: World, now: float) -> None:
    k = w.position[0].submitted
    while k < len(w.plan) and w.plan[k].submit <= now:
        submit(s, k, now)
        if w.plan[k].cancel_at < NEVER:
            await_finish(w, k, w.plan[k].cancel_at, 1.0)
        k += 1
    w.position[0].submitted = k


@kernel
def await_finish(w: World, j: int, at: float, cancelled: float) -> None:
    w.position[0].finish = heap_push(w.finish, w.position[0].finish, j, at, cancelled)
    w.plan[j].due = 1


@kernel
def follow_log(s: State, w: World, now: float) -> None:
    """Jobs start and stop as was decided; each stop and each start changes when the job will end."""
    for i in range(s.pool[0].logged):
        j = s.log_job[i]
        if w.plan[j].due:
            w.position[0].finish = heap_remove(w.finish, w.position[0].finish, j)
            w.plan[j].due = 0
        if s.jobs[j].state == RUNNING:
            if w.plan[j].start == NEVER:
                w.plan[j].start = now
            await_end(s, w, j, now)
        elif w.plan[j].cancel_at < NEVER:
            await_finish(w, j, w.plan[j].cancel_at, 1.0)


@kernel
def await_end(s: State, w: World, j: int, now: float) -> None:
    speed = speed_of(s.jobs[j].held, s.jobs[j].gpus, s.jobs[j].speed_power)
    at = now + (w.plan[j].duration - s.jobs[j].service) / speed
    if w.plan[j].cancel_at < at:
        await_finish(w, j, w.plan[j].cancel_at, 1.0)
    else:
        await_finish(w, j, at, 0.0)
