"""`broker backtest`: a trace under SIA and the baselines, as values that a view can print."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from broker.backtest import policies
from broker.backtest.ablations import ABLATIONS, ablate, that_apply
from broker.backtest.entitlements import from_concurrency
from broker.backtest.frontier import Point, frontier
from broker.backtest.hourly import Setting
from broker.backtest.placed import whole_nodes
from broker.backtest.policies import Policy, Task, carry_out
from broker.backtest.protocols import Case, Knobs, case_of, on_nodes, run_fixed
from broker.backtest.readers import from_jobs, read_trace
from broker.backtest.synthetic import synthesise
from broker.backtest.trace import Trace
from broker.errors import InputError, UsageError
from broker.model.job import Job
from broker.sia.placement import checked_size
from broker.sia.state import Rules

_SEED = "sia, seed "


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Defaults are the philly-90 protocol. `trace` None: `history`, or a synthetic one from `synthetic_seed`.

    `node_gpus` 0: slots are pooled.
    """

    trace: Path | None = None
    history: tuple[Job, ...] = ()
    format: str = "auto"
    timezone: str = "UTC"
    synthetic_seed: int = 0
    entitlement_quantile: float = 0.90
    entitlements: dict[str, int] = field(default_factory=dict)
    reclaim_s: float = 60.0
    reclaim_of: dict[str, float] = field(default_factory=dict)
    restore_s: float = 120.0
    lead_s: float = 600.0
    failure: float = 0.0
    elastic: int = 1
    speed_power: float = 0.8
    tolerance: float = 0.1
    most_preemptions: int = 3
    unstoppable: float = 0.0
    node_gpus: int = 0
    firm_share: float = 0.0
    every_h: int = 1
    fixed_capacity: bool = False
    ablations: bool = False
    seeds: int = 1
    frontier: bool = False
    jobs: int = 1
    knobs: Knobs = field(default_factory=Knobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    source: str
    case: Case
    policies: dict[str, Policy]
    notes: dict[str, int]
    recorded_wait_s: float | None
    static_wait_s: float
    frontier: tuple[Point, ...] = ()

    def document(self) -> dict[str, Any]:
        """What `--json` prints below its format version."""
        return {
            "source": self.source,
            "jobs": len(self.case.trace),
            "gpus_per_node": self.case.node_gpus or None,
            "entitlements": dict(zip(self.case.trace.tenants, self.case.entitlements.tolist(), strict=True)),
            "notes": self.notes,
            "recorded_mean_wait_s": self.recorded_wait_s,
            "static_mean_wait_s": self.static_wait_s,
            "policies": {name: policy.figures() for name, policy in self.policies.items()},
            "frontier": [point.figures() for point in self.frontier],
            "ablations": {key_of(n): what for n, what in ABLATIONS.items() if key_of(n) in self.policies},
        }


def backtest(options: Options, tell: Callable[[str], None] = lambda _: None) -> Backtest:
    """Run every policy; `tell` is called with the name of each as it begins."""
    trace, source = _trace(options)
    case = _case(trace.called_back_in(options.reclaim_of), options)
    trace = case.trace
    setting = Setting(
        rules=Rules(
            reclaim_s=options.reclaim_s,
            restore_s=options.restore_s,
            tolerance=options.tolerance,
            most_preemptions=options.most_preemptions,
            firm_share=options.firm_share,
        ),
        lead_s=options.lead_s,
        failure=options.failure,
        elastic=options.elastic,
        speed_power=options.speed_power,
        unstoppable=options.unstoppable,
        node_gpus=options.node_gpus,
        every_h=options.every_h,
    )
    wait = trace.wait_s[np.isfinite(trace.wait_s)]
    static_wait = case.static_end - trace.duration_s - trace.submit_s
    return Backtest(
        source=source,
        case=case,
        policies=_policies(case, setting, options, tell),
        frontier=frontier(case, setting, options.knobs, options.jobs, tell) if options.frontier else (),
        notes=dict(trace.notes),
        recorded_wait_s=float(wait.mean()) if len(wait) else None,
        static_wait_s=float(static_wait[np.isfinite(static_wait)].mean()),
    )


def _trace(options: Options) -> tuple[Trace, str]:
    if options.trace is None and options.history:
        return from_jobs(options.history, "history"), "the history of jobs"
    if options.trace is None:
        return synthesise(options.synthetic_seed), f"synthetic, seed {options.synthetic_seed}"
    return read_trace(options.trace, options.format, options.timezone), str(options.trace)


def _case(trace: Trace, options: Options) -> Case:
    case = case_of(trace, _entitlements(trace, options))
    if not options.node_gpus:
        return case
    if options.firm_share > 0:
        raise UsageError("on nodes nothing is lent that cannot be called back", next_step="Leave out --firm-misses")
    whole_nodes(options.entitlements, checked_size(options.node_gpus))
    return on_nodes(case, options.node_gpus, options.reclaim_s)


def _entitlements(trace: Trace, options: Options) -> Any:
    if not options.entitlements:
        return from_concurrency(trace, options.entitlement_quantile)
    missing = sorted(set(trace.tenants) - set(options.entitlements))
    if missing:
        raise InputError(
            f"no entitlement for tenant {', '.join(missing)}",
            next_step="Give one for each tenant, or for none",
        )
    strange = sorted(set(options.entitlements) - set(trace.tenants))
    if strange:
        raise InputError(
            f"the trace has no tenant {', '.join(strange)}",
            next_step=f"Its tenants: {', '.join(sorted(trace.tenants))}",
        )
    return np.array([options.entitlements[name] for name in trace.tenants], dtype=np.int64)


def _policies(case: Case, setting: Setting, options: Options, tell: Callable[[str], None]) -> dict[str, Policy]:
    first = carry_out(_independent(case, setting, options), options.jobs, tell)
    seeds = [first.pop(f"{_SEED}{seed}") for seed in range(1, options.seeds)]
    first["sia"] = replace(
        first["sia"],
        seeds=tuple(policy.run for policy in seeds),
    )
    return first | carry_out(_beside(case, setting, first["sia"]), options.jobs, tell)


def _independent(case: Case, setting: Setting, options: Options) -> dict[str, Task]:
    """Those that need no other's outcome."""
    tasks: dict[str, Task] = {"static": partial(policies.static, case)}
    if not setting.node_gpus:
        tasks["static_easy"] = partial(policies.static_easy, case)
    tasks |= {
        "sia": partial(_sia, case, setting, options),
        "naive_fifo": partial(policies.naive_fifo, case),
        "naive_sjf": partial(policies.naive_sjf, case),
    }
    if setting.node_gpus:
        tasks["sia_pooled"] = partial(_sia, case, replace(setting, node_gpus=0), options)
    tasks |= {f"{_SEED}{k}": partial(_sia, case, replace(setting, seed=k), options) for k in range(1, options.seeds)}
    if not options.fixed_capacity:
        tasks |= {
            "sia_oracle_durations": partial(policies.sia_oracle_durations, case, setting, options.knobs),
            "sia_oracle": partial(policies.sia_oracle, case, setting, options.knobs),
        }
    if not options.fixed_capacity and not setting.node_gpus:
        tasks["clairvoyant"] = partial(policies.clairvoyant, case)
    for name in that_apply(setting) if options.ablations else ():
        tasks[key_of(name)] = partial(ablate, case, name, setting, options.knobs)
    return tasks


def _beside(case: Case, setting: Setting, sia: Policy) -> dict[str, Task]:
    """Naive sharing with as much as SIA held."""
    if sia.outcome is None:
        raise ValueError("SIA was not replayed")
    return {
        "naive_same_mean": partial(policies.naive_same_mean, case, setting, sia.outcome),
        "naive_same_curve": partial(policies.naive_same_curve, case, setting, sia.outcome),
        "naive_adaptive": partial(policies.naive_adaptive, case, setting, sia.cost_vs_static),
    }


def _sia(case: Case, setting: Setting, options: Options) -> Policy:
    if options.fixed_capacity:
        return policies.of(case, run_fixed(case, setting, options.knobs))
    return policies.sia_moving(case, setting, options.knobs)


def key_of(ablation: str) -> str:
    return ablation.replace(" ", "_").replace("-", "_")
