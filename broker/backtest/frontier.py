"""What each cost buys: SIA and adaptive naive sharing at a row of costs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from broker.backtest import policies
from broker.backtest.hourly import Setting
from broker.backtest.policies import Policy, Task, carry_out
from broker.backtest.protocols import Case, Knobs

COSTS = (0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70)
_BISECTIONS = 7
_PATH = ((0.5, 0.6), (0.85, 0.8), (0.9, 0.9), (0.95, 1.0), (1.0, 1.4))
"""From little to much capacity: the quantile of rises that is covered, and the share of what runs and waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The dearest found at no more than `cost`; where even the cheapest costs more, the cheapest."""

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
    tasks: dict[str, Task] = {f"SIA at {cost:.2f}": partial(sia_at, case, setting, knobs, cost) for cost in COSTS}
    tasks |= {f"NAIVE at {cost:.2f}": partial(policies.naive_adaptive, case, setting, cost) for cost in COSTS}
    found = carry_out(tasks, jobs, tell)
    return tuple(
        Point(cost=cost, sia=found[f"SIA at {cost:.2f}"], naive=found[f"NAIVE at {cost:.2f}"]) for cost in COSTS
    )


def sia_at(case: Case, setting: Setting, knobs: Knobs, cost: float) -> Policy:
    """By bisection along the path; the other knobs are as given."""
    low, high = 0.0, 1.0
    best = policies.sia_moving(case, setting, along(knobs, low))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        policy = policies.sia_moving(case, setting, along(knobs, middle))
        if policy.cost_vs_static <= cost:
            low, best = middle, policy
        else:
            high = middle
    return best


def along(knobs: Knobs, place: float) -> Knobs:
    """Knobs at `place` (0 to 1) of the path."""
    steps = np.linspace(0.0, 1.0, len(_PATH))
    quantile, share = (float(np.interp(place, steps, values)) for values in zip(*_PATH, strict=True))
    return replace(knobs, quantile=quantile, share=share)


def _figures(policy: Policy) -> dict[str, float]:
    judged = policy.comparison
    return {
        "cost_vs_static": policy.cost_vs_static,
        "latency_ratio": judged.latency_ratio,
        "p_slowdown_over_1_1": judged.p_slowdown_over[1.1],
        "largest_lag_s": judged.largest_delay_s,
    }
