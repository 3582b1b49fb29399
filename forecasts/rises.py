"""How far demand will rise within some hours, online: boosted and rolling quantiles compete, misses correct the mix.

Asked once an hour, in order. It learns only from what had happened by then: a rise is known when its hours are over.
"""

import msgspec
import numpy as np

from forecasts.boosting import Boosted, Recipe, fit
from forecasts.experts import Correction, Hedge
from forecasts.quantiles import Array

LAGS_H: tuple[int, ...] = (1, 2, 3, 6, 12, 24, 48, 168)
SPANS_H: tuple[int, ...] = (6, 24, 168)
ROLLING_H: tuple[int, ...] = (72, 168, 336)
"""Windows of the experts that take the rises of the last three, seven and fourteen days for the next one."""
_FEWEST = 48


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """`quantile` of the rise within `hours`."""

    quantile: float = 0.9
    hours: int = 8
    recipe: Recipe = Recipe(rounds=60, leaves=4, rows_per_leaf=40)
    retrain_h: int = 84
    rate: float = 0.1
    switch: float = 0.005
    pace: float = 0.02


class RiseForecast(msgspec.Struct, kw_only=True):
    """All of the forecaster's memory. `rows` is what was known at each hour (None or NaN: nothing), `levels` and
    `peaks` are in GPUs.
    """

    setting: Setting
    hedge: Hedge
    correction: Correction
    levels: list[float] = []
    peaks: list[float] = []
    rows: list[list[float | None]] = []
    rises: list[float] = []
    model: Boosted | None = None
    trained_h: int = 0
    said: dict[int, tuple[Array, float]] = {}

    @staticmethod
    def new(setting: Setting) -> "RiseForecast":
        """That has seen nothing yet."""
        hedge = Hedge.among(1 + len(ROLLING_H), 1, rate=setting.rate, switch=setting.switch)
        return RiseForecast(setting=setting, hedge=hedge, correction=Correction.none(1, pace=setting.pace))

    def see(self, level: float, peak: float, known: list[float], hour: int) -> None:
        """One hour more. `peak` is the largest level since the last call, `known` any figures of this moment (always
        as many), `hour` the number of the hour, from a midnight.
        """
        self.levels.append(level)
        self.peaks.append(peak)
        self.rows.append([*known, *self._own(hour)])
        since = len(self.levels) - 1 - self.setting.hours
        if since >= 0:
            self.rises.append(max(0.0, max(self.peaks[since + 1 :]) - self.levels[since]))
            self._learn(since)
        if len(self.rises) >= _FEWEST and len(self.levels) - self.trained_h >= self.setting.retrain_h:
            self._train()

    def expected(self) -> float | None:
        """The quantile of the rise from now on; None before any was seen."""
        if not self.rises:
            return None
        experts = np.array([self._boosted(), *(self._rolling(window) for window in ROLLING_H)])[:, None]
        final = float(self.correction.apply(self.hedge.mix(experts))[0])
        self.said[len(self.levels) - 1] = (experts, final)
        return final

    def forget(self, keep_h: int) -> None:
        """Let go of all hours but the last `keep_h`, and some: they are let go a quarter at a time."""
        gone = len(self.levels) - keep_h
        if gone < keep_h // 4:
            return
        self.levels, self.peaks, self.rows = self.levels[gone:], self.peaks[gone:], self.rows[gone:]
        self.rises = self.rises[gone:]
        self.said = {hour - gone: said for hour, said in self.said.items() if hour >= gone}
        self.trained_h -= gone

    def _own(self, hour: int) -> list[float]:
        levels, now = self.levels, self.levels[-1]
        lags = [now - levels[-1 - lag] if len(levels) > lag else np.nan for lag in LAGS_H]
        spans = [figure for span in SPANS_H for figure in _span(np.array(levels[-span:]))]
        return [now, self.peaks[-1] - now, *lags, *spans, float(hour % 24), float(hour // 24 % 7)]

    def _learn(self, since: int) -> None:
        said = self.said.pop(since, None)
        if said is not None:
            levels = (self.setting.quantile,)
            self.hedge.learn(said[0], self.rises[since], levels)
            self.correction.learn(np.array([said[1]]), self.rises[since], levels)

    def _train(self) -> None:
        rows, target = np.array(self.rows[: len(self.rises)], dtype=float), np.array(self.rises)
        self.model = fit(rows, target, recipe=self.setting.recipe, levels=(self.setting.quantile,))
        self.trained_h = len(self.levels)

    def _boosted(self) -> float:
        if self.model is None:
            return np.nan
        return max(0.0, float(self.model.predict(np.array(self.rows[-1:], dtype=float))[0, 0]))

    def _rolling(self, window: int) -> float:
        return float(np.quantile(self.rises[-window:], self.setting.quantile))


def _span(values: Array) -> tuple[float, float, float]:
    return float(values[-1] - values.mean()), float(values.std()), float(values.max() - values[-1])
