"""What is known of a job's like when it is submitted: one row of numbers a job, from the past only.

Jobs are alike by group (their user, or their tenant where there is none) and by group and GPUs. A job counts as
finished, and its duration as known, from its end on; those that still run at a submit tell how long they have.
"""

import heapq
from collections import deque

import msgspec
import numpy as np

from forecasts.quantiles import Array

HOUR_S = 3600.0
LAST = 200
"""How many of a group's latest finished jobs are kept."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """Columns (n,) in order of submit. `end_s` is inf for a job that has not ended; its duration is end - start.

    `group` numbers the users (or tenants), `time_limit_s` is NaN where there is none. `start_s` is NaN for a job that
    has not started.
    """

    submit_s: Array
    start_s: Array
    end_s: Array
    gpus: Array
    group: Array
    time_limit_s: Array

    @property
    def duration_s(self) -> Array:
        """NaN where not known."""
        return np.where(np.isfinite(self.end_s), self.end_s - self.start_s, np.nan)


class _Group:
    """Running figures of the logarithms of the durations of like jobs that have finished, latest weighted most."""

    __slots__ = ("fast", "finished", "last", "live", "slow", "spread", "submits")

    def __init__(self) -> None:
        self.finished = 0
        self.fast = self.slow = self.last = np.nan
        self.spread = 0.0
        self.submits: deque[float] = deque(maxlen=64)
        self.live: dict[int, float] = {}

    def finish(self, log_duration: float) -> None:
        if self.finished == 0:
            self.fast = self.slow = log_duration
        self.spread += 0.1 * (abs(log_duration - self.slow) - self.spread)
        self.fast += 0.4 * (log_duration - self.fast)
        self.slow += 0.05 * (log_duration - self.slow)
        self.last = log_duration
        self.finished += 1

    def row(self, now: float) -> list[float]:
        since = np.log1p(now - self.submits[-1]) if self.submits else np.nan
        recent = sum(1 for at in self.submits if at > now - HOUR_S)
        youngest = oldest = np.nan
        if self.live:
            starts = self.live.values()
            youngest, oldest = np.log1p(now - max(starts)), np.log1p(now - min(starts))
        return [
            self.fast, self.slow, self.last, self.spread, np.log1p(self.finished),
            since, float(recent), float(len(self.live)), youngest, oldest,
        ]  # fmt: skip


COLUMNS = 6 + 3 * 10
GROUP_COLUMN = 0


def rows(jobs: Submitted) -> Array:
    """(n, COLUMNS): the job's own figures, then those of its group, of group and GPUs, and of everybody."""
    found = np.empty((len(jobs.submit_s), COLUMNS))
    groups: dict[object, _Group] = {}
    ends: list[tuple[float, int]] = []
    for at, now in enumerate(jobs.submit_s.tolist()):
        while ends and ends[0][0] <= now:
            _end(heapq.heappop(ends)[1], jobs, groups)
        alike = [groups.setdefault(key, _Group()) for key in _keys(at, jobs)]
        found[at, :6] = _own(at, jobs)
        found[at, 6:] = [figure for group in alike for figure in group.row(now)]
        for group in alike:
            group.submits.append(now)
            group.live[at] = now
        if np.isfinite(jobs.end_s[at]):
            heapq.heappush(ends, (float(jobs.end_s[at]), at))
    return found


def _keys(at: int, jobs: Submitted) -> tuple[object, object, object]:
    group = int(jobs.group[at])
    return group, (group, int(jobs.gpus[at])), "all"


def _end(at: int, jobs: Submitted, groups: dict[object, _Group]) -> None:
    log_duration = float(np.log1p(jobs.end_s[at] - jobs.start_s[at]))
    for key in _keys(at, jobs):
        groups[key].live.pop(at, None)
        groups[key].finish(log_duration)


def _own(at: int, jobs: Submitted) -> list[float]:
    now = float(jobs.submit_s[at])
    group, gpus, limit = float(jobs.group[at]), float(jobs.gpus[at]), float(jobs.time_limit_s[at])
    return [group, np.log2(gpus), now / HOUR_S % 24, now // 86400 % 7, np.log1p(limit), float(gpus % 8 == 0)]
