"""What a replay is judged by. Slowdown of a job: its latency (end - submit) under a policy over that under STATIC."""

from dataclasses import dataclass

import numpy as np

from broker.backtest.trace import Floats
from broker.errors import InputError

TOLERANCES = (1.05, 1.1, 1.5, 2.0)
_QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A policy beside STATIC, over the jobs that STATIC ends. `never_ended` of them do not end under the policy."""

    jobs: int
    left_out: int
    never_ended: int
    mean_latency_s: float
    latency_ratio: float
    mean_ratio: float
    geometric_mean_ratio: float
    p_slowdown_over: dict[float, float]
    slowdown_quantiles: dict[float, float]
    largest_delay_s: float


def compare(submit: Floats, static_end: Floats, end: Floats) -> Comparison:
    """`left_out` counts jobs that never end under STATIC: they are larger than their share.

    Those that never end under the policy alone are infinitely slow; to leave them out would praise a policy that is
    stuck. Raises InputError where static shares end none: there is nothing to compare with.
    """
    judged = np.isfinite(static_end)
    if not judged.any():
        raise InputError(
            f"none of {len(submit):,} jobs ends under static shares: they ask for more than their tenants' usual use",
            next_step="Promise more: --entitlement TENANT=GPUS, or a higher --entitlement-quantile",
        )
    reference, latency = (static_end - submit)[judged], (end - submit)[judged]
    slowdown = np.where(np.isfinite(latency), 1.0, np.inf)
    np.divide(latency, reference, out=slowdown, where=reference > 0)
    return Comparison(
        jobs=int(judged.sum()),
        left_out=int((~judged).sum()),
        never_ended=int((~np.isfinite(latency)).sum()),
        mean_latency_s=float(latency.mean()),
        latency_ratio=float(reference.mean() / latency.mean()) if latency.any() else 1.0,
        mean_ratio=float(np.mean(1 / slowdown)),
        geometric_mean_ratio=float(np.exp(-np.mean(np.log(slowdown)))),
        p_slowdown_over={x: float(np.mean(slowdown > x)) for x in TOLERANCES},
        slowdown_quantiles={q: _quantile(slowdown, q) for q in _QUANTILES},
        largest_delay_s=float(np.max(end[judged] - static_end[judged])),
    )


def _quantile(values: Floats, q: float) -> float:
    """Between a number and infinity nothing can be interpolated: it is infinite there."""
    return float(np.quantile(values, q, method="linear" if np.isfinite(values).all() else "higher"))
