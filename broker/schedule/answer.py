"""The allocator's state after a look, as an answer that a person or a program can follow."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from broker.config import ScheduleSettings
from broker.model.job import Job, JobState
from broker.schedule import habits
from broker.schedule.lending import loans
from broker.schedule.memory import Habit, Known, PoolMemory
from broker.schedule.orders import Class, Firm, Loan, Order, Overdue, PoolSchedule, Share
from broker.schedule.promises import Slots
from broker.sia import following
from broker.sia.columns import QUEUED
from broker.sia.machine import Machine

_HOLDS = frozenset({JobState.RUNNING, JobState.SUSPENDED})


class Stage(NamedTuple):
    """What an answer is made from. `now` is in seconds since `since`."""

    pool: str
    slots: tuple[Slots, ...]
    memory: PoolMemory
    jobs: Mapping[str, Job]
    settings: ScheduleSettings
    since: datetime
    now: float

    def at(self, seconds: float) -> datetime:
        return self.since + timedelta(seconds=seconds)


def schedule(stage: Stage, fresh: frozenset[str], notes: tuple[str, ...]) -> PoolSchedule:
    memory = stage.memory
    pool = memory.machine.state.pool[0]
    lent = loans(memory.machine, {known.name: key for key, known in memory.known.items()})
    orders = [order for key, known in memory.known.items() if (order := _order(stage, key, known, fresh, lent))]
    capacity = sum(each.gpus for each in stage.slots)
    return PoolSchedule(
        pool=stage.pool,
        capacity_gpus=capacity,
        slots=stage.slots,
        busy_gpus=pool.busy,
        free_gpus=max(0, capacity - pool.busy),
        claimed_gpus=pool.claimed,
        short_gpus=max(0, pool.claimed + pool.firm - capacity),
        held_back_gpus=pool.hold,
        expanded_gpus=pool.extra,
        firm=Firm(
            gpus=pool.firm, in_the_way_gpus=pool.firm_in_the_way, loans=pool.firm_judged, missed=pool.firm_missed
        ),
        largest_lag_s=pool.largest_lag,
        grants=tuple(order for order in orders if order.kind in ("grant", "restart")),
        loans=tuple(order for order in orders if order.kind == "loan"),
        reclaims=tuple(order for order in orders if order.kind == "reclaim"),
        shrinks=tuple(order for order in orders if order.kind == "shrink"),
        expansions=tuple(order for order in orders if order.kind == "expand"),
        lent=lent,
        overdue=_overdue(stage),
        tenants=_shares(stage, lent),
        classes=tuple(_class(name, habit, stage.settings) for name, habit in sorted(memory.habits.items())),
        notes=notes,
    )


def _order(stage: Stage, key: str, known: Known, fresh: frozenset[str], lent: tuple[Loan, ...]) -> Order | None:
    """It stands until the queue shows it done; what was decided otherwise since falls away with it."""
    if known.order is None:
        return None
    job, kind = stage.jobs[key], known.order.kind
    lenders = next((loan.lenders for loan in lent if loan.job == key), ()) if kind == "loan" else ()
    reclaim = stage.settings.reclaim.total_seconds()
    return Order(
        job=key,
        tenant=job.tenant,
        user=job.user,
        kind=kind,
        gpus=_to_hold(stage.memory.machine, known),
        lag_s=round(stage.memory.machine.lag_s(known.name), 3),
        reason=known.order.reason,
        since=stage.at(known.order.at),
        new=key in fresh,
        lenders=lenders,
        nodes=job.node_names if job.state in _HOLDS else (),
        due=stage.at(known.order.at + reclaim) if kind in ("reclaim", "shrink") else None,
    )


def _to_hold(machine: Machine, known: Known) -> int:
    """Of a rigid job, all its GPUs; of an elastic one that starts or changes size, as many as it is to have."""
    return (following.size(machine, known.name) if known.most else 0) or known.gpus


def _overdue(stage: Stage) -> tuple[Overdue, ...]:
    limit = stage.settings.reclaim.total_seconds()
    return tuple(
        Overdue(
            job=key,
            tenant=stage.jobs[key].tenant,
            kind=known.kind,
            gpus=known.shown - known.gpus if known.order.kind == "shrink" else known.gpus,
            since=stage.at(known.order.at),
            nodes=known.nodes,
        )
        for key, known in stage.memory.known.items()
        if known.order
        and known.began is not None
        and _calls_back(known.order.kind)
        and stage.now - known.order.at > limit
    )


def _calls_back(kind: str) -> bool:
    return kind in ("reclaim", "restart", "shrink")


def _shares(stage: Stage, lent: tuple[Loan, ...]) -> tuple[Share, ...]:
    machine = stage.memory.machine
    early, lends, queued = dict[str, int](), dict[str, int](), dict[str, int]()
    for loan in lent:
        early[loan.tenant] = early.get(loan.tenant, 0) + loan.gpus
        for part in loan.lenders:
            if part.tenant is not None:
                lends[part.tenant] = lends.get(part.tenant, 0) + part.gpus
    for known in stage.memory.known.values():
        if machine.state.jobs[machine.known[known.name]].state == QUEUED:
            name = machine.tenants[machine.state.jobs[machine.known[known.name]].tenant]
            queued[name] = queued.get(name, 0) + 1
    rows = zip(machine.tenants, machine.state.tenants, machine.borrows, strict=True)
    return tuple(
        Share(
            tenant=name,
            entitlement_gpus=tenant.entitlement,
            may_lend_gpus=tenant.entitlement - tenant.keep,
            borrows=borrows,
            owed_gpus=tenant.owed,
            granted_gpus=tenant.granted,
            early_gpus=early.get(name, 0),
            lent_gpus=lends.get(name, 0),
            queued_jobs=queued.get(name, 0),
        )
        for name, tenant, borrows in rows
    )


def _class(name: str, habit: Habit, settings: ScheduleSettings) -> Class:
    return Class(
        name=name,
        borrows=habits.may_borrow(habit, settings),
        reclaim_s=habits.reclaim_s(habit, settings) if habit.reclaim_s else None,
        reclaims=len(habit.reclaim_s),
        restore_s=habits.restore_s(habit, settings) if len(habit.restore_s) >= habits.FEWEST else None,
        restores=len(habit.restore_s),
        overdue=tuple(habit.overdue),
    )
