"""The allocator as one state machine: events change the state, `decide` answers with decisions in the log.

Events of one instant come in the order ends, drains done, capacity, submits; then one call of `decide`.
"""

from broker.sia.claims import measure_claims, note_misses, settle_claims
from broker.sia.columns import (
    CANCELLED,
    DONE,
    DRAINING,
    NEVER,
    NOBODY,
    QUEUED,
    RESIZING,
    RESUME,
    RUNNING,
    State,
)
from broker.sia.compiling import kernel
from broker.sia.firm import firm_look, firm_over
from broker.sia.heap import heap_remove
from broker.sia.lending import lend, missing, reclaim, spare
from broker.sia.lists import activate, enqueue, log, queue_leave, running_remove, waiting_remove
from broker.sia.rungs import widest_room
from broker.sia.shadow import service_of, shadow_advance, shadow_join, shadow_leave, shadow_start


@kernel
def begin(s: State, now: float) -> None:
    """Account for the time since the last instant, during which nothing changed."""
    elapsed = now - s.pool[0].now
    s.pool[0].busy_s += elapsed * s.pool[0].busy
    s.pool[0].held_s += elapsed * s.pool[0].capacity
    s.pool[0].owed_s += elapsed * s.pool[0].owed_all
    if s.pool[0].short > 0:
        s.pool[0].short_s += elapsed
    s.pool[0].now = now
    s.pool[0].logged = 0


@kernel
def submit(s: State, j: int, now: float) -> None:
    s.jobs[j].submit = now
    s.jobs[j].state = QUEUED
    s.pool[0].demand += s.jobs[j].gpus
    shadow_advance(s, now)
    shadow_join(s, j, now)
    if s.jobs[j].shadow_start == NEVER:
        enqueue(s, j)


@kernel
def end(s: State, j: int, now: float) -> None:
    """The job has finished: its work is what it has done."""
    s.jobs[j].service = service_of(s, j, now)
    s.jobs[j].work = s.jobs[j].service
    leave(s, j, DONE)
    if s.jobs[j].shadow_start < NEVER:
        shadow_leave(s, j, s.jobs[j].shadow_start + s.jobs[j].work, now)


@kernel
def cancel(s: State, j: int, now: float) -> None:
    """Leaves both schedules now; a late job leaves its shadow when its service would have been done there.

    How much work was left will never be known, so this is the earliest time at which STATIC may have been rid of it.
    """
    s.jobs[j].service = service_of(s, j, now)
    s.jobs[j].cancelled_at = now
    leave(s, j, CANCELLED)
    if s.jobs[j].shadow_start < NEVER:
        shadow_leave(s, j, min(now, s.jobs[j].shadow_start + s.jobs[j].service), now)
    elif s.jobs[j].gpus <= s.tenants[s.jobs[j].tenant].entitlement:
        shadow_forget(s, j)
        shadow_advance(s, now)
        shadow_start(s, s.jobs[j].tenant, now, now)


@kernel
def leave(s: State, j: int, state: int) -> None:
    """Free what the job holds; slots that drain behind it come back in their time."""
    v, owed, was = s.jobs[j].tenant, s.jobs[j].shadow_start < NEVER, s.jobs[j].state
    s.jobs[j].state = state
    s.pool[0].demand -= s.jobs[j].gpus
    if was == QUEUED:
        queue_leave(s, j)
    else:
        release(s, j, was)
    if owed:
        leave_owed(s, j, was)
        return
    if s.jobs[j].firm and was == RUNNING:
        firm_over(s, j)
    if s.jobs[j].gpus <= s.tenants[v].entitlement:
        s.tenants[v].behind -= 1


@kernel
def release(s: State, j: int, was: int) -> None:
    held, gpus = s.jobs[j].held, s.jobs[j].gpus
    s.pool[0].busy -= held
    s.jobs[j].held = 0
    if was == DRAINING:
        s.pool[0].coming -= held
    else:
        running_remove(s, j)
        extra = (s.jobs[j].target if was == RESIZING else held) - gpus
        s.pool[0].extra -= extra
    if was == RESIZING:
        s.pool[0].coming -= held - s.jobs[j].target
    if was != RUNNING:
        s.pool[0].drains = heap_remove(s.drains, s.pool[0].drains, j)


