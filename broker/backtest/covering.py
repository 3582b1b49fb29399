"""How much to hold, by the rises of demand seen lately: cover what is due now plus a quantile of the rises since."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from broker.backtest.hourly import Hour


@dataclass(frozen=True, slots=True)
class Error:
    """Makes a forecast too high or too low by `factor`, at random; 1: leaves it alone. For ablations."""

    factor: float = 1.0
    seed: int = 0

    def __call__(self, expected: float, hour: int) -> float:
        if self.factor == 1.0:
            return expected
        up = np.random.default_rng((self.seed, hour)).random() < 0.5
        return expected * (self.factor if up else 1.0 / self.factor)


@dataclass(slots=True, kw_only=True)
class Rises:
    """Quantile of (largest value within the next `hours` - value now), over the last `days`. No look ahead."""

    quantile: float
    hours: int
    days: float
    levels: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    rises: deque[int] = field(default_factory=deque)
    error: Error = Error()

    def see(self, level: int, peak: int) -> None:
        """`peak` is the largest level since the last call."""
        self.levels.append(level)
        self.peaks.append(peak)
        if len(self.levels) > self.hours:
            since = len(self.levels) - 1 - self.hours
            self.rises.append(max(0, max(self.peaks[since + 1 :]) - self.levels[since]))
        while len(self.rises) > self.days * 24:
            self.rises.popleft()

    def expected(self) -> float:
        expected = float(np.quantile(self.rises, self.quantile)) if self.rises else 0.0
        return self.error(expected, len(self.levels))


@dataclass(slots=True, kw_only=True)
class Covering:
    """Hold max(claims, `share` x (running + queued)) and the rise to be expected, beyond claims at most `most`.

    `first` is held until the first rise has been seen.
    """

    rises: Rises
    first: int
    most: int
    share: float = 1.0

    def goal(self, hour: Hour) -> int:
        level = max(hour.claims, round(self.share * hour.demand))
        self.rises.see(level, max(level, round(self.share * hour.peak)))
        if not self.rises.rises:
            return self.first
        return max(hour.claims, min(self.most, int(np.ceil(level + self.rises.expected()))))


@dataclass(slots=True)
class Given:
    """What another policy has held, hour by hour: the mean of each hour, known in advance. For comparisons."""

    curve: list[tuple[float, float]]
    at: int = 0

    def goal(self, hour: Hour) -> int:
        """The last decision's capacity goes on after the curve's end; a curve of one decision tells of no hour."""
        if len(self.curve) < 2:
            return hour.capacity
        while self.at + 2 < len(self.curve) and self.curve[self.at][0] < hour.at:
            self.at += 1
        (begin_s, held), (end_s, later) = self.curve[self.at], self.curve[self.at + 1]
        return round((later - held) / (end_s - begin_s))
