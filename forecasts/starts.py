"""How many GPUs owed starts will want at once in the next hour, online: for what is to be kept free for them.

Asked once an hour, in order. What is wanted is the most that such starts wanted within one reclaim time of the hour. If
w reclaim times make an hour, its quantile at 1 - w alpha is exceeded in at most a share alpha of them (union bound).
"""

import msgspec

from forecasts.boosting import Recipe
from forecasts.rises import RiseForecast, Setting

LAGS_H: tuple[int, ...] = (1, 2, 3, 6, 24, 168)
SPANS_H: tuple[int, ...] = (6, 24, 168)
LOWEST = 0.5
KEPT_H = 26 * 168
"""Half a year of hours is remembered."""


class Starts(msgspec.Struct, kw_only=True):
    """All of the forecaster's memory: data, to be stored between runs. `wanted` is in GPUs, one an hour."""

    rises: RiseForecast
    wanted: list[float] = []

    @staticmethod
    def new(alpha: float, windows: int, *, seed: int = 0) -> "Starts":
        """`windows` is the number of reclaim times in an hour, `alpha` the share of them that may want more."""
        recipe = Recipe(rounds=60, leaves=4, rows_per_leaf=40, seed=seed)
        quantile = max(LOWEST, 1.0 - alpha * windows)
        return Starts(rises=RiseForecast.new(Setting(quantile=quantile, hours=1, recipe=recipe)))

    def see(self, wanted: float, known: list[float], hour: int) -> None:
        """What the hour before `hour` (numbered from a midnight) wanted; `known` are any figures of now, as many each
        time.
        """
        self.wanted = [*self.wanted[-max(LAGS_H) :], wanted]
        self.rises.see(0.0, wanted, [*known, *self._own()], hour)
        self.rises.forget(KEPT_H)

    def expected(self) -> float | None:
        """GPUs; None before an hour was seen."""
        return self.rises.expected()

    def _own(self) -> list[float]:
        lags = [self.wanted[-lag] if len(self.wanted) >= lag else 0.0 for lag in LAGS_H]
        return [*lags, *(max(self.wanted[-span:]) for span in SPANS_H)]
