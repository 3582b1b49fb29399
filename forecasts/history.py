"""What is known of a job's like when it is submitted: one row of numbers a job, from the past only.

Jobs are alike by group (their user, or their tenant where there is none) and by group and GPUs. A job counts as
finished, and its duration as known, from its end on; those that still run at a submit tell how long they have.
"""

import heapq
from bisect import bisect_right
from math import inf, log1p, log2, nan

import msgspec
import numpy as np

from forecasts.quantiles import Array

HOUR_S = 3600.0
RECENT = 64
"""How many of a group's latest submits are kept."""


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


class Group(msgspec.Struct, kw_only=True):
    """Running figures of the logarithms of the durations of like jobs that have finished, latest weighted most."""

    finished: int = 0
    fast: float = 0.0
    slow: float = 0.0
    last: float = 0.0
    spread: float = 0.0
    submits: list[float] = []
    live: dict[str, float] = {}

    def submit(self, id: str, now_s: float) -> None:
        """A job of the group enters its queue."""
        self.submits = [*self.submits[-RECENT + 1 :], now_s]
        self.live[id] = now_s

    def finish(self, log_duration: float) -> None:
        """A job of the group has finished; log(1 + seconds)."""
        if self.finished == 0:
            self.fast = self.slow = log_duration
        self.spread += 0.1 * (abs(log_duration - self.slow) - self.spread)
        self.fast += 0.4 * (log_duration - self.fast)
        self.slow += 0.05 * (log_duration - self.slow)
        self.last = log_duration
        self.finished += 1

    def row(self, now_s: float) -> list[float]:
        since = log1p(now_s - self.submits[-1]) if self.submits else nan
        recent = len(self.submits) - bisect_right(self.submits, now_s - HOUR_S)
        youngest = oldest = nan
        if self.live:  # in order of submit
            youngest = log1p(now_s - next(reversed(self.live.values())))
            oldest = log1p(now_s - next(iter(self.live.values())))
        seen = (self.fast, self.slow, self.last) if self.finished else (nan, nan, nan)
        return [
            *seen, self.spread, log1p(self.finished),
            since, float(recent), float(len(self.live)), youngest, oldest,
        ]  # fmt: skip


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A job at its submit, which is at `now_s`; `time_limit_s` NaN: none."""

    id: str
    now_s: float
    group: int
    gpus: int
    time_limit_s: float = nan


class Alike(msgspec.Struct, kw_only=True):
    """What is known of each group of jobs, and of each at each number of GPUs, kept up to now."""

    groups: dict[str, Group] = {}
    at_s: float = 0.0

    def submit(self, job: Arrival) -> list[float]:
        """What was known of the job's like when it came: (COLUMNS,). One that is told late counts as coming now."""
        self.at_s = max(self.at_s, job.now_s)
        alike = [self.groups.setdefault(key, Group()) for key in _keys(job.group, job.gpus)]
        row = [*_own(job), *(figure for group in alike for figure in group.row(self.at_s))]
        for group in alike:
            group.submit(job.id, self.at_s)
        return row

    def finish(self, id: str, group: int, gpus: int, duration_s: float) -> None:
        """It ended by itself. One that was not submitted here counts too."""
        self.leave(id, group, gpus)
        for key in _keys(group, gpus):
            self.groups.setdefault(key, Group()).finish(log1p(max(duration_s, 0.0)))

    def leave(self, id: str, group: int, gpus: int) -> None:
        """It is gone, and how long it would have run is not known."""
        for key in _keys(group, gpus):
            if key in self.groups:
                self.groups[key].live.pop(id, None)


COLUMNS = 6 + 3 * 10
GROUP_COLUMN = 0


def rows(jobs: Submitted) -> Array:
    """(n, COLUMNS): the job's own figures, then those of its group, of group and GPUs, and of everybody."""
    return follow(jobs)[0]


def follow(jobs: Submitted, until_s: float = -inf) -> tuple[Array, Alike]:
    """The rows, and what is known of everybody at the last submit, or at `until_s` if that is later."""
    found = np.empty((len(jobs.submit_s), COLUMNS))
    alike = Alike()
    ends: list[tuple[float, int]] = []
    arrivals = zip(*(column.tolist() for column in _at_submit(jobs)), strict=True)
    for at, (now, group, gpus, limit) in enumerate(arrivals):
        _finish(alike, jobs, ends, now)
        job = Arrival(id=str(at), now_s=now, group=int(group), gpus=int(gpus), time_limit_s=limit)
        found[at] = alike.submit(job)
        if np.isfinite(jobs.end_s[at]):
            heapq.heappush(ends, (float(jobs.end_s[at]), at))
    _finish(alike, jobs, ends, until_s)
    return found, alike


def _finish(alike: Alike, jobs: Submitted, ends: list[tuple[float, int]], now_s: float) -> None:
    """All that have ended by now."""
    while ends and ends[0][0] <= now_s:
        end, done = heapq.heappop(ends)
        alike.finish(str(done), int(jobs.group[done]), int(jobs.gpus[done]), end - float(jobs.start_s[done]))


def _at_submit(jobs: Submitted) -> tuple[Array, ...]:
    return jobs.submit_s, jobs.group, jobs.gpus, jobs.time_limit_s


def _keys(group: int, gpus: int) -> tuple[str, str, str]:
    return f"{group}", f"{group}/{gpus}", "all"


def _own(job: Arrival) -> list[float]:
    now, gpus = job.now_s, job.gpus
    return [
        float(job.group),
        log2(gpus),
        now / HOUR_S % 24,
        now // 86400 % 7,
        log1p(job.time_limit_s),
        float(gpus % 8 == 0),
    ]
