"""Durations in a replay by forecasts that are learned on the way, from nothing but what had happened by each hour.

At each hour what has ended teaches. Then each job that comes within the next hour gets its forecast, from its own
figures at its submit, from the submits before it, and from what was known of ends at the hour.
"""

from typing import Any

import numpy as np
from msgspec.structs import replace

from broker.backtest.hourly import HOUR_S, Advise, Hour
from broker.backtest.trace import Ints, Trace
from broker.sia.columns import CANCELLED, DONE, RUNNING
from forecasts import durations
from forecasts.expected import Expected
from forecasts.history import COLUMNS, Alike, Arrival, Submitted
from forecasts.quantiles import LEVELS, Array

QUICK, TYPICAL = LEVELS.index(0.1), LEVELS.index(0.5)
RETRAIN_S, FIRST_TRAIN_S = 7 * 86_400.0, 86_400.0


class LearnedDurations:
    """Sets what the allocator is told of each job; jobs of which nothing can be said keep what they have.

    `then` is called afterwards.
    """

    def __init__(self, trace: Trace, then: Advise, seed: int = 0) -> None:
        count = len(trace)
        self._trace, self._then = trace, then
        self._recipe = replace(durations.RECIPE, seed=seed)
        self._group = trace.user if len(trace.users) > 1 else trace.tenant
        self._alike, self._expected = Alike(), Expected()
        self._model: durations.DurationModel | None = None
        self._trained_s = float(trace.submit_s[0])
        self._rows = np.full((count, COLUMNS), np.nan)
        self._start_s, self._end_s = np.full(count, np.nan), np.full(count, np.inf)
        self._live: Ints = np.empty(0, dtype=np.int64)
        self._submitted = self._told = 0

    def __call__(self, state: Any, hour: Hour) -> None:
        if self._told < len(self._trace):
            self._follow(state.jobs, hour)
            self._train(hour.at)
            self._foretell(state.jobs, hour)
        self._then(state, hour)

    def _follow(self, jobs: Any, hour: Hour) -> None:
        """Who has begun to run, and who has ended, since the last hour; in about the order in which they did."""
        self._live = np.concatenate([self._live, np.arange(self._submitted, hour.submitted)])
        self._submitted = hour.submitted
        running = self._live[(jobs["state"][self._live] == RUNNING) & np.isnan(self._start_s[self._live])]
        done = jobs["service"][running] + hour.at - jobs["since"][running]
        for j, start_s in zip(running.tolist(), (hour.at - done).tolist(), strict=True):
            self._start_s[j] = start_s
            self._expected.start(str(j), start_s)
        over = self._live[jobs["state"][self._live] >= DONE]
        work = np.where(jobs["state"][over] == CANCELLED, np.nan, jobs["work"][over])
        for at in np.argsort(self._trace.submit_s[over] + work, kind="stable").tolist():
            self._end(int(over[at]), float(work[at]), hour.at)
        self._live = self._live[jobs["state"][self._live] < DONE]

    def _end(self, j: int, work_s: float, now_s: float) -> None:
        group, gpus = int(self._group[j]), int(self._trace.gpus[j])
        if np.isnan(work_s):
            self._expected.cancel(str(j), now_s)
            self._alike.leave(str(j), group, gpus)
            return
        self._start_s[j], self._end_s[j] = now_s - work_s, now_s
        self._expected.finish(str(j), now_s, work_s)
        self._alike.finish(str(j), group, gpus, work_s)

    def _train(self, now_s: float) -> None:
        if now_s - self._trained_s < (RETRAIN_S if self._model else FIRST_TRAIN_S):
            return
        known = slice(0, self._told)
        columns = Submitted(
            submit_s=self._trace.submit_s[known],
            start_s=self._start_s[known],
            end_s=self._end_s[known],
            gpus=self._trace.gpus[known],
            group=self._group[known].astype(np.float64),
            time_limit_s=np.full(self._told, np.nan),
        )
        self._model = durations.train(columns, self._rows[known], now_s, self._recipe) or self._model
        self._trained_s = now_s

    def _foretell(self, jobs: Any, hour: Hour) -> None:
        """The jobs until the next hour: nothing of one is used for another but that it came, once it has come."""
        until = int(np.searchsorted(self._trace.submit_s, hour.at + HOUR_S, side="right"))
        coming = range(max(self._told, hour.submitted), until)
        for j in range(self._told, until):
            self._rows[j] = self._alike.submit(self._arrival(j))
        self._told = max(self._told, until)
        if not coming:
            return
        boosted = self._boosted(self._rows[coming.start : coming.stop])
        quantiles = np.stack([self._said(j, row) for j, row in zip(coming, boosted, strict=True)])
        known = np.isfinite(quantiles).all(axis=1)
        at = np.arange(coming.start, coming.stop)[known]
        jobs["quick_s"][at], jobs["typical_s"][at] = quantiles[known, QUICK], quantiles[known, TYPICAL]

    def _said(self, j: int, boosted: Array) -> Array:
        job = self._arrival(j)
        return self._expected.submit(job.id, job.now_s, job.group, job.gpus, boosted)

    def _arrival(self, j: int) -> Arrival:
        return Arrival(
            id=str(j), now_s=float(self._trace.submit_s[j]), group=int(self._group[j]), gpus=int(self._trace.gpus[j])
        )

    def _boosted(self, rows: Array) -> Array:
        return self._model.predict(rows) if self._model else np.full((len(rows), len(LEVELS)), np.nan)
