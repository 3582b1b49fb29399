"""The two protocols that the allocator is judged by, and the baselines beside it, on any trace."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from broker.backtest.advice import Expects, FixedHold, LearnedHold
from broker.backtest.covering import Covering, Error, Given, Rises
from broker.backtest.entitlements import from_concurrency, from_offered_load
from broker.backtest.fifo import static_starts
from broker.backtest.hourly import HOUR_S, Advise, CapacityRule, Outcome, Setting, replay_naive, replay_sia
from broker.backtest.insurance import MinimumTerm
from broker.backtest.metrics import Comparison, compare
from broker.backtest.placed import in_cells, in_nodes, placed_static_starts
from broker.backtest.predicted import wrong_by
from broker.backtest.trace import DAY_S, Floats, Ints, Trace
from broker.errors import InputError, UsageError
from broker.sia.holdback import HoldBack
from broker.sia.state import Rules

if TYPE_CHECKING:
    from broker.backtest.foresight import Foresight


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Capacity: `share` of running + queued is covered, and the `quantile` of its rises within `hours`.

    `forecast` of that quantile: "rolling" over the last `days`, or "learned" on the way.
    """

    quantile: float = 0.9
    hours: int = 8
    days: float = 7.0
    share: float = 0.9
    alpha: float = 0.003
    hold_share: float | None = None  # of what is held, never lent; None: learned
    term_s: float = 0.0  # what is bought is kept so long
    forecast: str = "rolling"
    durations: str = "none"  # what ranks loans and tells quick jobs: none, learned, known, submit
    claims_quantile: float | None = None  # learned: of the rises of claims, covered apart from those of demand
    wrong_by: float = 1.0  # forecasts are too high or too low by this factor, at random


LEARNED = Knobs(forecast="learned", quantile=0.85, hours=2, share=1.0, claims_quantile=0.995)
"""Defaults for learned forecasts, which need to look no further than until the next order can arrive."""


FIXED = Knobs(alpha=0.001)
"""Defaults where all that is promised is held: fewer starts may wait for a reclaim."""


def knobs_of(forecast: str, durations: str = "none", **given: float | None) -> Knobs:
    """The defaults of that forecast, with what is given instead."""
    if durations not in ("none", "learned"):
        raise UsageError(f"no durations are named {durations!r}", next_step="Choose none or learned")
    if forecast not in ("rolling", "learned"):
        raise UsageError(f"no forecast is named {forecast!r}", next_step="Choose rolling or learned")
    changed = {name: value for name, value in given.items() if value is not None}
    defaults = LEARNED if forecast == "learned" else Knobs()
    return replace(defaults, durations=durations, **changed)  # type: ignore[arg-type]  # by names of knobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A trace with what its tenants are promised, and their schedule under it; on nodes, unless `node_gpus` is 0."""

    trace: Trace
    entitlements: Ints
    static_end: Floats
    node_gpus: int = 0

    @property
    def total(self) -> int:
        return int(self.entitlements.sum())

    @property
    def span_s(self) -> float:
        return float(self.trace.submit_s[-1] - self.trace.submit_s[0])

    def cost(self, outcome: Outcome) -> float:
        """GPU-seconds held over those of STATIC, first to last submit."""
        return outcome.held_s / (self.total * self.span_s)

    def judge(self, outcome: Outcome) -> Comparison:
        return self.judge_ends(outcome.end)

    def judge_ends(self, end: Floats) -> Comparison:
        return compare(self.trace.submit_s, self.static_end, end)

    def judge_halves(self, outcome: Outcome) -> tuple[Comparison, Comparison]:
        """First and second half of the jobs."""
        first = np.arange(len(self.trace)) < len(self.trace) // 2
        one, two = (
            compare(self.trace.submit_s[half], self.static_end[half], outcome.end[half]) for half in (first, ~first)
        )
        return one, two


def case_of(trace: Trace, entitlements: Ints, *, node_gpus: int = 0, rest_s: float = 0.0) -> Case:
    """On nodes, a cell that nobody used for `rest_s` goes first; the allocator takes its longest reclaim time.

    Raises InputError where cost cannot be told: it is taken from first to last submit.
    """
    if trace.submit_s[0] == trace.submit_s[-1]:
        raise InputError(
            "no time passes between the first submit and the last: there is no span to replay",
            next_step="Give a trace of at least a few hours, better of weeks",
        )
    if node_gpus:
        starts = placed_static_starts(trace, entitlements, node_gpus, rest_s)
    else:
        starts = static_starts(trace, entitlements)
    ends = starts + trace.duration_s
    return Case(trace=trace, entitlements=entitlements, static_end=ends, node_gpus=node_gpus)


def on_nodes(case: Case, node_gpus: int, rest_s: float) -> Case:
    """The same jobs and promises, both in whole cells and nodes."""
    trace = in_cells(case.trace, node_gpus)
    return case_of(trace, in_nodes(case.entitlements, node_gpus), node_gpus=node_gpus, rest_s=rest_s)


