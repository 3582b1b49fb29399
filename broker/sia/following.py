"""What the live machine is told beyond the replay's events: promises that change, and slots that come back late."""

from broker.sia.columns import DRAINING, NEVER, QUEUED, RESIZING, RUNNING, Tenant
from broker.sia.heap import heap_push, heap_remove
from broker.sia.lending import pause
from broker.sia.lists import activate, enqueue, queue_leave
from broker.sia.machine import Machine, Terms
from broker.sia.shadow import note_lag
from broker.sia.state import classify
from broker.sia.step import finish_drain


def promise(machine: Machine, tenant: str, terms: Terms) -> None:
    """Change what a tenant is promised, or let a new one in. Less shows as its jobs end: what runs stays owed."""
    keep = 0 if terms.lends is None else max(0, terms.entitlement - terms.lends)
    if tenant not in machine.tenants:
        machine.tenants.append(tenant)
        machine.borrows.append(terms.borrows)
        machine.state.tenants.append(Tenant())
        machine.state.active.append(0)
    v = machine.tenants.index(tenant)
    machine.borrows[v] = terms.borrows
    machine.state.tenants[v].entitlement, machine.state.tenants[v].keep = terms.entitlement, keep
    if keep > 0:
        activate(machine.state, v)


def gives_back(machine: Machine, job: str) -> bool:
    """Whether slots of the job are still draining, as far as the machine knows."""
    record = machine.state.jobs[machine.known[job]]
    return record.state == DRAINING or record.leaving > 0


def shrinks(machine: Machine, job: str) -> bool:
    """Whether it is to give back some of its slots, as far as the machine knows."""
    record = machine.state.jobs[machine.known[job]]
    return record.state == RESIZING and record.held > record.target


def size(machine: Machine, job: str) -> int:
    """GPUs that it is to use; 0 if none."""
    record = machine.state.jobs[machine.known[job]]
    return record.target if record.state == RESIZING else record.held


def may_use(machine: Machine, job: str, most: int) -> None:
    """How many GPUs an elastic job may be given. What it has already is not taken back for that."""
    record, pool = machine.state.jobs[machine.known[job]], machine.state.pool[0]
    pool.elastic -= record.most > record.gpus
    record.most = max(most, record.gpus)
    pool.elastic += record.most > record.gpus


def holds_all(machine: Machine, job: str, gpus: int) -> None:
    """What an elastic job that runs is seen on is not free, also where it was not thought to hold so much.

    Of a growth under way that is what it was to have, which it can only give back in another pause; beyond that it has
    grown unasked, or after it was told not to, and has that pause before it.
    """
    state, j = machine.state, machine.known[job]
    record, pool = state.jobs[j], state.pool[0]
    if record.state == RESIZING and record.was < gpus <= record.held == record.target:
        record.was = record.held
    more, goal = gpus - record.held, size(machine, job)
    if more <= 0:
        return
    pause(state, j, pool.now)
    record.held, record.was, record.target = gpus, gpus, goal
    pool.busy += more
    pool.coming += more
    if record.shadow_start < NEVER:
        note_lag(state, j, pool.now)


def holds_only(machine: Machine, job: str, gpus: int) -> None:
    """One that was called back while it shrank has given back a part already."""
    record, pool = machine.state.jobs[machine.known[job]], machine.state.pool[0]
    back = record.held - gpus
    if record.state == DRAINING and back > 0:
        record.held -= back
        pool.busy -= back
        pool.coming -= back


def has_done(machine: Machine, job: str, service_s: float) -> None:
    """What a job that is to change size has really done."""
    record = machine.state.jobs[machine.known[job]]
    if record.state == RESIZING:
        record.service = service_s


def gives_back_at(machine: Machine, job: str, at: float) -> None:
    """The slots that a called-back job still holds come back at `at`, sooner or later than was thought."""
    state, j = machine.state, machine.known[job]
    pool = state.pool[0]
    pool.drains = heap_remove(state.drains, pool.drains, j)
    state.jobs[j].drained_at = at
    if at <= pool.now:  # this one only: of others it is not known yet whether they still hold theirs
        finish_drain(state, j, pool.now)
    else:
        pool.drains = heap_push(state.drains, pool.drains, j, at, 0.0)


def may_borrow(machine: Machine, job: str, *, allowed: bool, firm: bool = False) -> None:
    """Whether a job that waits may start early: to be called back, or not (`firm`). One that runs stays what it was."""
    state, j = machine.state, machine.known[job]
    record = state.jobs[j]
    if record.state != QUEUED or (record.lendable, record.firm) == (allowed, firm):
        return
    queue_leave(state, j)
    record.lendable, record.firm = int(allowed), int(firm)
    classify(state, record, machine.classes)
    if record.shadow_start == NEVER:
        enqueue(state, j)


def keep_firm_record(machine: Machine, before: Machine) -> None:
    """What was learned of firm loans goes on in a machine that begins anew; those under way are judged no more."""
    new, old = machine.state.pool[0], before.state.pool[0]
    new.firm_correction, new.firm_judged, new.firm_missed = old.firm_correction, old.firm_judged, old.firm_missed
    for horizon, known in zip(machine.state.horizons, before.state.horizons, strict=True):
        horizon.rise = known.rise


def runs(machine: Machine, job: str) -> bool:
    return machine.state.jobs[machine.known[job]].state == RUNNING


def is_owed(machine: Machine, job: str) -> bool:
    return machine.state.jobs[machine.known[job]].shadow_start < NEVER


def owed_since(machine: Machine, job: str) -> float | None:
    start = machine.state.jobs[machine.known[job]].shadow_start
    return start if start < NEVER else None
