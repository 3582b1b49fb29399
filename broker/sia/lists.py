"""The sets that the allocator keeps: jobs that may start early, owed jobs without slots, running jobs."""

from broker.sia.columns import NEVER, NOBODY, State
from broker.sia.compiling import kernel
from broker.sia.firm import firm_wanted
from broker.sia.heap import heap_push, heap_remove


@kernel
def enqueue(s: State, j: int) -> None:
    """A queued job may start early: after fewest preemptions, then the smallest predicted rest in GPU-seconds.

    What a job has done adds to what it is thought to need: durations have heavy tails, so the young end first.
    A job that was preempted too often waits for its turn in the shadow; one that has no turn there goes on trying.
    """
    v = s.jobs[j].tenant
    has_turn = s.jobs[j].gpus <= s.tenants[v].entitlement
    if not (s.jobs[j].lendable or firm_wanted(s, j)) or (has_turn and s.jobs[j].preempted >= s.pool[0].limit):
        return
    rest = s.jobs[j].typical_s
    if s.pool[0].shortest:
        rest = (rest + s.jobs[j].service) * s.jobs[j].gpus
    if not rest < NEVER:  # also NaN
        rest = NEVER
    k = s.jobs[j].size
    s.sizes[k] = heap_push(s.queue, s.sizes[k], j, float(s.jobs[j].preempted), rest)
    s.jobs[j].queued = 1


@kernel
def queue_leave(s: State, j: int) -> None:
    if s.jobs[j].queued:
        k = s.jobs[j].size
        s.sizes[k] = heap_remove(s.queue, s.sizes[k], j)
        s.jobs[j].queued = 0


@kernel
def waiting_insert(s: State, v: int, j: int) -> None:
    """In queue order, which is the order of shadow starts."""
    left = s.tenants[v].last_waiting
    start = s.jobs[j].shadow_start
    while left != NOBODY and (s.jobs[left].shadow_start, left) > (start, j):
        left = s.jobs[left].waits_before
    right = s.tenants[v].first_waiting if left == NOBODY else s.jobs[left].waits_after
    activate(s, v)
    s.jobs[j].waits_before = left
    s.jobs[j].waits_after = right
    waiting_link(s, v, left, j)
    if right == NOBODY:
        s.tenants[v].last_waiting = j
    else:
        s.jobs[right].waits_before = j


@kernel
def waiting_remove(s: State, v: int, j: int) -> None:
    left, right = s.jobs[j].waits_before, s.jobs[j].waits_after
    waiting_link(s, v, left, right)
    if right == NOBODY:
        s.tenants[v].last_waiting = left
    else:
        s.jobs[right].waits_before = left


@kernel
def waiting_link(s: State, v: int, left: int, right: int) -> None:
    if left == NOBODY:
        s.tenants[v].first_waiting = right
    else:
        s.jobs[left].waits_after = right


@kernel
def running_add(s: State, j: int) -> None:
    at = s.pool[0].runs
    s.running[at] = j
    s.jobs[j].running_at = at
    s.pool[0].runs = at + 1


@kernel
def running_remove(s: State, j: int) -> None:
    at, last = s.jobs[j].running_at, s.running[s.pool[0].runs - 1]
    s.running[at] = last
    s.jobs[last].running_at = at
    s.jobs[j].running_at = NOBODY
    s.pool[0].runs -= 1


@kernel
def activate(s: State, v: int) -> None:
    """The tenant may have claims from now on."""
    if not s.tenants[v].active:
        s.tenants[v].active = 1
        s.active[s.pool[0].active] = v
        s.pool[0].active += 1


@kernel
def retire_idle(s: State) -> None:
    """Forget the tenants that have no claims any more."""
    kept = 0
    for i in range(s.pool[0].active):
        v = s.active[i]
        waits = s.tenants[v].first_waiting != NOBODY or s.tenants[v].late > 0
        s.tenants[v].active = 1 if waits or s.tenants[v].keep > 0 or s.tenants[v].entitled_since < NEVER else 0
        if s.tenants[v].active:
            s.active[kept] = v
            kept += 1
    s.pool[0].active = kept


@kernel
def log(s: State, j: int, kind: int) -> None:
    at = s.pool[0].logged
    s.log_job[at] = j
    s.log_kind[at] = kind
    s.pool[0].logged = at + 1
