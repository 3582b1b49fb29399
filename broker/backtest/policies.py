"""The policies of a backtest as tasks that can run side by side, and what each is judged by."""

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from broker.backtest.clairvoyant import capacity_without_waits, known_demand
from broker.backtest.easy import static_easy_starts
from broker.backtest.fifo import pooled_starts, queue_starts
from broker.backtest.hourly import HOUR_S, Outcome, Setting, replay_sia
from broker.backtest.metrics import Comparison
from broker.backtest.placed import placed_pooled_starts
from broker.backtest.playing import placed_ranked_ends
from broker.backtest.predicted import class_medians
from broker.backtest.protocols import (
    Case,
    Knobs,
    learned,
    run_adaptive_naive,
    run_moving,
    run_naive_mean,
    run_naive_on,
)
from broker.backtest.trace import Floats

_BISECTIONS = 6
Task = Callable[[], "Policy"]


class SeedRun(NamedTuple):
    """What one seed gave; named as in JSON."""

    latency_ratio: float
    p_slowdown_over_1_1: float
    cost_vs_static: float
    largest_lag_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`seeds` are the runs of the seeds beyond the first; `plotted` is for the page."""

    comparison: Comparison
    cost_vs_static: float
    outcome: Outcome | None
    end: Floats
    seeds: tuple[SeedRun, ...] = ()
    plotted: bool = True

    @property
    def run(self) -> SeedRun:
        judged = self.comparison
        return SeedRun(judged.latency_ratio, judged.p_slowdown_over[1.1], self.cost_vs_static, judged.largest_delay_s)

    def intervals(self) -> dict[str, tuple[float, float]]:
        """From the least to the most of all seeds; empty where there is one."""
        if not self.seeds:
            return {}
        columns = zip(*(self.run, *self.seeds), strict=True)
        return {name: (min(column), max(column)) for name, column in zip(SeedRun._fields, columns, strict=True)}

    def figures(self) -> dict[str, Any]:
        """As they appear in JSON."""
        judged, outcome = self.comparison, self.outcome
        over = {f"p_slowdown_over_{x:g}".replace(".", "_"): p for x, p in judged.p_slowdown_over.items()}
        return {
            "mean_latency_s": judged.mean_latency_s,
            "latency_ratio": judged.latency_ratio,
            "mean_ratio": judged.mean_ratio,
            "geometric_mean_ratio": judged.geometric_mean_ratio,
            "cost_vs_static": self.cost_vs_static,
            **over,
            "largest_lag_s": judged.largest_delay_s,
            "preemptions": outcome.preemptions if outcome else 0,
            "firm_loans": outcome.firm_loans if outcome else 0,
            "firm_loans_missed": outcome.firm_missed if outcome else 0,
            "lost_gpu_hours": outcome.lost_gpu_s / HOUR_S if outcome else 0.0,
            "stockout_hours": outcome.short_s / HOUR_S if outcome else 0.0,
            "held_gpu_hours_after_last_submit": outcome.held_after_s / HOUR_S if outcome else 0.0,
            "slowdown_quantiles": {f"{q:g}": value for q, value in judged.slowdown_quantiles.items()},
            "jobs": judged.jobs,
            "jobs_left_out": judged.left_out,
            "jobs_never_ended": judged.never_ended,
            "seeds": [run._asdict() for run in self.seeds],
            "intervals": {name: list(ends) for name, ends in self.intervals().items()},
        }


def carry_out(tasks: Mapping[str, Task], jobs: int, tell: Callable[[str], None]) -> dict[str, Policy]:
    """Run the tasks on up to `jobs` cores; the answers are in the order of the tasks, whatever ends first."""
    if jobs <= 1 or len(tasks) <= 1:
        found = {}
        for name, task in tasks.items():
            tell(name)
            found[name] = task()
        return found
    with ProcessPoolExecutor(min(jobs, len(tasks)), multiprocessing.get_context("spawn")) as pool:
        begun = {name: pool.submit(task) for name, task in tasks.items()}
        done = {}
        for name, future in begun.items():
            done[name] = future.result()
            tell(name)
    return done


def of(case: Case, outcome: Outcome) -> Policy:
    return Policy(comparison=case.judge(outcome), cost_vs_static=case.cost(outcome), outcome=outcome, end=outcome.end)


def of_end(case: Case, end: Floats, cost: float = 1.0) -> Policy:
    """Of a schedule under capacity that is not decided by a replay."""
    judged = case.judge_ends(end)
    return Policy(comparison=judged, cost_vs_static=cost, outcome=None, end=end)


def static(case: Case) -> Policy:
    return of_end(case, case.static_end)


def static_easy(case: Case) -> Policy:
    """Backfill with every duration known, which is the best that it can do."""
    duration = case.trace.duration_s
    return of_end(case, static_easy_starts(case.trace, case.entitlements, duration) + duration)


def naive_fifo(case: Case) -> Policy:
    """On nodes where STATIC is."""
    if case.node_gpus:
        starts = placed_pooled_starts(case.trace, case.total, case.node_gpus)
    else:
        starts = pooled_starts(case.trace, case.total)
    return of_end(case, starts + case.trace.duration_s)


def naive_sjf(case: Case) -> Policy:
    """One blocking queue, shortest predicted first, by the medians of what had ended."""
    rank = class_medians(case.trace, case.static_end)
    if case.node_gpus:
        return of_end(case, placed_ranked_ends(case.trace, case.total, case.node_gpus, rank))
    return of_end(case, queue_starts(case.trace, case.total, rank, skip=False) + case.trace.duration_s)


def clairvoyant(case: Case) -> Policy:
    """The least capacity, decided at whole hours, under which no job waits: nobody can hold less without a wait."""
    held_s = capacity_without_waits(case.trace)
    end = case.trace.submit_s + case.trace.duration_s
    return of_end(case, end, held_s / (case.total * case.span_s))


def naive_same_mean(case: Case, setting: Setting, sia: Outcome) -> Policy:
    return of(case, run_naive_mean(case, setting, sia))


def naive_same_curve(case: Case, setting: Setting, sia: Outcome) -> Policy:
    return of(case, run_naive_on(case, setting, sia))


def naive_adaptive(case: Case, setting: Setting, cost: float) -> Policy:
    """Adaptive NAIVE at (nearly) a given cost: its quantile is searched by bisection, at most at that cost."""
    low, high = 0.0, 1.0
    best = run_adaptive_naive(case, setting, Knobs(quantile=low))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        outcome = run_adaptive_naive(case, setting, Knobs(quantile=middle))
        if case.cost(outcome) <= cost:
            low, best = middle, outcome
        else:
            high = middle
    return of(case, best)


def adaptive(case: Case, setting: Setting, knobs: Knobs) -> Policy:
    return of(case, run_adaptive_naive(case, setting, knobs))


def sia_moving(case: Case, setting: Setting, knobs: Knobs) -> Policy:
    return of(case, run_moving(case, setting, knobs))


def sia_oracle_durations(case: Case, setting: Setting, knobs: Knobs) -> Policy:
    """Every duration is known in advance and ranks the loans; capacity as always."""
    return of(case, run_moving(case, setting, replace(knobs, durations="known")))


def sia_oracle(case: Case, setting: Setting, knobs: Knobs) -> Policy:
    """Durations and arrivals are known: an hour's capacity covers what is to come until the next order can arrive."""
    rule = known_demand(case, hours=int(np.ceil(setting.every_h + setting.lead_s / HOUR_S)))
    advise, known = learned(case, setting.rules, knobs.alpha), case.trace.duration_s
    return of(case, replay_sia(case.trace, case.entitlements, case.total, setting, rule, advise, known, known))
