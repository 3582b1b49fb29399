"""The allocator on nodes: the events of the pooled one, and decisions that name cells.

The rules are the pooled ones, with cells in the place of slots. It is plain Python; only pooled slots are compiled.
"""

from broker.sia.claims import note_sensitive
from broker.sia.columns import (
    CANCELLED,
    DONE,
    DRAINING,
    NEVER,
    NOBODY,
    PARDONED,
    QUEUED,
    RESIZING,
    RESUME,
    RUNNING,
    State,
    speed_of,
)
from broker.sia.heap import heap_remove
from broker.sia.lists import enqueue, log, queue_leave, running_add
from broker.sia.placement import Cells
from broker.sia.placement_claims import done_by, known_until, note_standing, settle
from broker.sia.placement_lending import keep_free, lend
from broker.sia.placement_state import Nodes
from broker.sia.placement_static import Waiting
from broker.sia.shadow import service_of
from broker.sia.step import release

_A_MOMENT_S = 2e-6
"""After a time that has to be over for certain, whatever was rounded."""


def submit(s: State, n: Nodes, j: int, now: float) -> None:
    job = s.jobs[j]
    job.submit, job.state = now, QUEUED
    slots = n.slots(job.gpus)
    s.pool[0].demand += slots
    if slots <= s.tenants[job.tenant].entitlement:
        n.floor.statics[job.tenant].queue[j] = Waiting(now, slots)
        s.tenants[job.tenant].behind += 1
    if job.lendable:  # one that cannot be called back would sit in a cell that may be somebody's home
        enqueue(s, j)


def end(s: State, n: Nodes, j: int, now: float) -> None:
    """The job has finished: its work is what it has done."""
    job = s.jobs[j]
    job.service = job.work = service_of(s, j, now)
    static = n.floor.statics[job.tenant]
    leave(s, n, j, DONE)
    if job.shadow_start < NEVER:
        static.leave(j, job.shadow_start + job.work)
    elif j in static.queue:
        static.queue[j].work = job.work


def cancel(s: State, n: Nodes, j: int, now: float) -> None:
    """Leaves both schedules now; a late job leaves its static one when its service would have been done there."""
    job = s.jobs[j]
    job.service, job.cancelled_at = service_of(s, j, now), now
    static = n.floor.statics[job.tenant]
    leave(s, n, j, CANCELLED)
    if job.shadow_start < NEVER:
        static.leave(j, min(now, job.shadow_start + job.service))
    elif j in static.queue:
        static.queue[j].leaves, static.queue[j].service = now, job.service


def leave(s: State, n: Nodes, j: int, state: int) -> None:
    """Free what the job holds; slots that drain behind it come back in their time."""
    job, was = s.jobs[j], s.jobs[j].state
    tenant, slots = s.tenants[job.tenant], n.slots(job.gpus)
    job.state = state
    s.pool[0].demand -= slots
    if was == QUEUED:
        queue_leave(s, j)
    else:
        release(s, j, was)
        n.floor.lift(j)
    if job.shadow_start < NEVER:
        tenant.owed -= slots
        s.pool[0].owed_all -= slots
        tenant.granted -= slots if was in (RUNNING, RESIZING) else 0
        n.floor.move_out(job.tenant, j)
        n.waiting.pop(j, None)
        n.suspects[job.tenant].pop(j, None)
    elif slots <= tenant.entitlement:
        tenant.behind -= 1
    n.least.pop(j, None)


def start_unasked(s: State, n: Nodes, j: int, cells: Cells, now: float) -> None:
    """The scheduler has started a queued job there of its own accord. One that is owed is not at home then."""
    job = s.jobs[j]
    queue_leave(s, j)
    n.floor.settle(j, cells)
    job.state, job.held, job.since, job.started_at = RUNNING, job.gpus, now, now
    running_add(s, j)
    if job.shadow_start < NEVER:
        s.tenants[job.tenant].granted += n.slots(job.gpus)
        note_standing(s, n, j, now)


