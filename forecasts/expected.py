"""The forecast of a job's duration, online: experts compete within each group, a correction keeps the levels honest.

Experts: the boosted model, and the rolling quantiles of what finished in the job's group, in its group at its number
of GPUs, and in its group over a longer time. All in logarithms of seconds, where errors of short and of long jobs
weigh alike.
"""

import heapq
from math import expm1, isfinite, log1p

import msgspec
import numpy as np

from forecasts.experts import Hedge
from forecasts.history import Submitted
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
    experts: Array
    final: Array
    started: bool = False


class Expected(msgspec.Struct, kw_only=True):
    """Call `submit`, `start`, `finish` and `cancel` in order of time. It learns only from what had happened by then.

    Whether a job outlives a level is known when it ends or when it reaches that level, whichever is first: learning
    at that moment keeps the many short jobs, which end first, from being taken for all.
    """

    setting: Setting = msgspec.field(default_factory=Setting)
    shares: dict[int, Hedge] = msgspec.field(default_factory=dict)
    added: Array = msgspec.field(default_factory=lambda: np.zeros(len(LEVELS)))
    finished: dict[str, list[float]] = msgspec.field(default_factory=dict)
    live: dict[str, Open] = msgspec.field(default_factory=dict)
    due: list[tuple[float, str, int]] = msgspec.field(default_factory=list)

    def submit(self, id: str, now_s: float, group: int, gpus: int, boosted: Array) -> Array:
        """Quantiles of the duration in seconds (levels,), NaN where nothing like it was seen.

        `boosted` (levels,) is what the model says, in seconds, NaN where there is none.
        """
        self.reach(now_s)
        experts = np.stack([np.log1p(boosted), *(_rolling(seen) for seen in self._alike(group, gpus))])
        final = in_order(np.maximum(self._shares(group).mix(experts) + self.added, 0.0))
        self.live[id] = Open(group, gpus, experts, final)
        seconds: Array = np.expm1(final)
        return seconds

    def quantiles(self, groups: Array, gpus: Array, boosted: Array) -> Array:
        """Of many jobs at once, in seconds, (n, levels): what `submit` would say now, and nothing is remembered."""
        found = np.empty_like(boosted)
        kinds, kind = np.unique(np.stack([groups, gpus], axis=1), axis=0, return_inverse=True)
        for number, (group, size) in enumerate(kinds.astype(int).tolist()):
            here = np.flatnonzero(kind.ravel() == number)
            rolling = [np.tile(_rolling(seen), (len(here), 1)) for seen in self._alike(group, size)]
            mixed = self._shares(group).mix_many(np.stack([np.log1p(boosted[here]), *rolling]))
            found[here] = np.expm1(in_order(np.maximum(mixed + self.added, 0.0)))
        return found

    def start(self, id: str, now_s: float) -> None:
        """It begins to run: its levels lie ahead."""
        job = self.live.get(id)
        if job is None or job.started:
            return
        self.live[id] = msgspec.structs.replace(job, started=True)
        for level, log_s in enumerate(job.final.tolist()):
            if isfinite(log_s):
                heapq.heappush(self.due, (now_s + expm1(log_s), id, level))

    def finish(self, id: str, now_s: float, duration_s: float) -> None:
        """The job ended by itself. One that was never forecast is passed over."""
        self.start(id, now_s - duration_s)
        self.reach(now_s)
        job = self.live.pop(id, None)
        if job is None:
            return
        log_s = log1p(max(duration_s, 0.0))
        self._correct(job.final > log_s, met=True)
        self._shares(job.group).learn(job.experts, log_s)
        for key, window in self._keys(job.group, job.gpus):
            self.finished[key] = [*self.finished.get(key, ())[-window + 1 :], log_s]

    def cancel(self, id: str, now_s: float) -> None:
        """The job was stopped from outside: how long it would have run is not known, and nothing is learned."""
        self.reach(now_s)
        self.live.pop(id, None)

    def reach(self, now_s: float) -> None:
        """Jobs that have outlived a level of their forecast by now."""
        while self.due and self.due[0][0] < now_s:
            _, id, level = heapq.heappop(self.due)
            if id in self.live:
                self._correct(np.arange(len(LEVELS)) == level, met=False)

    def _correct(self, levels: Array, *, met: bool) -> None:
        self.added = self.added + self.setting.pace * levels * (np.asarray(LEVELS) - met)

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


def teach(online: Expected, jobs: Submitted, boosted: Array) -> Array:
    """All jobs up to the last submit, in order of time: what was forecast at each submit, in seconds (n, levels).

    `boosted` (n, levels) is what the model said then.
    """
    found = np.full((len(jobs.submit_s), len(LEVELS)), np.nan)
    ahead: list[tuple[float, bool, int]] = []  # starts before ends
    for at, now in enumerate(jobs.submit_s.tolist()):
        while ahead and ahead[0][0] <= now:
            time, ends, job = heapq.heappop(ahead)
            if ends:
                online.finish(str(job), time, time - float(jobs.start_s[job]))
            else:
                online.start(str(job), time)
        found[at] = online.submit(str(at), now, int(jobs.group[at]), int(jobs.gpus[at]), boosted[at])
        for time, ends in ((float(jobs.start_s[at]), False), (float(jobs.end_s[at]), True)):
            if isfinite(time):
                heapq.heappush(ahead, (time, ends, at))
    return found


def _rolling(log_seconds: list[float]) -> Array:
    if len(log_seconds) < FEWEST:
        return np.full(len(LEVELS), np.nan)
    rolling: Array = np.quantile(np.array(log_seconds), LEVELS)
    return rolling
