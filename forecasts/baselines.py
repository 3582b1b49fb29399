"""What a forecast has to beat: last week, persistence, and rolling empirical quantiles, of demand and of durations."""

import heapq
from collections import defaultdict, deque

import numpy as np

from forecasts.history import Submitted
from forecasts.quantiles import LEVELS, Array

WEEK_H = 168
WEEK_S = WEEK_H * 3600.0
LAST_WEEK, PERSISTENCE, ROLLING = "last week", "persistence", "rolling quantile"
ROLLING_JOBS = 200
ROLLING_H = 672


def of_demand(level: Array, ahead_h: int) -> dict[str, Array]:
    """Forecasts of `level` (hours,) made at each hour for `ahead_h` later: name -> (hours, levels), NaN at first."""
    hours = len(level)
    source = np.arange(hours) + ahead_h - WEEK_H
    week = np.where((source >= 0) & (source <= np.arange(hours)), level[np.clip(source, 0, hours - 1)], np.nan)
    rolling = [np.quantile(level[max(0, hour + 1 - ROLLING_H) : hour + 1], LEVELS) for hour in range(hours)]
    return {LAST_WEEK: _flat(week), PERSISTENCE: _flat(level), ROLLING: np.stack(rolling)}


def of_durations(jobs: Submitted) -> dict[str, Array]:
    """Forecasts made at each submit, in seconds, from finished jobs of the same group: name -> (n, levels).

    Last week: their quantiles over the last seven days; persistence: the last one; rolling: quantiles of the last 200.
    """
    names = (LAST_WEEK, PERSISTENCE, ROLLING)
    found = {name: np.full((len(jobs.submit_s), len(LEVELS)), np.nan) for name in names}
    finished: defaultdict[float, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=5000))
    ends: list[tuple[float, int]] = []
    for at, now in enumerate(jobs.submit_s.tolist()):
        while ends and ends[0][0] <= now:
            end, done = heapq.heappop(ends)
            finished[float(jobs.group[done])].append((end, end - float(jobs.start_s[done])))
        seen = finished[float(jobs.group[at])]
        if seen:
            found[PERSISTENCE][at] = seen[-1][1]
            found[ROLLING][at] = np.quantile([duration for _, duration in list(seen)[-ROLLING_JOBS:]], LEVELS)
            lately = [duration for end, duration in seen if end >= now - WEEK_S]
            found[LAST_WEEK][at] = np.quantile(lately, LEVELS) if lately else np.nan
        if np.isfinite(jobs.end_s[at]):
            heapq.heappush(ends, (float(jobs.end_s[at]), at))
    return found


def _flat(values: Array) -> Array:
    return np.repeat(np.asarray(values, dtype=float)[:, None], len(LEVELS), axis=1)