def finish_drains(s: State, n: Nodes, now: float) -> None:
    root = s.pool[0].drains
    while root != NOBODY and s.drains[root].first <= now:
        s.pool[0].drains = heap_remove(s.drains, root, root)
        finish_drain(s, n, root, now)
        root = s.pool[0].drains


def finish_drain(s: State, n: Nodes, j: int, now: float) -> None:
    job = s.jobs[j]
    if job.leaving > 0:
        job.leaving = 0
        n.floor.vacate(n.floor.left.pop(j))
    elif job.state == DRAINING:
        n.floor.lift(j)
        job.held, job.state = 0, QUEUED
        if job.shadow_start == NEVER:
            enqueue(s, j)
    else:
        if job.target < job.held:
            n.floor.narrow(j)
        job.held, job.state, job.since = job.target, RUNNING, now
        log(s, j, RESUME)


def set_capacity(s: State, n: Nodes, goal: int) -> None:
    """More nodes are there at once; fewer as they fall free and are bound to nobody."""
    s.pool[0].goal = goal // n.size * n.size
    n.floor.hold(s.pool[0].goal)
    s.pool[0].capacity = n.floor.capacity()


def decide(s: State, n: Nodes, now: float) -> None:
    """Grants, reclaims and loans for this instant."""
    n.floor.close_surplus(s.pool[0].goal)
    settle(s, n, now)
    while keep_free(s, n, now):
        settle(s, n, now)
    n.floor.close_surplus(s.pool[0].goal)
    note_misses(s, n, now)
    lend(s, n, now)
    n.floor.give_back()
    s.pool[0].capacity = n.floor.capacity()
    measure(s, n)
    s.pool[0].late_at = next_certain(s, n, now)


def note_misses(s: State, n: Nodes, now: float) -> None:
    """Jobs that wait though they are owed. Where too few nodes are held for a home, no hold-back could have helped."""
    for j in n.waiting:
        job = s.jobs[j]
        if not job.missed and job.state in (QUEUED, DRAINING):
            job.missed = 1 if j in n.floor.pin else PARDONED
            note_sensitive(s, j, now, job.missed)


def measure(s: State, n: Nodes) -> None:
    """Whole nodes: a claim on one cell is one on its node."""
    pool, floor = s.pool[0], n.floor
    claimed = 0
    for v, guests in enumerate(floor.guests):
        whole = len(guests) if s.tenants[v].entitled_since < NEVER else n.kept(s, v)
        claimed += n.size * (whole + sum(1 for jobs in guests[whole:] if jobs))
    pool.claimed, pool.short = claimed, max(0, claimed - pool.capacity)
    pool.busy = floor.busy_slots()
    pool.coming = n.coming(s)
    pool.unmet = max(0, claimed - sum(tenant.granted for tenant in s.tenants))
    pool.claims_peak = max(pool.claims_peak, pool.claimed)
    pool.peak = max(pool.peak, pool.claimed, pool.demand)


def next_certain(s: State, n: Nodes, now: float) -> float:
    """When a static schedule can go on, or a tenant comes to be late, without an event."""
    wake = NEVER
    for v, static in enumerate(n.floor.statics):
        for j in n.suspects[v]:
            done = done_by(s, n, j, now)
            if s.jobs[j].state != RUNNING and done > now + _A_MOMENT_S:
                wake = min(wake, done)
        if static.queue and static.needs > now:
            wake = min(wake, static.needs)
        elif static.queue:
            wake = min(wake, known_at(s, n, v, static.needs, now))
    return wake


def known_at(s: State, n: Nodes, v: int, needs: float, now: float) -> float:
    """When all ends up to `needs` will be known, if what is late goes on running; NEVER while it does not."""
    wake = now
    for j in n.suspects[v]:
        job, done = s.jobs[j], done_by(s, n, j, now)
        if done > needs + _A_MOMENT_S or known_until(s, n, v, now) >= needs:
            continue
        if job.state != RUNNING:
            return NEVER
        behind = needs + _A_MOMENT_S - job.shadow_start - service_of(s, j, now)
        wake = max(wake, now + behind / speed_of(job.held, job.gpus, job.speed_power))
    return wake if wake > now else NEVER
