"""The forecast of a job's duration, online: experts compete within each group, a correction keeps the levels honest.

Experts: the boosted model, and the rolling quantiles of what finished in the job's group, in its group at its number
of GPUs, and in its group over a longer time. All in logarithms of seconds, where errors of short and of long jobs
weigh alike.
"""

import heapq

import msgspec
import numpy as np

from forecasts.durations import DurationModel
from forecasts.experts import Hedge
from forecasts.quantiles import LEVELS, Array, in_order

WINDOWS: tuple[int, ...] = (200, 50, 1000)
"""How many finished jobs the rolling experts see: of the group, of group and GPUs, of the group over longer."""
FEWEST = 3


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """`pace` is small because many jobs of one burst miss together, before the first miss can be known."""

    rate: float = 0.02
    switch: float = 0.001
    pace: float = 0.001


class Open(msgspec.Struct, frozen=True):
    """A job that was forecast: what each expert said, (experts, levels), and the final levels, in log seconds."""

    group: int
    gpus: int
    start_s: float
    experts: Array
    final: Array


class Expected(msgspec.Struct, kw_only=True):
    """Call `submit`, `finish` and `cancel` in order of time. It learns only from what had happened by then.

    Whether a job outlives a level is known when it ends or when it reaches that level, whichever is first: learning
    at that moment keeps the many short jobs, which end first, from being taken for all.
    """

    setting: Setting = msgspec.field(default_factory=Setting)
    model: DurationModel | None = None
    shares: dict[int, Hedge] = msgspec.field(default_factory=dict)
    added: Array = msgspec.field(default_factory=lambda: np.zeros(len(LEVELS)))
    finished: dict[str, list[float]] = msgspec.field(default_factory=dict)
    live: dict[str, Open] = msgspec.field(default_factory=dict)
    due: list[tuple[float, str, int]] = msgspec.field(default_factory=list)

    def submit(self, id: str, now_s: float, group: int, gpus: int, row: Array) -> Array:
        """Quantiles of the duration in seconds (levels,), NaN where nothing like it was seen; `row` (columns,)."""
        self._reach(now_s)
        experts = np.stack([self._boosted(row), *(_rolling(seen) for seen in self._alike(group, gpus))])
        final = in_order(np.maximum(self._shares(group).mix(experts) + self.added, 0.0))
        self.live[id] = Open(group, gpus, now_s, experts, final)
        for level, log_s in enumerate(final.tolist()):
            if np.isfinite(log_s):
                heapq.heappush(self.due, (now_s + float(np.expm1(log_s)), id, level))
        seconds: Array = np.expm1(final)
        return seconds

    def finish(self, id: str, now_s: float) -> None:
        """The job ended by itself. One that was never forecast is passed over."""
        self._reach(now_s)
        job = self.live.pop(id, None)
        if job is None:
            return
        log_s = float(np.log1p(now_s - job.start_s))
        self._correct(job.final > log_s, met=True)
        self._shares(job.group).learn(job.experts, log_s)
        for key, window in self._keys(job.group, job.gpus):
            self.finished[key] = [*self.finished.get(key, ())[-window + 1 :], log_s]

    def cancel(self, id: str, now_s: float) -> None:
        """The job was stopped from outside: how long it would have run is not known, and nothing is learned."""
        self._reach(now_s)
        self.live.pop(id, None)

    def _reach(self, now_s: float) -> None:
        """Jobs that have outlived a level of their forecast by now."""
        while self.due and self.due[0][0] < now_s:
            _, id, level = heapq.heappop(self.due)
            if id in self.live:
                self._correct(np.arange(len(LEVELS)) == level, met=False)

    def _correct(self, levels: Array, *, met: bool) -> None:
        self.added = self.added + self.setting.pace * levels * (np.asarray(LEVELS) - met)

    def _boosted(self, row: Array) -> Array:
        if self.model is None:
            return np.full(len(LEVELS), np.nan)
        log_seconds: Array = np.log1p(self.model.predict(row[None, :])[0])
        return log_seconds

    def _alike(self, group: int, gpus: int) -> list[list[float]]:
        return [self.finished.get(key, []) for key, _ in self._keys(group, gpus)]

    @staticmethod
    def _keys(group: int, gpus: int) -> tuple[tuple[str, int], ...]:
        short, same, long = WINDOWS
        return (f"{group}", short), (f"{group}/{gpus}", same), (f"{group}/long", long)

    def _shares(self, group: int) -> Hedge:
        if group not in self.shares:
            rate, switch = self.setting.rate, self.setting.switch
            self.shares[group] = Hedge.among(1 + len(WINDOWS), rate=rate, switch=switch)
        return self.shares[group]


def _rolling(log_seconds: list[float]) -> Array:
    if len(log_seconds) < FEWEST:
        return np.full(len(LEVELS), np.nan)
    rolling: Array = np.quantile(np.array(log_seconds), LEVELS)
    return rolling
