"""What a replay is judged by. Slowdown of a job: its latency (end - submit) under a policy over that under STATIC."""

from dataclasses import dataclass

import numpy as np

from broker.backtest.trace import Floats

TOLERANCES = (1.05, 1.1, 1.5, 2.0)


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
    """`left_out` counts jobs that never end under one of the two: larger than their share, or than the pool."""
    both = np.isfinite(static_end) & np.isfinite(end)
    reference, latency = (static_end - submit)[both], (end - submit)[both]
    slowdown = np.ones(len(latency))
    np.divide(latency, reference, out=slowdown, where=reference > 0)
    return Comparison(
        jobs=int(both.sum()),
        left_out=int((~both).sum()),
        mean_latency_s=float(latency.mean()),
        latency_ratio=float(reference.mean() / latency.mean()),
        mean_ratio=float(np.mean(1 / slowdown)),
        geometric_mean_ratio=float(np.exp(-np.mean(np.log(slowdown)))),
        p_slowdown_over={x: float(np.mean(slowdown > x)) for x in TOLERANCES},
        slowdown_quantiles={q: float(np.quantile(slowdown, q)) for q in (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)},
        largest_delay_s=float(np.max(end[both] - static_end[both])),
    )