def whole_trace(trace: Trace, quantile: float = 0.90) -> Case:
    """Entitlements from each tenant's own concurrency: the philly-90 protocol."""
    return case_of(trace, from_concurrency(trace, quantile))


def window(trace: Trace, first_day: int = 60, last_day: int = 74) -> Case:
    """Two weeks at fixed capacity: the philly-60 protocol."""
    first_s, last_s = first_day * DAY_S, last_day * DAY_S
    inside = trace.pick((trace.submit_s >= first_s) & (trace.submit_s < last_s))
    return case_of(inside, from_offered_load(inside, first_s, last_s))


def run_moving(case: Case, setting: Setting, knobs: Knobs) -> Outcome:
    """SIA with capacity decided once an hour."""
    typical, quick = _durations(case, knobs, setting.seed)
    advise = _advise(case, setting, knobs)
    rule: CapacityRule
    if knobs.forecast == "learned":
        advise = rule = _foresight(case, knobs, advise, setting.seed)
    else:
        rule = covering(case, knobs, case.total, setting.seed)
    if knobs.term_s > 0:
        rule = MinimumTerm(rule=rule, term_s=knobs.term_s)
    return replay_sia(case.trace, case.entitlements, case.total, setting, rule, advise, typical, quick)


def _advise(case: Case, setting: Setting, knobs: Knobs) -> Advise:
    """What sets the hold-back and, where they are learned, the durations."""
    advise: Advise
    if knobs.hold_share is None:
        starts = _starts(setting.rules, knobs.alpha, setting.seed) if knobs.forecast == "learned" else None
        advise = learned(case, setting.rules, knobs.alpha, starts)
    else:
        advise = FixedHold(knobs.hold_share)
    return _learned_durations(case, advise, setting.seed) if knobs.durations == "learned" else advise


def _foresight(case: Case, knobs: Knobs, hold: Advise, seed: int) -> "Foresight":
    from broker.backtest.foresight import Foresight
    from forecasts import rises

    def forecast(quantile: float) -> rises.RiseForecast:
        return rises.RiseForecast.new(rises.Setting(quantile=quantile, hours=knobs.hours))

    return Foresight(
        rises=forecast(knobs.quantile),
        dues=None if knobs.claims_quantile is None else forecast(knobs.claims_quantile),
        hold=hold,
        first=case.total,
        most=case.total,
        share=knobs.share,
        error=Error(knobs.wrong_by, seed),
    )


def _starts(rules: Rules, alpha: float, seed: int) -> Expects:
    from forecasts.starts import Starts

    return Starts.new(alpha, windows(rules), seed=seed)


def _learned_durations(case: Case, hold: Advise, seed: int) -> Advise:
    from broker.backtest.running_times import LearnedDurations

    return LearnedDurations(case.trace, hold, seed)


def _durations(case: Case, knobs: Knobs, seed: int) -> tuple[Floats | None, Floats | None]:
    """What is said of each job's duration in advance: typical, and quick."""
    duration = case.trace.duration_s
    if knobs.wrong_by != 1.0:
        wrong = wrong_by(duration, knobs.wrong_by, seed)
        return wrong, wrong
    if knobs.durations == "known":
        return duration, duration
    return (case.trace.submit_s if knobs.durations == "submit" else None), None


def run_fixed(case: Case, setting: Setting, knobs: Knobs = FIXED) -> Outcome:
    """SIA with all that is promised held; of the knobs, those of the hold-back and the durations count."""
    return replay_sia(case.trace, case.entitlements, case.total, setting, None, _advise(case, setting, knobs))


def run_adaptive_naive(case: Case, setting: Setting, knobs: Knobs) -> Outcome:
    """Pooled FIFO; its capacity covers running + queued and their rises."""
    return replay_naive(case.trace, case.total, setting, covering(case, replace(knobs, share=1.0), 10**9))


def run_naive_on(case: Case, setting: Setting, outcome: Outcome) -> Outcome:
    """Pooled FIFO on the capacity that another policy held, hour by hour."""
    return replay_naive(case.trace, case.total, replace(setting, lead_s=0.0), Given(outcome.curve))


def run_naive_mean(case: Case, setting: Setting, outcome: Outcome) -> Outcome:
    """Pooled FIFO at the mean capacity of another policy."""
    return replay_naive(case.trace, setting.whole(int(case.cost(outcome) * case.total)), setting)


def covering(case: Case, knobs: Knobs, most: int, seed: int = 0) -> CapacityRule:
    rises = Rises(quantile=knobs.quantile, hours=knobs.hours, days=knobs.days, error=Error(knobs.wrong_by, seed))
    return Covering(rises=rises, first=case.total, most=most, share=knobs.share)


def learned(case: Case, rules: Rules, alpha: float, starts: Expects | None = None) -> LearnedHold:
    return LearnedHold(HoldBack(capacity=case.total, windows=windows(rules), alpha=alpha), starts)


def windows(rules: Rules) -> int:
    """Reclaim times in an hour."""
    return max(1, round(HOUR_S / max(rules.reclaim_s, 1.0)))
