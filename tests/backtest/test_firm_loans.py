"""Jobs that cannot be called back, in a replay."""

from dataclasses import replace

import numpy as np
import pytest

from broker.backtest.hourly import Outcome, Setting
from broker.backtest.protocols import Case, Knobs, run_fixed, run_moving, whole_trace
from broker.backtest.synthetic import Recipe, synthesise
from broker.sia.firm import FEWEST_ALLOWED
from broker.sia.state import Rules

SHARE = 0.05
LENT_TO = Setting(rules=Rules(firm_share=SHARE), unstoppable=0.5)


@pytest.fixture(scope="module")
def case() -> Case:
    return whole_trace(synthesise(1, Recipe(days=20)))


def held_to_their_share(case: Case, outcome: Outcome) -> bool:
    return outcome.firm_missed <= SHARE * outcome.firm_loans + max(FEWEST_ALLOWED, case.total / 10)


def test_they_gain_and_few_are_in_the_way(case: Case) -> None:
    never = run_fixed(case, replace(LENT_TO, rules=Rules()))
    outcome = run_fixed(case, LENT_TO)
    assert never.firm_loans == 0
    assert case.judge(outcome).latency_ratio > 2 * case.judge(never).latency_ratio
    assert outcome.firm_loans > 1000
    assert outcome.firm_missed <= SHARE * outcome.firm_loans
    assert case.judge(outcome).largest_delay_s <= 60 + 1e-6 or outcome.short_s > 0


@pytest.mark.parametrize("seed", range(2))
def test_misses_keep_to_their_share_while_capacity_moves(case: Case, seed: int) -> None:
    outcome = run_moving(case, replace(LENT_TO, unstoppable=1.0, seed=seed), Knobs())
    assert outcome.firm_loans > 1000
    assert outcome.firm_missed <= SHARE * outcome.firm_loans


def test_wrong_durations_cannot_break_the_allowance(case: Case) -> None:
    """All are said to take a second, in a third of the slots."""
    tight = Case(trace=case.trace, entitlements=np.maximum(8, case.entitlements // 3), static_end=case.static_end)
    jobs = case.trace.gpus <= tight.entitlements[case.trace.tenant]
    tight = replace(tight, trace=case.trace.pick(jobs), static_end=case.static_end[jobs])
    outcome = run_moving(tight, replace(LENT_TO, unstoppable=1.0), replace(Knobs(), wrong_by=1e4))
    assert outcome.firm_missed > 0
    assert held_to_their_share(tight, outcome)


def test_without_such_jobs_nothing_changes(case: Case) -> None:
    one, two = (run_moving(case, Setting(rules=Rules(firm_share=share)), Knobs()) for share in (0.0, SHARE))
    assert np.array_equal(one.end, two.end)
    assert one.preemptions == two.preemptions
