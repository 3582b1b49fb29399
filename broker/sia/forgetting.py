"""Letting go of finished jobs that nothing can reach any more, so that a machine that lives for years stays small.

A roll-back goes to the end of a late job, which lies behind its start in the shadow. What has left a tenant's shadow
before the first start of an unfinished job can therefore never be undone.
"""

from dataclasses import fields
from itertools import pairwise

from broker.sia.columns import DONE, NEVER, NOBODY, Tenant
from broker.sia.heap import Node
from broker.sia.machine import Machine

_LINKS = ("before", "after", "ended_before", "waits_before", "waits_after")
_ENDS = ("head", "tail", "ended", "first_waiting", "last_waiting")


def forget(machine: Machine) -> int:
    """Returns how many jobs were let go. Decisions stay the same: jobs keep their order. On nodes, none are."""
    state = machine.state
    if machine.ground.saved() is not None:
        return 0
    horizons = _horizons(machine)
    gone = {j for j, job in enumerate(state.jobs) if job.state >= DONE and _over(machine, j, horizons[job.tenant])}
    if not gone:
        return 0
    for tenant in state.tenants:
        _unstack(machine, tenant, gone)
    for j in gone:
        _unlink(machine, j)
    _renumber(machine, [j for j in range(len(state.jobs)) if j not in gone])
    return len(gone)


def _horizons(machine: Machine) -> list[float]:
    first = [NEVER] * len(machine.state.tenants)
    for job in machine.state.jobs:
        if job.state < DONE:
            first[job.tenant] = min(first[job.tenant], job.shadow_start)
    return first


def _over(machine: Machine, j: int, horizon: float) -> bool:
    job = machine.state.jobs[j]
    if job.leaving:
        return False
    left = job.shadow_left and job.shadow_start < NEVER and job.shadow_end <= horizon
    return bool(left) or (job.shadow_start == NEVER and not job.shadow_left and not _linked(machine, j))


def _linked(machine: Machine, j: int) -> bool:
    """Whether it stands in its tenant's shadow queue; a job that was taken out still points into it."""
    jobs, job = machine.state.jobs, machine.state.jobs[j]
    tenant = machine.state.tenants[job.tenant]
    before = job.before != NOBODY and jobs[job.before].after == j
    after = job.after != NOBODY and jobs[job.after].before == j
    return before or after or j in (tenant.head, tenant.tail)


def _unstack(machine: Machine, tenant: Tenant, gone: set[int]) -> None:
    jobs = machine.state.jobs
    kept, j = [], tenant.ended
    while j != NOBODY:
        if j not in gone:
            kept.append(j)
        j = jobs[j].ended_before
    tenant.ended = kept[0] if kept else NOBODY
    for upper, lower in pairwise([*kept, NOBODY]):
        jobs[upper].ended_before = lower


def _unlink(machine: Machine, j: int) -> None:
    if not _linked(machine, j):
        return
    jobs, job = machine.state.jobs, machine.state.jobs[j]
    tenant = machine.state.tenants[job.tenant]
    if job.before != NOBODY:
        jobs[job.before].after = job.after
    if job.after != NOBODY:
        jobs[job.after].before = job.before
    if tenant.tail == j:
        tenant.tail = job.before


def _renumber(machine: Machine, kept: list[int]) -> None:
    state = machine.state
    to = dict(zip(kept, range(len(kept)), strict=True)) | {NOBODY: NOBODY}
    for each in kept:
        _moved(state.jobs[each], _LINKS, to)
    for tenant in state.tenants:
        _moved(tenant, _ENDS, to)
    _moved(state.pool[0], ("shadow_ends", "drains"), to)
    for heap in (state.ends, state.drains, state.queue):
        nodes = [_node(heap[each], to) for each in kept]
        heap[:] = nodes
    state.sizes[:] = [to[root] for root in state.sizes]
    runs = [to[j] for j in state.running[: state.pool[0].runs]]
    state.running[:] = runs + [NOBODY] * (len(kept) - len(runs))
    state.jobs[:] = [state.jobs[each] for each in kept]
    for log in (state.log_job, state.log_kind):
        log[:] = [0] * (16 + 4 * len(kept))
    machine.jobs[:] = [machine.jobs[each] for each in kept]
    machine.known = {name: j for j, name in enumerate(machine.jobs)}


def _moved(record: object, names: tuple[str, ...], to: dict[int, int]) -> None:
    """What points to a job that is gone is a trace that nothing follows."""
    for name in names:
        setattr(record, name, to.get(getattr(record, name), NOBODY))


def _node(node: Node, to: dict[int, int]) -> Node:
    """A node that is in no heap may hold old links, which nothing reads."""
    moved = Node(**{field.name: getattr(node, field.name) for field in fields(Node)})
    _moved(moved, ("left", "right", "up"), to)
    return moved


def crosses(machine: Machine, tenant: str, entitlement: int) -> bool:
    """Whether jobs that the tenant's shadow holds, or leaves out, would change sides with that entitlement."""
    if tenant not in machine.tenants:
        return False
    v = machine.tenants.index(tenant)
    low, high = sorted((machine.state.tenants[v].entitlement, entitlement))
    return any(job.tenant == v and low < job.gpus <= high for job in machine.state.jobs)
