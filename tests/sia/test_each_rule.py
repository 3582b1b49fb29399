"""Each rule of the allocator is needed: without it jobs are later than promised, and with it the same jobs are not."""

import random

import pytest

from broker.sia import lending, shadow, step
from broker.sia.columns import (
    CREDIT,
    ENTITLEMENT,
    GUARD,
    HOME,
    NEVER,
    NOBODY,
    ORDER,
    RESTART,
    RESTORE,
    TINY_S,
    State,
)
from broker.sia.lists import waiting_insert
from tests.sia.placed import draw_placed, largest_placed_excess
from tests.sia.tiny import Instance, draw, largest_excess

ROUNDING_S = 1e-3
POOLED = {  # where they are found soon
    GUARD: (0, 50),
    ENTITLEMENT: (0, 300),
    ORDER: (400, 600),
    RESTORE: (0, 100),
    RESTART: (1900, 1950),
    CREDIT: (0, 300),
}
ON_NODES = {
    GUARD: (0, 50),
    ENTITLEMENT: (0, 100),
    ORDER: (0, 60),
    RESTORE: (0, 60),
    RESTART: (100, 200),
    CREDIT: (100, 200),
    HOME: (700, 800),
}


@pytest.mark.parametrize("rule", POOLED)
def test_switches(rule: int) -> None:
    extras = ["elastic"] if rule == CREDIT else []
    late = [seed for seed in range(*POOLED[rule]) if too_late(draw(random.Random(seed), extras, off=[rule]))]
    assert late
    assert not any(too_late(draw(random.Random(seed), extras)) for seed in late)


@pytest.mark.parametrize("rule", ON_NODES)
def test_switches_on_nodes(rule: int) -> None:
    extras = ["elastic"] if rule == CREDIT else []
    late = [seed for seed in range(*ON_NODES[rule]) if too_late_on_nodes(seed, extras, [rule])]
    assert late
    assert not any(too_late_on_nodes(seed, extras, []) for seed in late)


def too_late(instance: Instance) -> bool:
    excess = largest_excess(instance)
    return excess is not None and excess > TINY_S


def too_late_on_nodes(seed: int, extras: list[str], off: list[int]) -> bool:
    excess = largest_placed_excess(*draw_placed(random.Random(seed), extras, off))
    return excess is not None and excess > ROUNDING_S


def test_owed_jobs_are_not_called_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at most once here, or they would call each other back for ever."""

    def largest_running(s: State, _least_rung: int, now: float) -> int:
        running = [j for j in s.running[: s.pool[0].runs] if s.jobs[j].lendable and not s.jobs[j].preempted]
        return max(running, key=lambda j: (lending.rest_of(s, j, now) * s.jobs[j].gpus, j), default=NOBODY)

    def preempt_any(s: State, j: int, now: float) -> None:
        preempt(s, j, now)
        v = s.jobs[j].tenant
        if s.jobs[j].shadow_start < NEVER:
            s.tenants[v].granted -= s.jobs[j].gpus
            s.tenants[v].late -= s.jobs[j].late
            s.jobs[j].late = 0
            waiting_insert(s, v, j)

    preempt = lending.preempt
    monkeypatch.setattr(lending, "largest_early", largest_running)
    monkeypatch.setattr(lending, "preempt", preempt_any)
    late = [seed for seed in range(100) if too_late(draw(random.Random(seed)))]
    assert late
    monkeypatch.undo()
    assert not any(too_late(draw(random.Random(seed))) for seed in late)


def test_borrowers_give_back_within_the_longest_reclaim() -> None:
    late = [seed for seed in range(200) if too_late(slow_ones(seed, borrow=True))]
    assert late
    assert not any(too_late(slow_ones(seed, borrow=False)) for seed in late)


def slow_ones(seed: int, *, borrow: bool) -> Instance:
    instance = draw(random.Random(seed), ["slow"])
    for job in instance.jobs:
        if job.reclaim_s > instance.rules.reclaim_s:
            job.lendable = int(borrow)
    return instance


def test_jobs_larger_than_the_entitlement_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else those behind one in its tenant's queue are owed only when it has ended."""

    def joins(s: State, j: int, now: float) -> None:
        tenant = s.tenants[s.jobs[j].tenant]
        share, tenant.entitlement = tenant.entitlement, max(tenant.entitlement, s.jobs[j].gpus)
        join(s, j, now)
        tenant.entitlement = share

    join = shadow.shadow_join
    monkeypatch.setattr(step, "shadow_join", joins)
    late = [seed for seed in range(50) if too_late(draw(random.Random(seed), ["large"]))]
    assert late
    monkeypatch.undo()
    assert not any(too_late(draw(random.Random(seed), ["large"])) for seed in late)
