"""What each cost buys: SIA and adaptive naive sharing at a row of costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from broker.backtest.hourly import Setting
from broker.backtest.policies import Policy, Task, adaptive, carry_out, sia_moving
from broker.backtest.protocols import Case, Knobs

COSTS = (0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70)
_STEPS = 17
_PATHS = {
    "rolling": ((0.7, 0.8), (0.85, 0.8), (0.9, 0.87), (0.9, 0.95), (0.95, 1.0), (0.99, 1.1), (0.999, 1.4)),
    "learned": ((0.7, 0.95), (0.8, 1.0), (0.85, 1.0), (0.9, 1.0), (0.95, 1.0), (0.98, 1.1), (0.999, 1.5)),
}
"""From little to much capacity: the quantile of rises that is covered, and the share of what runs and waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The runs of least risk found at no more than `cost`; where even the cheapest costs more, the cheapest."""

    cost: float
    sia: Policy
    naive: Policy

    def figures(self) -> dict[str, Any]:
        """As they appear in JSON."""
        return {"cost": self.cost, "sia": _figures(self.sia), "naive_adaptive": _figures(self.naive)}


def frontier(
    case: Case, setting: Setting, knobs: Knobs, jobs: int = 1, tell: Callable[[str], None] = lambda _: None
) -> tuple[Point, ...]:
    """One point a cost, in order."""
    places = np.linspace(0.0, 1.0, _STEPS)
    sia: dict[str, Task] = {f"SIA at {x:.2f}": partial(sia_moving, case, setting, along(knobs, x)) for x in places}
    naive: dict[str, Task] = {
        f"NAIVE at {x:.2f}": partial(adaptive, case, setting, Knobs(quantile=float(0.6 + 0.4 * x**0.5))) for x in places
    }
    found = carry_out(sia | naive, jobs, tell)
    ours, theirs = ([found[name] for name in side] for side in (sia, naive))
    return tuple(Point(cost=cost, sia=best_at(ours, cost), naive=best_at(theirs, cost)) for cost in COSTS)


def best_at(runs: Sequence[Policy], cost: float) -> Policy:
    """Less capacity may cost more in the end: what is late claims all that its tenant is promised."""
    affordable = [run for run in runs if run.cost_vs_static <= cost]
    if not affordable:
        return min(runs, key=lambda run: run.cost_vs_static)
    return min(affordable, key=lambda run: (run.comparison.p_slowdown_over[1.1], run.comparison.mean_latency_s))


def along(knobs: Knobs, place: float) -> Knobs:
    """Knobs at `place` (0 to 1) of the path of their forecast."""
    path = _PATHS[knobs.forecast]
    steps = np.linspace(0.0, 1.0, len(path))
    quantile, share = (float(np.interp(place, steps, values)) for values in zip(*path, strict=True))
    return replace(knobs, quantile=quantile, share=share)


def _figures(policy: Policy) -> dict[str, float]:
    judged = policy.comparison
    return {
        "cost_vs_static": policy.cost_vs_static,
        "latency_ratio": judged.latency_ratio,
        "p_slowdown_over_1_1": judged.p_slowdown_over[1.1],
        "largest_lag_s": judged.largest_delay_s,
    }
