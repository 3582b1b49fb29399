"""The forecast of demand some hours ahead, online: experts compete, a correction keeps the levels honest.

Call `forecast` once an hour, in order. It learns from the outcome of what it said `ahead_h` hours ago, and from
nothing later than the hour it is asked at.
"""

import msgspec
import numpy as np

from forecasts.boosting import Recipe
from forecasts.demand import DemandModel, Series, train
from forecasts.experts import Correction, Hedge
from forecasts.quantiles import LEVELS, Array

WEEK_H = 168
ROLLING_H: tuple[int, ...] = (168, 336, 672)
"""Windows of the experts that take the changes seen over the last one, two and four weeks as the next one's."""
SEASON_DAYS = 28
OWN_EXPERTS = 2 + len(ROLLING_H)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """`extra` is how many forecasts come from outside. `pace` is the correction's for one hour ahead; it falls with
    the cube root of the hours, because the outcome comes later and the errors of neighbouring hours are one error.
    """

    recipe: Recipe = Recipe(rounds=60, leaves=4, rows_per_leaf=100)
    retrain_h: int = WEEK_H
    rate: float = 0.1
    switch: float = 0.005
    pace: float = 0.015
    extra: int = 0


class Said(msgspec.Struct, frozen=True):
    """What was forecast at an hour: by each expert, and after mixing and correction."""

    experts: Array
    final: Array


class Ahead(msgspec.Struct, kw_only=True):
    """All of the forecaster's memory: data, to be stored between runs."""

    ahead_h: int
    setting: Setting
    hedge: Hedge
    correction: Correction
    model: DemandModel | None = None
    trained_h: int = -WEEK_H
    said: dict[int, Said] = {}

    @staticmethod
    def new(ahead_h: int, setting: Setting | None = None) -> "Ahead":
        """That has seen nothing yet; the further ahead it looks, the slower it corrects itself."""
        setting = setting or Setting()
        hedge = Hedge.among(OWN_EXPERTS + setting.extra, rate=setting.rate, switch=setting.switch)
        correction = Correction.none(pace=setting.pace / ahead_h ** (1 / 3))
        return Ahead(ahead_h=ahead_h, setting=setting, hedge=hedge, correction=correction)

    def forecast(self, past: Series, extra: Array | None = None) -> Array:
        """Demand `ahead_h` hours after the last row of `past`: (levels,), NaN before anything was seen.

        `extra` (setting.extra, levels) are forecasts of the same figure from outside, NaN where there is none.
        """
        hour = len(past.level) - 1
        self._learn(hour, float(past.level[-1]))
        if hour - self.trained_h >= self.setting.retrain_h:
            self.model = train(past, self.ahead_h, self.setting.recipe)
            self.trained_h = hour if self.model else self.trained_h
        experts = np.stack([*self._own(past), *self._outside(extra)])
        final = self.correction.apply(self.hedge.mix(experts))
        self.said[hour] = Said(experts, final)
        return final

    def said_at(self, hour: int) -> Array:
        """What was forecast at an hour of which the outcome is not known yet; NaN where nothing was."""
        said = self.said.get(hour)
        return said.final if said else _nothing()

    def moved(self, hours: int) -> "Ahead":
        """The same where hours are counted from `hours` earlier."""
        said = {hour + hours: said for hour, said in self.said.items()}
        return msgspec.structs.replace(self, said=said, trained_h=self.trained_h + hours)

    def _learn(self, hour: int, actual: float) -> None:
        said = self.said.pop(hour - self.ahead_h, None)
        if said is None:
            return
        self.hedge.learn(said.experts, actual)
        if np.isfinite(said.final).all():
            self.correction.learn(said.final, actual)

    def _own(self, past: Series) -> list[Array]:
        level = past.level
        found = [self.model.predict(past.known[-1:], level[-1:])[0] if self.model else _nothing()]
        changes = level[self.ahead_h :] - level[: -self.ahead_h] if len(level) > self.ahead_h else level[:0]
        found += [_after(level[-1], changes[-window:]) for window in ROLLING_H]
        return [*found, _after(level[-1], changes[_same_hour(len(changes), len(level), self.ahead_h)])]

    def _outside(self, extra: Array | None) -> Array:
        return np.full((self.setting.extra, len(LEVELS)), np.nan) if extra is None else extra


def _after(level: float, changes: Array) -> Array:
    if len(changes) < 24:
        return _nothing()
    return np.maximum(level + np.quantile(changes, LEVELS), 0.0)


def _nothing() -> Array:
    return np.full(len(LEVELS), np.nan)


def _same_hour(known: int, hours: int, ahead_h: int) -> Array:
    """Which changes began within an hour of this hour of day, over the last weeks: positions into the changes."""
    now = hours - 1
    days = np.arange(1, SEASON_DAYS + 1) * 24
    starts = (now - days[:, None] + np.array([-1, 0, 1])).ravel()
    usable: Array = starts[(starts >= 0) & (starts < known) & (starts + ahead_h <= now)]
    return usable
