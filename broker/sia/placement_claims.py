"""Claims on nodes: what an owed job and a late tenant are due is cells, and what is in them is called back.

A claim covers cells, so claims need no order among them while enough nodes are held: a node that is bound is nobody
else's, and what is reserved is not lent.
"""

from broker.sia.claims import note_sensitive
from broker.sia.columns import (
    AFRESH,
    DRAINING,
    ENTITLEMENT,
    GRANT,
    GUARD,
    HOME,
    NEVER,
    NOBODY,
    ORDER,
    QUEUED,
    RESIZING,
    RESTART,
    RESTORE,
    RUNNING,
    TINY_S,
    State,
)
from broker.sia.heap import heap_push
from broker.sia.lending import credit_of, preempt, rest_of, take_back_extra
from broker.sia.lists import log, queue_leave, running_add, running_remove
from broker.sia.placement import Cell
from broker.sia.placement_state import Nodes
from broker.sia.shadow import lag_of, service_of

_BLOCKED = 1e300


def settle(s: State, n: Nodes, now: float) -> None:
    """Owed jobs run at home, or what is in their homes is on its way out."""
    changed = True
    while changed:
        advance(s, n, now)
        pin_all(s, n, now)
        changed = serve(s, n, now)
        n.content = [j for j in n.waiting if is_content(s, n, j, now)]
        changed = claim_whole(s, n, now) or changed
        reserve(s, n)
        changed = call_back(s, n, now) or changed


# What the static schedule says


def advance(s: State, n: Nodes, now: float) -> None:
    """One start after the other: what starts is one whose end is not known."""
    for v, static in enumerate(n.floor.statics):
        start = static.advance(known_until(s, n, v, now), now) if static.queue else None
        while start is not None:
            j, at = start
            if s.jobs[j].state <= RESIZING:
                owe(s, n, j, at, now)
            else:
                s.jobs[j].shadow_start = at
            start = static.advance(known_until(s, n, v, now), now)


def known_until(s: State, n: Nodes, v: int, now: float) -> float:
    """All ends of the tenant's static schedule up to then are known."""
    known = NEVER
    for j in n.suspects[v]:
        done = done_by(s, n, j, now)
        if done < now - TINY_S or (s.jobs[j].state != RUNNING and done <= now + TINY_S):
            known = min(known, done - TINY_S)
    return known


def done_by(s: State, n: Nodes, j: int, now: float) -> float:
    """The static schedule has not seen its end up to then."""
    return s.jobs[j].shadow_start + max(n.least.get(j, 0.0), service_of(s, j, now))


def is_late(s: State, n: Nodes, v: int, now: float) -> bool:
    """Whether some end of the tenant's static schedule may not be known a moment from now."""
    for j in n.suspects[v]:
        lag = lag_of(s, j, now)
        if lag > TINY_S if s.jobs[j].state == RUNNING else done_by(s, n, j, now) <= now + TINY_S:
            return True
    return False


def owe(s: State, n: Nodes, j: int, at: float, now: float) -> None:
    job = s.jobs[j]
    v, slots = job.tenant, n.slots(job.gpus)
    job.shadow_start = at
    job.waiting_since = min(now, s.tenants[v].entitled_since)
    s.tenants[v].behind -= 1
    s.tenants[v].owed += slots
    s.pool[0].owed_all += slots
    n.floor.move_in(v, j)
    n.waiting[j] = None
    if job.state in (RUNNING, RESIZING):
        s.tenants[v].granted += slots
        note_standing(s, n, j, now)
        return
    if job.state == QUEUED:
        queue_leave(s, j)
    n.suspects[v][j] = None


def note_standing(s: State, n: Nodes, j: int, now: float) -> None:
    """An owed job that runs: whether its tenant's static schedule has to wait for it."""
    job = s.jobs[j]
    lag = lag_of(s, j, now)
    s.pool[0].largest_lag = max(s.pool[0].largest_lag, lag)
    if job.state == RUNNING and lag <= TINY_S:
        n.suspects[job.tenant].pop(j, None)
    else:
        n.suspects[job.tenant][j] = None


# Homes


