"""The static schedule, replayed online: each tenant alone in its entitlement, first come first served.

A job's end is unknown until it has really ended. Then its work W is known and it leaves the shadow at start + W: in
the future if it was early, in the past if it was late, in which case the tenant's shadow is rolled back to that time
and re-timed. Roll-backs only ever move starts earlier: FIFO starts are monotone in the ends of predecessors.
"""

from broker.sia.columns import (
    CANCELLED,
    DONE,
    NEVER,
    NOBODY,
    QUEUED,
    RESIZING,
    RUNNING,
    TINY_S,
    State,
    speed_of,
)
from broker.sia.compiling import kernel
from broker.sia.firm import firm_again, firm_over
from broker.sia.heap import heap_push, heap_remove
from broker.sia.lists import activate, enqueue, queue_leave, waiting_insert, waiting_remove


@kernel
def service_of(s: State, j: int, now: float) -> float:
    """Seconds of work that need not be done again."""
    if s.jobs[j].state != RUNNING:
        return s.jobs[j].service
    speed = speed_of(s.jobs[j].held, s.jobs[j].gpus, s.jobs[j].speed_power)
    return s.jobs[j].service + (now - s.jobs[j].since) * speed


@kernel
def lag_of(s: State, j: int, now: float) -> float:
    """How far an owed job is behind its shadow; constant while it runs on what it asked for."""
    at = max(now, s.jobs[j].drained_at) if s.jobs[j].state == RESIZING else now
    return at - s.jobs[j].shadow_start - service_of(s, j, now)


@kernel
def owe(s: State, j: int, now: float) -> None:
    """The shadow has started an unfinished job."""
    v, gpus = s.jobs[j].tenant, s.jobs[j].gpus
    s.tenants[v].behind -= 1
    s.tenants[v].owed += gpus
    s.pool[0].owed_all += gpus
    if s.jobs[j].state == RUNNING or s.jobs[j].state == RESIZING:
        hold_owed(s, j, now)
        if s.jobs[j].firm:
            firm_over(s, j)
        return
    if s.jobs[j].state == QUEUED:
        queue_leave(s, j)
    waiting_insert(s, v, j)


@kernel
def hold_owed(s: State, j: int, now: float) -> None:
    """An owed job has its slots."""
    v = s.jobs[j].tenant
    s.tenants[v].granted += s.jobs[j].gpus
    s.jobs[j].waiting_since = NEVER
    note_lag(s, j, now)


@kernel
def note_lag(s: State, j: int, now: float) -> None:
    """Count a running owed job that is behind its shadow among its tenant's late ones."""
    v, lag = s.jobs[j].tenant, lag_of(s, j, now)
    s.pool[0].largest_lag = max(s.pool[0].largest_lag, lag)
    s.tenants[v].late -= s.jobs[j].late
    s.jobs[j].late = 1 if lag > TINY_S else 0
    s.tenants[v].late += s.jobs[j].late
    if s.jobs[j].late:
        activate(s, v)


@kernel
def disown(s: State, j: int) -> None:
    """A roll-back takes an unfinished job out of the shadow; it comes back no later than it had started."""
    v, gpus = s.jobs[j].tenant, s.jobs[j].gpus
    s.tenants[v].behind += 1
    s.tenants[v].owed -= gpus
    s.pool[0].owed_all -= gpus
    if s.jobs[j].state == RUNNING or s.jobs[j].state == RESIZING:
        s.tenants[v].granted -= gpus
        s.tenants[v].late -= s.jobs[j].late
        s.jobs[j].late = 0
        if s.jobs[j].firm:
            firm_again(s, j)
        return
    waiting_remove(s, v, j)
    if s.jobs[j].state == QUEUED:
        enqueue(s, j)


