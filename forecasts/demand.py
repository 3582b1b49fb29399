"""Demand some hours ahead: boosted quantiles of its change, from what is known at the hour of forecasting.

Demand is the number of GPUs of live jobs at whole hours. What is forecast is its change, because the level wanders:
a change is seasonal, shrinks with the jobs that are about to end, and grows with bursts.
"""

import itertools

import msgspec
import numpy as np

from forecasts.boosting import Boosted, Recipe, fit
from forecasts.quantiles import LEVELS, Array

HOUR_S = 3600.0
AGE_EDGES_H: tuple[float, ...] = (0.0, 0.5, 2.0, 8.0, 24.0, 72.0, 240.0)
"""Live GPUs are told apart by the age of their job: young jobs end soon, old ones do not."""

LAGS_H: tuple[int, ...] = (1, 2, 3, 6, 12, 24, 48, 168)
_FIRST_ROW_H = max(LAGS_H)


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Columns (n,) in order of submit: when each was submitted and when it left, in seconds, and its GPUs."""

    submit_s: Array
    end_s: Array
    gpus: Array


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Hourly demand (hours,) in GPUs at whole hours, and what was known then (hours, columns)."""

    level: Array
    known: Array


def series(jobs: Jobs, hours: int, *, weekday_of_start: int = 0) -> Series:
    """Read demand off the jobs for hours 0 .. `hours` - 1. Row t holds only what happened up to hour t.

    `weekday_of_start` is 0 for a Monday; seconds count from its midnight.
    """
    ages = live_by_age(jobs, hours)
    level = ages.sum(axis=1)
    submitted = _per_hour(jobs.submit_s, jobs.gpus, hours)
    arrivals = _per_hour(jobs.submit_s, np.ones(len(jobs.submit_s)), hours)
    columns = [level, *ages.T, *(level - _lagged(level, lag) for lag in LAGS_H)]
    columns += [submitted, arrivals, *(_mean_of_last(x, n) for n in (6, 24, 168) for x in (submitted, arrivals))]
    columns += [_spread_of_last(level, n) for n in (24, 168)]
    clock = np.arange(hours)
    columns += [(clock % 24).astype(float), ((clock // 24 + weekday_of_start) % 7).astype(float)]
    return Series(level=level, known=np.stack(columns, axis=1))


def live_by_age(jobs: Jobs, hours: int) -> Array:
    """GPUs of live jobs at each whole hour by age of job: (hours, ages)."""
    whole = np.arange(hours) * HOUR_S
    found = np.zeros((hours, len(AGE_EDGES_H)))
    edges = [*(edge * HOUR_S for edge in AGE_EDGES_H), np.inf]
    for column, (young, old) in enumerate(itertools.pairwise(edges)):
        enters = jobs.submit_s + young
        leaves = np.minimum(jobs.end_s, jobs.submit_s + old)
        there = leaves > enters
        found[:, column] = _count(enters[there], jobs.gpus[there], whole) - _count(
            leaves[there], jobs.gpus[there], whole
        )
    return found


class DemandModel(msgspec.Struct, frozen=True, kw_only=True):
    """Quantiles of the change over `ahead_h` hours."""

    ahead_h: int
    boosted: Boosted

    def predict(self, known: Array, level: Array) -> Array:
        """Demand `ahead_h` hours after each row: (n, levels), never below 0."""
        demand: Array = np.maximum(level[:, None] + self.boosted.predict(known), 0.0)
        return demand


def train(past: Series, ahead_h: int, recipe: Recipe, levels: tuple[float, ...] = LEVELS) -> DemandModel | None:
    """From all hours whose outcome lies within `past`; None where that is less than two days."""
    rows = np.arange(_FIRST_ROW_H, len(past.level) - ahead_h)
    if len(rows) < 48:
        return None
    change = past.level[rows + ahead_h] - past.level[rows]
    recipe = msgspec.structs.replace(recipe, rows_per_leaf=min(recipe.rows_per_leaf, max(len(rows) // 20, 5)))
    return DemandModel(ahead_h=ahead_h, boosted=fit(past.known[rows], change, recipe=recipe, levels=levels))


def cut(whole: Series, hours: int) -> Series:
    """What was known up to and including hour `hours` - 1."""
    return Series(level=whole.level[:hours], known=whole.known[:hours])


def _count(times: Array, weights: Array, at: Array) -> Array:
    order = np.argsort(times, kind="stable")
    summed = np.concatenate(([0.0], np.cumsum(weights[order])))
    found: Array = summed[np.searchsorted(times[order], at, side="right")]
    return found


def _per_hour(times: Array, weights: Array, hours: int) -> Array:
    """Sum of weights in the hour that ends at each whole hour."""
    total = _count(times, weights, np.arange(hours) * HOUR_S)
    return np.diff(total, prepend=0.0)


def _lagged(values: Array, lag: int) -> Array:
    place = np.arange(len(values)) - lag
    return np.where(place >= 0, values[np.maximum(place, 0)], np.nan)


def _mean_of_last(values: Array, count: int) -> Array:
    summed = np.concatenate(([0.0], np.cumsum(values)))
    first = np.maximum(np.arange(1, len(values) + 1) - count, 0)
    mean: Array = (summed[1:] - summed[first]) / (np.arange(1, len(values) + 1) - first)
    return mean


def _spread_of_last(values: Array, count: int) -> Array:
    variance = _mean_of_last(values * values, count) - _mean_of_last(values, count) ** 2
    spread: Array = np.sqrt(np.maximum(variance, 0.0))
    return spread
