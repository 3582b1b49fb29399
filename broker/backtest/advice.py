"""What is told to the allocator each hour of a replay: the hold-back learned from its own misses."""

from typing import Any

import numpy as np

from broker.backtest.hourly import Hour
from broker.sia.holdback import HoldBack


class LearnedHold:
    """Reads the allocator's counters and sets its hold-back."""

    def __init__(self, hold_back: HoldBack) -> None:
        self.hold_back = hold_back
        self._starts = self._misses = 0

    def __call__(self, state: Any, hour: Hour) -> None:
        pool = state.pool[0]
        starts, misses = int(pool["sensitive"]), int(pool["missed"])
        seen = np.flatnonzero(state.wanted)
        wanted = dict(zip(seen.tolist(), state.wanted[seen].tolist(), strict=True))
        state.wanted[seen] = 0
        self.hold_back.learn(wanted, starts - self._starts, misses - self._misses)
        self._starts, self._misses = starts, misses
        pool["hold"] = min(self.hold_back.hold(), hour.capacity)