@kernel
def leave_owed(s: State, j: int, was: int) -> None:
    v, gpus = s.jobs[j].tenant, s.jobs[j].gpus
    s.tenants[v].owed -= gpus
    s.pool[0].owed_all -= gpus
    if was in (RUNNING, RESIZING):
        s.tenants[v].granted -= gpus
        s.tenants[v].late -= s.jobs[j].late
        s.jobs[j].late = 0
    else:
        waiting_remove(s, v, j)


@kernel
def shadow_forget(s: State, j: int) -> None:
    """Take a job that has not started there out of its tenant's queue."""
    v, before, after = s.jobs[j].tenant, s.jobs[j].before, s.jobs[j].after
    if before != NOBODY:
        s.jobs[before].after = after
    if after != NOBODY:
        s.jobs[after].before = before
    if s.tenants[v].head == j:
        s.tenants[v].head = after
    if s.tenants[v].tail == j:
        s.tenants[v].tail = before


@kernel
def finish_drains(s: State, now: float) -> None:
    root = s.pool[0].drains
    while root != NOBODY and s.drains[root].first <= now:
        s.pool[0].drains = heap_remove(s.drains, root, root)
        finish_drain(s, root, now)
        root = s.pool[0].drains


@kernel
def finish_drain(s: State, j: int, now: float) -> None:
    if s.jobs[j].leaving > 0:
        back = s.jobs[j].leaving
        s.jobs[j].leaving = 0
    elif s.jobs[j].state == DRAINING:
        back = s.jobs[j].held
        s.jobs[j].held = 0
        s.jobs[j].state = QUEUED
        if s.jobs[j].shadow_start == NEVER:
            enqueue(s, j)
    else:
        back = s.jobs[j].held - s.jobs[j].target
        s.jobs[j].held = s.jobs[j].target
        s.jobs[j].state = RUNNING
        s.jobs[j].since = now
        log(s, j, RESUME)
    s.pool[0].busy -= back
    s.pool[0].coming -= back


@kernel
def set_capacity(s: State, goal: int) -> None:
    """More takes effect at once; less as slots fall free that no claim waits for."""
    s.pool[0].goal = goal
    s.pool[0].capacity = max(s.pool[0].capacity, goal)


@kernel
def decide(s: State, now: float) -> None:
    """Grants, reclaims and loans for this instant."""
    shadow_advance(s, now)
    if s.pool[0].active > 0:
        settle_claims(s, now)
    else:
        measure_claims(s)
    while missing(s) and reclaim(s, now):  # slots that came free at once serve claims; who is late by it has one too
        settle_claims(s, now)
    if s.pool[0].active > 0:
        note_misses(s, now)
    if s.pool[0].firm_share > 0.0:
        firm_look(s, now)
    if widest_room(s, spare(s)) > 0 or s.pool[0].extra > 0:
        lend(s, now)
    give_back(s)
    s.pool[0].claims_peak = max(s.pool[0].claims_peak, s.pool[0].claimed)
    s.pool[0].peak = max(s.pool[0].peak, s.pool[0].claimed, s.pool[0].demand)


@kernel
def give_back(s: State) -> None:
    """Never what runs, nor a free slot that covers a claim: reclaiming another would take a reclaim time more."""
    pool = s.pool[0]
    free = pool.capacity - pool.busy
    kept = min(max(0, free), pool.unmet)
    pool.capacity = max(pool.goal, pool.busy + kept)
    pool.short = max(0, pool.claimed + pool.firm - pool.capacity)


@kernel
def next_wake(s: State) -> float:
    """When something happens without an event from outside."""
    wake = s.pool[0].late_at
    if s.pool[0].drains != NOBODY:
        wake = min(wake, s.drains[s.pool[0].drains].first)
    if s.pool[0].shadow_ends != NOBODY:
        wake = min(wake, s.ends[s.pool[0].shadow_ends].first)
    return wake


@kernel
def promise_all(s: State) -> None:
    """Tenants that keep slots have a claim from the start."""
    for v in range(len(s.tenants)):
        if s.tenants[v].keep > 0:
            activate(s, v)