def pin_all(s: State, n: Nodes, now: float) -> None:
    """Oldest claim first, where too few nodes are held for all."""
    homeless = [j for j in n.waiting if j not in n.floor.pin]
    for j in sorted(homeless, key=lambda j: (s.jobs[j].waiting_since, s.jobs[j].shadow_start, j)):
        n.floor.pin_down(s.jobs[j].tenant, j, lambda j, cell: eviction(s, n, j, cell, now))


def eviction(s: State, n: Nodes, j: int, cell: Cell, now: float) -> tuple[float, ...]:
    """What it costs to have that cell for a job; nothing at all where it runs."""
    if cell in n.floor.base.get(j, ()) and s.jobs[j].state in (RUNNING, RESIZING):
        return (-1.0, 0.0, 0.0)
    worst = drains = 0.0
    for k, mask in n.floor.occupants(cell.node, cell.mask).items():
        if s.jobs[k].state == DRAINING or not n.floor.part(n.floor.place.get(k, ()), cell.node, mask):
            drains = max(drains, s.jobs[k].drained_at)
        elif can_be_called(s, n, k):
            worst += 1.0 + rest_of(s, k, now) * s.jobs[k].gpus
        else:
            worst = _BLOCKED
    return (worst, drains, float(n.floor.busy[cell.node].bit_count()))


def can_be_called(s: State, n: Nodes, k: int) -> bool:
    return bool(s.jobs[k].lendable) and not n.floor.is_at_home(k)


def is_content(s: State, n: Nodes, j: int, now: float) -> bool:
    """Runs away from home, and could afford to be called back: it stays where it is until it is.

    What it pays for is that its home is lent until then: one restore, after the pause that gives back what it has
    beyond what it asked for, if that is called for first.
    """
    job = s.jobs[j]
    if job.state not in (RUNNING, RESIZING) or n.floor.is_at_home(j):
        return False
    if not s.on[HOME] or not job.lendable:
        return True
    pauses = 0.0
    if job.state == RESIZING:
        pauses = max(0.0, job.drained_at - now) + (job.reclaim_s + job.restore_s) * (job.target > job.gpus)
    elif job.held > job.gpus:
        pauses = job.reclaim_s + job.restore_s  # not what it would cost now: that grows faster than the credit
    return credit_of(s, j, now) - pauses >= job.restore_s - TINY_S


def serve(s: State, n: Nodes, now: float) -> bool:
    """Start the owed jobs whose home is free."""
    started = False
    for j in sorted(n.waiting, key=lambda j: (s.jobs[j].shadow_start, j)):
        if n.floor.is_at_home(j) and s.jobs[j].state in (RUNNING, RESIZING):
            n.waiting.pop(j)
        elif j in n.floor.pin and n.floor.is_free(n.floor.pin[j]) and not is_content(s, n, j, now):
            started = go_home(s, n, j, now) or started
    return started


def go_home(s: State, n: Nodes, j: int, now: float) -> bool:
    """A job that still drains, or runs elsewhere, starts afresh at home if that is quicker than its checkpoint."""
    job = s.jobs[j]
    if job.state == QUEUED:
        start_at_home(s, n, j, now, GRANT)
        return True
    n.note_least(j, service_of(s, j, now))
    if job.state == RUNNING:
        saved = service_of(s, j, now) - job.restore_s
        if not s.on[RESTART] or (max(0.0, saved) if s.on[RESTORE] else saved) > job.reclaim_s:
            stop(s, n, j, now)
            return False
        job.drained_at = now + job.reclaim_s
        s.pool[0].drains = heap_push(s.drains, s.pool[0].drains, j, job.drained_at, 0.0)
    elif not s.on[RESTART] or job.service > job.drained_at - now:
        if job.state == RESIZING:
            stop(s, n, j, now)  # it comes home from this pause, not from another
        return False
    start_afresh(s, n, j, now)
    return True


def start_afresh(s: State, n: Nodes, j: int, now: float) -> None:
    job = s.jobs[j]
    s.pool[0].lost += service_of(s, j, now) * job.gpus
    if job.state in (RUNNING, RESIZING):
        s.pool[0].extra -= (job.target if job.state == RESIZING else job.held) - job.gpus
        running_remove(s, j)
        s.tenants[job.tenant].granted -= n.slots(job.gpus)
    job.leaving = job.held
    job.service = 0.0
    n.floor.abandon(j)
    start_at_home(s, n, j, now, AFRESH)


