"""Capacity in a replay by forecasts that are learned on the way, from nothing but what had happened by each hour."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from broker.backtest.covering import Error
from broker.backtest.hourly import HOUR_S, Advise, Hour
from broker.sia.columns import DONE
from forecasts.demand import AGE_EDGES_H
from forecasts.rises import RiseForecast


@dataclass(slots=True, kw_only=True)
class Foresight:
    """Called as advice and then as capacity rule, each hour: what is live teaches, then says how far demand may rise.

    Holds max(claims, `share` x (running + queued)) and that rise, beyond claims at most `most`; `first` until a rise
    has been seen. With `dues`, how far claims may rise is forecast apart, and each is covered by itself: what is owed
    has to be there, what merely waits can wait an hour.
    """

    rises: RiseForecast
    dues: RiseForecast | None = None
    hold: Advise
    first: int
    most: int
    share: float
    error: Error = field(default_factory=Error)
    known: list[float] = field(default_factory=list)
    live: Any = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    submitted: int = 0

    def __call__(self, state: Any, hour: Hour) -> None:
        """Read the allocator's columns, as far as jobs have been submitted."""
        new = np.arange(self.submitted, hour.submitted)
        jobs = state.jobs
        self.live = np.concatenate([self.live[jobs["state"][self.live] < DONE], new[jobs["state"][new] < DONE]])
        gpus, age_h = jobs["gpus"][self.live], (hour.at - jobs["submit"][self.live]) / HOUR_S
        by_age, _ = np.histogram(age_h, bins=[*AGE_EDGES_H, np.inf], weights=gpus)
        arrived = jobs["gpus"][new]
        figures = (hour.claims, len(new), arrived.sum(), arrived.max(initial=0), len(np.unique(jobs["tenant"][new])))
        self.known = [*by_age.tolist(), *map(float, figures)]
        self.submitted = hour.submitted
        self.hold(state, hour)

    def goal(self, hour: Hour) -> int:
        """GPUs to hold from now on."""
        level, peak = round(self.share * hour.demand), round(self.share * hour.peak)
        if self.dues is None:
            level = max(hour.claims, level)
        wanted = self._covered(self.rises, level, max(level, peak), hour)
        due = self._covered(self.dues, hour.claims, hour.claims_peak, hour) if self.dues else 0.0
        if wanted is None or due is None:
            return self.first
        return max(hour.claims, min(self.most, int(np.ceil(max(wanted, due)))))

    def _covered(self, rises: RiseForecast, level: int, peak: int, hour: Hour) -> float | None:
        """`level` and the rise to be expected; None before any was seen."""
        rises.see(level, peak, self.known, round(hour.at / HOUR_S))
        rise = rises.expected()
        return None if rise is None else level + self.error(rise, len(rises.levels))