@kernel
def shadow_join(s: State, j: int, now: float) -> None:
    """A job has been submitted. One that is larger than its tenant's entitlement is left out of the shadow."""
    v = s.jobs[j].tenant
    if s.jobs[j].gpus > s.tenants[v].entitlement:
        return
    tail = s.tenants[v].tail
    s.jobs[j].before = tail
    if tail != NOBODY:
        s.jobs[tail].after = j
    s.tenants[v].tail = j
    if s.tenants[v].head == NOBODY:
        s.tenants[v].head = j
    s.tenants[v].behind += 1
    shadow_start(s, v, now, now)


@kernel
def shadow_start(s: State, v: int, at: float, now: float) -> None:
    """Start, at the shadow's time `at`, what fits, in order."""
    j = s.tenants[v].head
    while j != NOBODY and s.tenants[v].used + s.jobs[j].gpus <= s.tenants[v].entitlement:
        start = max(at, s.jobs[j].submit)
        s.jobs[j].shadow_start = start
        s.tenants[v].used += s.jobs[j].gpus
        s.tenants[v].head = s.jobs[j].after
        if s.jobs[j].state == DONE:
            shadow_will_end(s, j, start + s.jobs[j].work)
        elif s.jobs[j].state == CANCELLED:
            shadow_will_end(s, j, min(s.jobs[j].cancelled_at, start + s.jobs[j].service))
        else:
            owe(s, j, now)
        j = s.tenants[v].head


@kernel
def shadow_will_end(s: State, j: int, end: float) -> None:
    s.jobs[j].shadow_end = end
    s.pool[0].shadow_ends = heap_push(s.ends, s.pool[0].shadow_ends, j, end, 0.0)


@kernel
def shadow_advance(s: State, now: float) -> None:
    """Bring the shadow up to `now`."""
    root = s.pool[0].shadow_ends
    while root != NOBODY and s.ends[root].first <= now:
        s.pool[0].shadow_ends = heap_remove(s.ends, root, root)
        v = s.jobs[root].tenant
        s.jobs[root].shadow_left = 1
        s.tenants[v].used -= s.jobs[root].gpus
        s.jobs[root].ended_before = s.tenants[v].ended
        s.tenants[v].ended = root
        shadow_start(s, v, s.jobs[root].shadow_end, now)
        root = s.pool[0].shadow_ends


@kernel
def shadow_leave(s: State, j: int, end: float, now: float) -> None:
    """A job that the shadow had started leaves it at `end`: ahead, or in the past."""
    if end < now:
        shadow_roll_back(s, s.jobs[j].tenant, end)
    shadow_will_end(s, j, end)


@kernel
def shadow_roll_back(s: State, v: int, to: float) -> None:
    """Undo what the tenant's shadow did after `to`."""
    j = s.tenants[v].tail if s.tenants[v].head == NOBODY else s.jobs[s.tenants[v].head].before
    while j != NOBODY and s.jobs[j].shadow_start > to:
        shadow_undo_start(s, j)
        s.tenants[v].head = j
        j = s.jobs[j].before
    j = s.tenants[v].ended
    while j != NOBODY and s.jobs[j].shadow_end > to:
        s.tenants[v].ended = s.jobs[j].ended_before
        s.jobs[j].shadow_left = 0
        if s.jobs[j].shadow_start < NEVER:
            s.tenants[v].used += s.jobs[j].gpus
            s.pool[0].shadow_ends = heap_push(s.ends, s.pool[0].shadow_ends, j, s.jobs[j].shadow_end, 0.0)
        j = s.tenants[v].ended


@kernel
def shadow_undo_start(s: State, j: int) -> None:
    """`shadow_end` stays, so that a past end is found on the stack."""
    s.jobs[j].shadow_start = NEVER
    if s.jobs[j].state < DONE:
        s.tenants[s.jobs[j].tenant].used -= s.jobs[j].gpus
        disown(s, j)
    elif not s.jobs[j].shadow_left:
        s.tenants[s.jobs[j].tenant].used -= s.jobs[j].gpus
        s.pool[0].shadow_ends = heap_remove(s.ends, s.pool[0].shadow_ends, j)
