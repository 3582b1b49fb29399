"""What is told to the allocator each hour of a replay: the hold-back, learned from its own misses or a fixed share."""

from typing import Any, Protocol

import numpy as np

from broker.backtest.hourly import HOUR_S, Hour
from broker.sia.holdback import HoldBack, figures


class Expects(Protocol):
    """An expert from outside: `see` what an hour wanted at most, then `expected` of the next, in GPUs."""

    def see(self, wanted: float, known: list[float], hour: int) -> None: ...

    def expected(self) -> float | None: ...


class FixedHold:
    """Always the same share of what is held is not lent."""

    def __init__(self, share: float) -> None:
        self._share = share

    def __call__(self, state: Any, hour: Hour) -> None:
        state.pool[0]["hold"] = round(self._share * hour.capacity)


class LearnedHold:
    """Reads the allocator's counters and sets its hold-back; `starts` takes part in it as one expert."""

    def __init__(self, hold_back: HoldBack, starts: Expects | None = None) -> None:
        self.hold_back = hold_back
        self._expects = starts
        self._starts = self._misses = 0

    def __call__(self, state: Any, hour: Hour) -> None:
        pool = state.pool[0]
        starts, misses = int(pool["sensitive"]), int(pool["missed"])
        seen = np.flatnonzero(state.wanted)
        wanted = dict(zip(seen.tolist(), state.wanted[seen].tolist(), strict=True))
        state.wanted[seen] = 0
        self.hold_back.learn(wanted, starts - self._starts, misses - self._misses)
        self._starts, self._misses = starts, misses
        pool["hold"] = min(self.hold_back.hold(self._forecast(max(wanted, default=0), pool, hour)), hour.capacity)

    def _forecast(self, wanted: int, pool: Any, hour: Hour) -> float | None:
        if self._expects is None:
            return None
        known = figures(int(pool["claimed"]), int(pool["demand"]), int(pool["busy"]), int(pool["owed_all"]))
        self._expects.see(wanted, known, round(hour.at / HOUR_S))
        return self._expects.expected()
