"""Capacity decided once an hour: what arrives when, what it costs, and that nothing looks ahead."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from broker.backtest.advice import FixedHold
from broker.backtest.covering import Covering, Given, Rises
from broker.backtest.fifo import pooled_starts, static_starts
from broker.backtest.hourly import Hour, Setting, replay_naive, replay_sia
from broker.backtest.protocols import whole_trace
from broker.backtest.trace import Trace
from broker.sia.state import Rules
from tests.backtest.conftest import random_trace

SHARES = np.array([8, 9, 12, 30])


def slow_trace(seed: int, jobs: int = 300) -> Trace:
    """Over days, so that hours matter."""
    trace = random_trace(seed, jobs)
    scaled = {"submit_s": trace.submit_s * 600, "duration_s": trace.duration_s * 300}
    return Trace(**{**{name: getattr(trace, name) for name in trace.__slots__}, **scaled})


def covering() -> Covering:
    return Covering(rises=Rises(quantile=0.9, hours=4, days=1), first=int(SHARES.sum()), most=int(SHARES.sum()))


@dataclass
class Steps:
    """Asks for the next of `goals` each hour and notes what it was told."""

    goals: list[int]
    seen: list[Hour] = field(default_factory=list)

    def goal(self, hour: Hour) -> int:
        self.seen.append(hour)
        return self.goals[min(len(self.seen), len(self.goals)) - 1]


def test_constant_capacity_without_rule_is_the_plain_queue() -> None:
    trace = slow_trace(1)
    outcome = replay_naive(trace, 20, Setting())
    assert np.array_equal(outcome.start, pooled_starts(trace, 20))
    span = trace.submit_s[-1] - trace.submit_s[0]
    assert outcome.held_s == pytest.approx(20 * span)


def test_more_arrives_after_the_lead_time_and_less_at_once() -> None:
    trace = slow_trace(2, jobs=40)
    quiet = trace.pick(np.arange(40) < 2)
    far = Trace(**{**{n: getattr(quiet, n) for n in quiet.__slots__}, "submit_s": np.array([0.0, 5 * 3600.0])})
    rule = Steps([20, 30, 30, 5, 5, 5])
    held = np.diff([at for _, at in replay_naive(far, 20, Setting(lead_s=600), rule).curve])
    assert held[:4] == pytest.approx([20 * 3600, 20 * 600 + 30 * 3000, 30 * 3600, 5 * 3600])


def test_failed_purchases_bring_nothing() -> None:
    trace = slow_trace(3)
    rule = Steps([8, 100])
    replay_naive(trace, 20, Setting(failure=1.0), rule)
    assert max(hour.capacity for hour in rule.seen[1:]) == 8


def test_no_decision_depends_on_what_comes_later() -> None:
    """The second half's jobs, shuffled: all that was decided and started before is the same."""
    trace = slow_trace(4)
    half = float(trace.submit_s[150])
    later = trace.submit_s > half
    order = np.arange(len(trace))
    order[later] = np.random.default_rng(0).permutation(order[later])
    shuffled = {"duration_s": trace.duration_s[order], "gpus": trace.gpus[order], "tenant": trace.tenant[order]}
    other = Trace(**{**{name: getattr(trace, name) for name in trace.__slots__}, **shuffled})
    one, two = (replay_sia(t, SHARES, 59, Setting(), covering()) for t in (trace, other))
    early = (one.start <= half) & ~later
    assert early.sum() > 50
    assert np.array_equal(one.start[early], two.start[early])
    before = [point for point in one.curve if point[0] <= half]
    assert before == two.curve[: len(before)]


@pytest.mark.parametrize("seed", range(3))
def test_moving_capacity_keeps_the_bound_while_it_covers_claims(seed: int) -> None:
    trace = slow_trace(seed)
    rules = Rules(reclaim_s=60, restore_s=120)
    outcome = replay_sia(trace, SHARES, 59, Setting(rules=rules), covering())
    delay = outcome.end - (static_starts(trace, SHARES) + trace.duration_s)
    assert np.all(np.isfinite(outcome.end))
    assert outcome.short_s > 0 or delay.max() <= 60 + 1e-6
    assert outcome.held_s < 59 * (trace.submit_s[-1] - trace.submit_s[0])


def test_given_repeats_what_was_held() -> None:
    trace = slow_trace(5)
    first = replay_naive(trace, 40, Setting(), Steps([40, 20, 30, 10, 40, 40]))
    again = Given(first.curve)
    goals = [again.goal(Hour(at, 0, 0, 0, 0, 0)) for at, _ in first.curve[:-1]]
    assert goals == [round(mean) for mean in np.diff([held for _, held in first.curve]) / 3600]


def test_capacity_is_decided_every_so_many_hours_and_learned_each_hour() -> None:
    trace = slow_trace(2, jobs=40)
    rule = Steps(list(range(100, 1, -1)))
    outcome = replay_naive(trace, 100, Setting(every_h=6), rule)
    hours = [round(hour.at / 3600) for hour in rule.seen]
    during = [hour for hour in hours if hour * 3600 <= trace.submit_s[-1]]
    assert during == list(range(during[0], during[-1] + 1)), "it learns each hour"
    held = {hour: seen.capacity for hour, seen in zip(hours, rule.seen, strict=True)}
    changed = [hour for hour in during[1:] if held[hour] != held[hour - 1]]
    assert changed and all(hour % 6 == 1 for hour in changed), "the hour after a decision sees what was decided"
    assert np.isfinite(outcome.end).all()


@pytest.mark.parametrize("every_h", [1, 5, 24, 1000])
def test_rare_decisions_still_end_every_job(every_h: int) -> None:
    trace = slow_trace(5)
    outcome = replay_sia(trace, SHARES, int(SHARES.sum()), Setting(every_h=every_h), covering())
    fits = trace.gpus <= SHARES[trace.tenant]
    assert np.isfinite(outcome.end[fits]).all()


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_a_fixed_share_is_held_back(share: float) -> None:
    trace = slow_trace(6)
    case = whole_trace(trace)
    seen: list[tuple[int, int]] = []

    class Watched(FixedHold):
        def __call__(self, state: Any, hour: Hour) -> None:
            super().__call__(state, hour)
            seen.append((int(state.pool[0]["hold"]), hour.capacity))

    replay_sia(trace, case.entitlements, case.total, Setting(), None, Watched(share))
    assert seen and all(hold == round(share * held) for hold, held in seen)