def start_at_home(s: State, n: Nodes, j: int, now: float, kind: int) -> None:
    job = s.jobs[j]
    if not job.missed:
        note_sensitive(s, j, now, 0)
    n.waiting.pop(j)
    n.floor.settle(j, n.floor.pin[j])
    job.state, job.held, job.since, job.started_at, job.waiting_since = RUNNING, job.gpus, now, now, NEVER
    s.tenants[job.tenant].granted += n.slots(job.gpus)
    running_add(s, j)
    note_standing(s, n, j, now)
    log(s, j, kind)


# Claims


def claim_whole(s: State, n: Nodes, now: float) -> bool:
    """A late tenant with jobs behind claims all its nodes; who stopped being late gives up what is nobody's home.

    True if a job without a home may have one now.
    """
    for v, tenant in enumerate(s.tenants):
        if tenant.behind > 0 and s.on[ENTITLEMENT] and n.suspects[v] and is_late(s, n, v, now):
            tenant.entitled_since = min(tenant.entitled_since, now)
        else:
            tenant.entitled_since = NEVER
    late = [v for v, tenant in enumerate(s.tenants) if tenant.entitled_since < NEVER]
    freed = False
    for v, bound in enumerate(n.floor.bound):
        for own in range(n.kept(s, v), len(bound) if v not in late else 0):
            if bound[own] != NOBODY and not n.floor.guests[v][own]:
                n.floor.unbind(v, own)
                freed = True
    if freed and any(j not in n.floor.pin for j in n.waiting):
        return True
    for v in sorted(range(len(s.tenants)), key=lambda v: (s.tenants[v].entitled_since, v)):
        for own in range(len(n.floor.bound[v]) if v in late else n.kept(s, v)):
            bind(s, n, v, own, now)
    return False


def bind(s: State, n: Nodes, v: int, own: int, now: float) -> None:
    """To the node that costs least to clear."""
    if n.floor.bound[v][own] != NOBODY:
        return
    options = [Cell(node, 0, n.size) for node in n.floor.unbound()]
    if options:
        best = min(options, key=lambda cell: (*eviction(s, n, NOBODY, cell, now), cell))
        n.floor.bind(v, own, best.node)


def reserve(s: State, n: Nodes) -> None:
    """Only claims may use what they cover."""
    needed = dict.fromkeys(n.reserved, 0) | (n.needed(s) if s.on[ORDER] else {})
    for node, mask in needed.items():
        if n.floor.reserved[node] != mask:
            n.floor.reserve(node, mask)
    n.reserved = [node for node, mask in needed.items() if mask]


def call_back(s: State, n: Nodes, now: float) -> bool:
    """Have what claims cover vacated. True if slots came free at once, or a job that was content has to move."""
    changed = False
    for node, mask in n.needed(s).items() if s.on[GUARD] else ():
        for k, theirs in n.floor.occupants(node, mask).items():
            if s.jobs[k].state == DRAINING:
                continue
            own = n.floor.part(n.floor.base.get(k, ()), node, theirs)
            if own and can_be_called(s, n, k):
                changed = stop(s, n, k, now) or changed
            elif n.floor.part(n.floor.place.get(k, ()), node, theirs) & ~own:
                changed = shrink(s, n, k, now) or changed
    return changed


def shrink(s: State, n: Nodes, k: int, now: float) -> bool:
    """Call back what a job has beyond what it asked for."""
    job = s.jobs[k]
    if job.state == RESIZING and job.target == job.gpus:
        return False
    n.note_least(k, service_of(s, k, now))
    take_back_extra(s, k, now)
    if job.held == job.gpus:
        n.floor.narrow(k)
    if job.shadow_start < NEVER:
        note_standing(s, n, k, now)
    return job.held == job.gpus


def stop(s: State, n: Nodes, k: int, now: float) -> bool:
    """Call a job back. True if it is owed: its home has to be vacated then."""
    job = s.jobs[k]
    n.note_least(k, service_of(s, k, now))
    if (job.target if job.state == RESIZING else job.held) > job.gpus:
        shrink(s, n, k, now)
    preempt(s, k, now)
    if job.shadow_start == NEVER:
        return False
    s.tenants[job.tenant].granted -= n.slots(job.gpus)
    n.waiting[k] = None
    n.suspects[job.tenant][k] = None
    return True
