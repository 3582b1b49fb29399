"""Fast borrowers need less free slack in front of them than slow ones."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.backtest.replay import next_instant, replay_until
from broker.sia.columns import NEVER, RUNGS, RUNNING, TINY_S
from broker.sia.compiling import run
from broker.sia.machine import Kind, Machine, Request, Terms
from broker.sia.rungs import rung_of
from broker.sia.state import Rules
from tests.sia.tiny import Instance, build, draw, draw_extras, forecast_nonsense, largest_excess


def pool(hold: int, capacity: int = 12) -> Machine:
    """`own` has its 4 GPUs in use, so that what it wants more is borrowed."""
    terms = {"own": Terms(entitlement=4), "other": Terms(entitlement=8)}
    machine = Machine.new(terms, capacity, Rules(reclaim_s=80, restore_s=10))
    machine.hold_back(hold)
    machine.submit(0, Request(id="first", tenant="own", gpus=4))
    machine.tick(0)
    return machine


def lent(machine: Machine, gpus: int, reclaim_s: float, now: float = 0.0) -> bool:
    name = f"job{len(machine.jobs)}"
    machine.submit(now, Request(id=name, tenant="own", gpus=gpus, reclaim_s=reclaim_s))
    return name in [decision.job for decision in machine.tick(now) if decision.kind is Kind.LOAN]


@pytest.mark.parametrize(("reclaim_s", "rung"), [(0, 0), (19, 0), (20, 1), (59, 2), (60, 3), (80, 3), (90, 3)])
def test_rungs_are_parts_of_the_longest_reclaim(reclaim_s: float, rung: int) -> None:
    assert rung_of(reclaim_s, 80.0) == rung
    assert rung_of(reclaim_s, 0.0) == RUNGS - 1


def test_a_slow_borrower_is_refused_where_a_fast_one_is_lent_to() -> None:
    assert not lent(pool(hold=4), 6, reclaim_s=80)
    assert not lent(pool(hold=4), 6, reclaim_s=40)
    assert lent(pool(hold=4), 6, reclaim_s=20)
    assert lent(pool(hold=4), 4, reclaim_s=80)


def test_what_fast_borrowers_hold_is_slack_in_front_of_slow_ones() -> None:
    machine = pool(hold=4)
    assert lent(machine, 5, reclaim_s=10)
    assert lent(machine, 2, reclaim_s=80), "one free and five fast ones are before it"
    assert not lent(machine, 1, reclaim_s=10), "one must stay free before the fast ones"


def test_when_the_fast_ones_in_front_go_the_slow_one_is_called_back() -> None:
    machine = pool(hold=4)
    assert lent(machine, 5, reclaim_s=10)
    assert lent(machine, 2, reclaim_s=80)
    machine.submit(100, Request(id="due", tenant="other", gpus=6))
    called = [d.job for d in machine.tick(100) if d.kind is Kind.RECLAIM]
    assert called
    assert machine.state.pool[0].unmet <= machine.state.pool[0].capacity - 4
    machine.tick(180)
    granted = machine.state.jobs[machine.known["due"]]
    assert granted.state == RUNNING


@pytest.mark.parametrize("reclaim_s", [0.0, 10.0, 80.0])
def test_a_hold_back_of_all_lends_nothing_on_any_rung(reclaim_s: float) -> None:
    assert not lent(pool(hold=12), 1, reclaim_s=reclaim_s)


def ends(instance: Instance, seed: int, *, ladder: bool) -> list[float]:
    rng = random.Random(seed)
    state, world = build(instance)
    assert state.pool[0].fast == 0
    state.pool[0].fast = int(ladder)
    now = next_instant(state, world)
    while now < NEVER:
        forecast_nonsense(state, rng)
        now = replay_until(state, world, now)
    return [course.end for course in world.plan]


@pytest.mark.parametrize("seed", range(100))
def test_with_one_reclaim_time_the_ladder_decides_as_the_hold_back_alone(seed: int) -> None:
    found = []
    for ladder in (False, True):
        instance = draw(random.Random(seed), ["cancels", "moves"])
        for job in instance.jobs:
            job.reclaim_s = instance.rules.reclaim_s
        found.append(ends(instance, seed, ladder=ladder))
    assert found[0] == found[1]


def mixed(rng: random.Random) -> Instance:
    instance = draw(rng, draw_extras(rng))
    for job in instance.jobs:
        job.reclaim_s = rng.choice((0.0, instance.rules.reclaim_s / 2, instance.rules.reclaim_s))
    return instance


@settings(max_examples=200)
@given(rng=st.randoms(use_true_random=False))
def test_no_job_is_later_than_static_and_the_longest_reclaim(rng: random.Random) -> None:
    excess = largest_excess(mixed(rng), rng)
    assert excess is None or excess <= TINY_S


@pytest.mark.deep
def test_no_job_is_later_in_a_long_random_search() -> None:
    counted = 0
    for seed in range(20_000):
        rng = random.Random(seed)
        excess = largest_excess(mixed(rng), rng)
        counted += excess is not None
        assert excess is None or excess <= TINY_S, seed
    assert counted > 7_000


@pytest.mark.parametrize("seed", range(10))
def test_compiled_equals_plain_on_rungs(seed: int) -> None:
    found = []
    for plain in (True, False):
        state, world = build(mixed(random.Random(seed)))
        state.pool[0].hold = 2
        run(replay_until, state, world, NEVER, plain=plain)
        found.append(([course.end for course in world.plan], state.pool[0]))
    assert found[0] == found[1]
