"""`broker backtest`: a trace under SIA and the baselines, as values that a view can print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from broker.backtest.entitlements import from_concurrency
from broker.backtest.fifo import pooled_starts
from broker.backtest.hourly import HOUR_S, Outcome, Setting, replay_sia
from broker.backtest.metrics import Comparison
from broker.backtest.protocols import (
    ABLATIONS,
    Case,
    Knobs,
    ablate,
    case_of,
    covering,
    learned,
    run_adaptive_naive,
    run_fixed,
    run_moving,
    run_naive_mean,
    run_naive_on,
)
from broker.backtest.readers import read_trace
from broker.backtest.synthetic import synthesise
from broker.backtest.trace import Floats, Trace
from broker.errors import InputError, UsageError
from broker.sia.state import Rules

_BISECTIONS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Defaults are the philly-90 protocol. `trace` None: a synthetic one from `synthetic_seed`."""

    trace: Path | None = None
    format: str = "auto"
    synthetic_seed: int = 0
    entitlement_quantile: float = 0.90
    entitlements: dict[str, int] = field(default_factory=dict)
    reclaim_s: float = 60.0
    restore_s: float = 120.0
    lead_s: float = 600.0
    failure: float = 0.0
    elastic: int = 1
    fixed_capacity: bool = False
    ablations: bool = False
    seeds: int = 1
    knobs: Knobs = field(default_factory=Knobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`seeds` holds (latency ratio, P(> 1.1), cost) of each seed beyond the first."""

    comparison: Comparison
    cost_vs_static: float
    outcome: Outcome | None
    end: Floats
    seeds: tuple[tuple[float, float, float], ...] = ()

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
            "lost_gpu_hours": outcome.lost_gpu_s / HOUR_S if outcome else 0.0,
            "stockout_hours": outcome.short_s / HOUR_S if outcome else 0.0,
            "held_gpu_hours_after_last_submit": outcome.held_after_s / HOUR_S if outcome else 0.0,
            "slowdown_quantiles": {f"{q:g}": value for q, value in judged.slowdown_quantiles.items()},
            "jobs": judged.jobs,
            "jobs_left_out": judged.left_out,
            "seeds": [{"latency_ratio": r, "p_slowdown_over_1_1": p, "cost_vs_static": c} for r, p, c in self.seeds],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    source: str
    case: Case
    policies: dict[str, Policy]
    notes: dict[str, int]
    recorded_wait_s: float | None
    static_wait_s: float

    def document(self) -> dict[str, Any]:
        """What `--json` prints below its format version."""
        return {
            "source": self.source,
            "jobs": len(self.case.trace),
            "entitlements": dict(zip(self.case.trace.tenants, self.case.entitlements.tolist(), strict=True)),
            "notes": self.notes,
            "recorded_mean_wait_s": self.recorded_wait_s,
            "static_mean_wait_s": self.static_wait_s,
            "policies": {name: policy.figures() for name, policy in self.policies.items()},
        }


def parse_entitlements(given: Sequence[str]) -> dict[str, int]:
    """TENANT=GPUS, one each."""
    parsed = {}
    for text in given:
        tenant, _, gpus = text.rpartition("=")
        if not tenant or not gpus.isdigit():
            raise UsageError(
                f"--entitlement {text!r} is not TENANT=GPUS", next_step="For example: --entitlement nlp=64"
            )
        parsed[tenant] = int(gpus)
    return parsed


def backtest(options: Options, tell: Callable[[str], None] = lambda _: None) -> Backtest:
    """Run every policy; `tell` is called with the name of each as it begins."""
    trace, source = _trace(options)
    case = case_of(trace, _entitlements(trace, options))
    setting = Setting(
        rules=Rules(reclaim_s=options.reclaim_s, restore_s=options.restore_s),
        lead_s=options.lead_s,
        failure=options.failure,
        elastic=options.elastic,
    )
    wait = trace.wait_s[np.isfinite(trace.wait_s)]
    static_wait = case.static_end - trace.duration_s - trace.submit_s
    return Backtest(
        source=source,
        case=case,
        policies=_policies(case, setting, options, tell),
        notes=dict(trace.notes),
        recorded_wait_s=float(wait.mean()) if len(wait) else None,
        static_wait_s=float(static_wait[np.isfinite(static_wait)].mean()),
    )


def _trace(options: Options) -> tuple[Trace, str]:
    if options.trace is None:
        return synthesise(options.synthetic_seed), f"synthetic, seed {options.synthetic_seed}"
    return read_trace(options.trace, options.format), str(options.trace)


def _entitlements(trace: Trace, options: Options) -> Any:
    if not options.entitlements:
        return from_concurrency(trace, options.entitlement_quantile)
    missing = [name for name in trace.tenants if name not in options.entitlements]
    if missing:
        raise InputError(
            f"no entitlement for tenant {', '.join(missing)}",
            next_step="Give one for each tenant, or for none",
        )
    return np.array([options.entitlements[name] for name in trace.tenants], dtype=np.int64)


def _policies(case: Case, setting: Setting, options: Options, tell: Callable[[str], None]) -> dict[str, Policy]:
    tell("static")
    policies = {"static": _of_end(case, case.static_end)}
    tell("sia")
    run = run_fixed if options.fixed_capacity else lambda c, s: run_moving(c, s, options.knobs)
    first = run(case, setting)
    others = [run(case, replace(setting, seed=seed)) for seed in range(1, options.seeds)]
    seeds = tuple((case.judge(o).latency_ratio, case.judge(o).p_slowdown_over[1.1], case.cost(o)) for o in others)
    policies["sia"] = replace(_of(case, first), seeds=seeds)
    tell("naive")
    naive = pooled_starts(case.trace, case.total) + case.trace.duration_s
    policies["naive_fifo"] = _of_end(case, naive)
    policies["naive_same_mean"] = _of(case, run_naive_mean(case, setting, first))
    if not options.fixed_capacity:
        policies["naive_same_curve"] = _of(case, run_naive_on(case, setting, first))
        policies["naive_adaptive"] = _of(case, _adaptive_at(case, setting, case.cost(first)))
        tell("sia with known durations")
        policies["sia_oracle_durations"] = _of(case, _oracle(case, setting, options.knobs))
    for name in ABLATIONS if options.ablations else ():
        tell(name)
        policies[name.replace(" ", "_").replace("-", "_")] = _of(case, ablate(case, name, setting, options.knobs))
    return policies


def _of(case: Case, outcome: Outcome) -> Policy:
    return Policy(comparison=case.judge(outcome), cost_vs_static=case.cost(outcome), outcome=outcome, end=outcome.end)


def _of_end(case: Case, end: Floats) -> Policy:
    """All that is promised is held throughout."""
    idle = Outcome(
        start=end - case.trace.duration_s,
        end=end,
        curve=[],
        held_s=case.total * case.span_s,
        used_s=0.0,
        held_after_s=0.0,
        preemptions=0,
        resizes=0,
        lost_gpu_s=0.0,
        short_s=0.0,
        largest_lag_s=0.0,
        sensitive=0,
        missed=0,
    )
    return Policy(comparison=case.judge(idle), cost_vs_static=1.0, outcome=None, end=end)


def _adaptive_at(case: Case, setting: Setting, cost: float) -> Outcome:
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
    return best


def _oracle(case: Case, setting: Setting, knobs: Knobs) -> Outcome:
    """Durations known in advance rank the loans; capacity as always."""

    rule, advise = covering(case, knobs, case.total), learned(case, setting.rules, knobs.alpha)
    known = case.trace.duration_s
    return replay_sia(case.trace, case.entitlements, case.total, setting, rule, advise, known, known)
