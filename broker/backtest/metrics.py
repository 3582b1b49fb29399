"""What a replay is judged by. Slowdown of a job: its latency (end - submit) under a policy over that under STATIC."""

from dataclasses import dataclass

import numpy as np

from broker.backtest.trace import Floats
from broker.errors import InputError

TOLERANCES = (1.05, 1.1, 1.5, 2.0)
_QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A policy beside STATIC, over the jobs that both finish."""

    jobs: int
    left_out: int
    mean_latency_s: float
    latency_ratio: float
    mean_ratio: float
    geometric_mean_ratio: float
    p_slowdown_over: dict[float, float]
    slowdown_quantiles: dict[float, float]
    largest_delay_s: float


def compare(submit: Floats, static_end: Floats, end: Floats) -> Comparison:
    """`left_out` counts jobs that never end under one of the two: larger than their share, or than the pool.

    Under a policy that ends none of them latency is infinite, and all are as late as can be. Raises InputError where
    static shares end none: there is nothing to compare with.
    """
    if not np.isfinite(static_end).any():
        raise InputError(
            f"none of {len(submit):,} jobs ends under static shares: they ask for more than their tenants' usual use",
            next_step="Promise more: --entitlement TENANT=GPUS, or a higher --entitlement-quantile",
        )
    both = np.isfinite(static_end) & np.isfinite(end)
    if not both.any():
        return _none(len(submit))
    reference, latency = (static_end - submit)[both], (end - submit)[both]
    slowdown = np.ones(len(latency))
    np.divide(latency, reference, out=slowdown, where=reference > 0)
    return Comparison(
        jobs=int(both.sum()),
        left_out=int((~both).sum()),
        mean_latency_s=float(latency.mean()),
        latency_ratio=float(reference.mean() / latency.mean()) if latency.any() else 1.0,
        mean_ratio=float(np.mean(1 / slowdown)),
        geometric_mean_ratio=float(np.exp(-np.mean(np.log(slowdown)))),
        p_slowdown_over={x: float(np.mean(slowdown > x)) for x in TOLERANCES},
        slowdown_quantiles={q: float(np.quantile(slowdown, q)) for q in _QUANTILES},
        largest_delay_s=float(np.max(end[both] - static_end[both])),
    )


def _none(jobs: int) -> Comparison:
    return Comparison(
        jobs=0,
        left_out=jobs,
        mean_latency_s=np.inf,
        latency_ratio=0.0,
        mean_ratio=0.0,
        geometric_mean_ratio=0.0,
        p_slowdown_over=dict.fromkeys(TOLERANCES, 1.0),
        slowdown_quantiles=dict.fromkeys(_QUANTILES, np.inf),
        largest_delay_s=np.inf,
    )
