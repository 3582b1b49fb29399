"""Forecasts learned in a replay: from the past only, and good enough to hold less at no more risk."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from broker.backtest.hourly import HOUR_S, Hour, Outcome, Setting
from broker.backtest.playing import prepare
from broker.backtest.protocols import LEARNED, Knobs, case_of, knobs_of, run_moving
from broker.backtest.running_times import LearnedDurations
from broker.backtest.synthetic import synthesise
from broker.backtest.trace import Trace
from broker.errors import UsageError
from broker.sia.columns import DONE, RUNNING

CUT_S = 9.5 * 86_400


@pytest.fixture(scope="module")
def trace() -> Trace:
    whole = synthesise(3)
    return whole.pick(whole.submit_s < 14 * 86_400)


@pytest.fixture(scope="module")
def learned(trace: Trace) -> Outcome:
    return run(trace, case_shares(trace), LEARNED)


def other_future(trace: Trace, ended: np.ndarray) -> Trace:
    """The same until the cut; after it durations of what has not ended, sizes and tenants are dealt anew."""
    rng = np.random.default_rng(0)
    later, unfinished = np.flatnonzero(trace.submit_s > CUT_S), np.flatnonzero(~ended)
    duration, gpus, tenant = trace.duration_s.copy(), trace.gpus.copy(), trace.tenant.copy()
    duration[unfinished] = np.maximum(duration[unfinished], CUT_S - trace.submit_s[unfinished] + 1) * rng.uniform(
        1, 9, len(unfinished)
    )
    shuffled = rng.permutation(later)
    gpus[later], tenant[later] = gpus[shuffled], tenant[shuffled]
    return replace(trace, duration_s=duration, gpus=gpus, tenant=tenant)


def run(trace: Trace, shares: np.ndarray, knobs: Knobs) -> Outcome:
    return run_moving(case_of(trace, shares), Setting(), knobs)


@pytest.mark.parametrize(
    "knobs",
    [Knobs(), LEARNED, Knobs(durations="learned")],
    ids=["rolling", "learned", "learned durations"],
)
def test_another_future_changes_no_decision(trace: Trace, knobs: Knobs) -> None:
    shares = case_shares(trace)
    first = run(trace, shares, knobs)
    second = run(other_future(trace, first.end <= CUT_S), shares, knobs)
    assert np.sum(first.start <= CUT_S) > 500
    before = (first.start <= CUT_S) | (second.start <= CUT_S)
    assert np.array_equal(first.start[before], second.start[before])
    past = [at for at, _ in first.curve if at <= CUT_S]
    assert len(past) > 150
    assert first.curve[: len(past)] == second.curve[: len(past)]
    assert first.curve[-1] != second.curve[-1], "the futures differ"


def case_shares(trace: Trace) -> np.ndarray:
    from broker.backtest.entitlements import from_concurrency

    return from_concurrency(trace, 0.9)


def test_the_same_past_gives_the_same_decisions(trace: Trace, learned: Outcome) -> None:
    again = run(trace, case_shares(trace), LEARNED)
    assert again.curve == learned.curve
    assert np.array_equal(again.end, learned.end)


def test_durations_that_are_learned_are_told_in_time(trace: Trace) -> None:
    case = case_of(trace, case_shares(trace))
    state, _ = prepare(trace, case.entitlements, case.total, Setting())
    jobs: Any = state.jobs
    learner = LearnedDurations(trace, lambda state, hour: None)
    first, ends = float(trace.submit_s[0]), trace.submit_s + trace.duration_s
    for at in np.arange(np.ceil(first / HOUR_S), 48) * HOUR_S:  # all start at once
        over = ends <= at
        jobs["state"] = np.where(over, DONE, RUNNING)
        jobs["work"] = np.where(over, trace.duration_s, np.inf)
        jobs["service"], jobs["since"] = np.maximum(at - trace.submit_s, 0.0), at
        learner(state, Hour(at, 0, 0, 0, 0, int(np.sum(trace.submit_s <= at))))
    later = (trace.submit_s > 24 * HOUR_S) & (trace.submit_s <= 48 * HOUR_S)
    told = jobs[["quick_s", "typical_s"]][later]
    assert np.all(told["quick_s"] <= told["typical_s"])
    assert len(np.unique(told["typical_s"])) > 50
    assert abs(np.mean(trace.duration_s[later] <= told["typical_s"]) - 0.5) < 0.12
    beyond = trace.submit_s > 49 * HOUR_S
    assert np.all(jobs["typical_s"][beyond] == 1000.0), "nothing is told of what lies further ahead"


def test_forecasts_are_made_worse_on_purpose(trace: Trace, learned: Outcome) -> None:
    bad = run(trace, case_shares(trace), replace(LEARNED, wrong_by=10.0))
    assert learned.curve != bad.curve
    assert len(learned.curve) >= (trace.submit_s[-1] - trace.submit_s[0]) / HOUR_S - 1


def test_knobs_have_defaults_by_forecast() -> None:
    assert knobs_of("learned", quantile=None, share=None) == LEARNED
    assert knobs_of("rolling", quantile=0.5).quantile == 0.5
    with pytest.raises(UsageError, match="guess"):
        knobs_of("guess")
