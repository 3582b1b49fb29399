"""Predictions of durations that stand beside the allocator's: known, wrong on purpose, and medians of the past."""

import heapq
from collections import deque

import numpy as np

from broker.backtest.trace import Floats, Trace

_SEEN = 50
_FEWEST = 3


def class_medians(trace: Trace, known_at: Floats) -> Floats:
    """For each job the median of the last durations of its tenant at its GPUs, of its tenant, or of all (else 0).

    A duration is known from `known_at` on.
    """
    found, ends = np.zeros(len(trace)), [(float("inf"), -1)]
    seen: dict[tuple[int, int], deque[float]] = {}
    columns = zip(trace.tenant.tolist(), trace.gpus.tolist(), trace.submit_s.tolist(), strict=True)
    for j, (tenant, gpus, now) in enumerate(columns):
        while ends[0][0] <= now:
            _, ended = heapq.heappop(ends)
            for key in _keys(int(trace.tenant[ended]), int(trace.gpus[ended])):
                seen.setdefault(key, deque(maxlen=_SEEN)).append(float(trace.duration_s[ended]))
        alike = (seen.get(key, ()) for key in _keys(tenant, gpus))
        found[j] = next((sorted(past)[len(past) // 2] for past in alike if len(past) >= _FEWEST), 0.0)
        heapq.heappush(ends, (float(known_at[j]), j))
    return found


def _keys(tenant: int, gpus: int) -> tuple[tuple[int, int], ...]:
    return (tenant, gpus), (tenant, 0), (-1, 0)


def wrong_by(duration_s: Floats, factor: float, seed: int) -> Floats:
    """Each duration too long or too short by `factor`, at random."""
    sign = np.random.default_rng(seed).choice([-1.0, 1.0], len(duration_s))
    wrong: Floats = duration_s * factor**sign
    return wrong
