"""How well the forecasts would have done: replayed over the past, split by time, beside what they have to beat.

Every figure is of forecasts made from what was known when they were made; nothing is split at random.
"""

import msgspec
import numpy as np

from forecasts import baselines, durations
from forecasts.ahead import Ahead, Setting
from forecasts.demand import HOUR_S, Series, cut
from forecasts.expected import Expected, teach
from forecasts.history import Submitted, rows
from forecasts.quantiles import LEVELS, Array
from forecasts.scores import autocorrelation, covered, crps, mean_pinball, tail_index

OURS = "broker"
BAND = (LEVELS.index(0.05), LEVELS.index(0.95))
"""The 90% band."""
RETRAIN_S = 7 * 86400.0
NEW_GROUP_JOBS = 20


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Of one forecaster for one figure; `unit` is that of the losses."""

    figure: str
    by: str
    unit: str
    count: int
    pinball: float
    crps: float
    coverage_90: float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Coverage of the 90% band within a part of the cases: an hour of day, a novelty of group, a decile of burst."""

    split: str
    part: str
    count: int
    coverage_90: float


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """`error_autocorrelation` is of the median's errors one step later; below 2, `error_tail_index` means that their
    variance is infinite.
    """

    figure: str
    scores: tuple[Score, ...]
    parts: tuple[Part, ...]
    error_autocorrelation: float
    error_tail_index: float


def of_demand(series: Series, ahead_h: int, from_h: int, setting: Setting | None = None) -> Accuracy:
    """Demand `ahead_h` hours ahead, forecast at each hour from `from_h` on; the hours before it only teach."""
    ours = demand_forecasts(series, ahead_h, setting)
    at = np.arange(from_h, len(series.level) - ahead_h)
    actual = series.level[at + ahead_h]
    figure = f"demand {ahead_h} h ahead"
    rivals = {name: said[at] for name, said in baselines.of_demand(series.level, ahead_h).items()}
    splits = {"hour of day": (at + ahead_h) % 24, "burst decile": _deciles(np.abs(actual - series.level[at]))}
    return _judge(figure, "GPUs", actual, ours[at], rivals, splits)


def demand_forecasts(series: Series, ahead_h: int, setting: Setting | None = None) -> Array:
    """What would have been forecast at each hour: (hours, levels)."""
    online = Ahead.new(ahead_h, setting)
    return np.stack([online.forecast(cut(series, hour + 1)) for hour in range(len(series.level))])


def of_durations(jobs: Submitted, from_s: float) -> Accuracy:
    """Durations of the jobs submitted from `from_s` on and finished since, in log(1 + seconds)."""
    ours, seen_before = duration_forecasts(jobs)
    rivals = baselines.of_durations(jobs)
    at = np.flatnonzero((jobs.submit_s >= from_s) & np.isfinite(jobs.end_s))
    actual = np.log1p(jobs.duration_s[at])
    splits = {
        "hour of day": (jobs.submit_s[at] / HOUR_S % 24).astype(int),
        "novelty": np.where(seen_before[at] < NEW_GROUP_JOBS, 0, 1),
        "burst decile": _deciles(_arrivals_in_hour(jobs.submit_s)[at]),
    }
    logged = {name: np.log1p(said[at]) for name, said in rivals.items()}
    return _judge("duration", "log seconds", actual, np.log1p(ours[at]), logged, splits)


def duration_forecasts(jobs: Submitted) -> tuple[Array, Array]:
    """What would have been forecast at each submit, in seconds: (n, levels); and the group's finished jobs (n,)."""
    finished = np.zeros(len(jobs.submit_s))
    for group in np.unique(jobs.group):
        same = jobs.group == group
        finished[same] = np.searchsorted(np.sort(jobs.end_s[same]), jobs.submit_s[same], side="right")
    return teach(Expected(), jobs, _boosted(jobs)), finished


def _boosted(jobs: Submitted) -> Array:
    """What the model says of each job, retrained as time goes by, in seconds: (n, levels); NaN before there is one."""
    known = rows(jobs)
    found = np.full((len(jobs.submit_s), len(LEVELS)), np.nan)
    for week in np.unique(jobs.submit_s // RETRAIN_S):
        model = durations.train(jobs, known, week * RETRAIN_S)
        if model:
            now = jobs.submit_s // RETRAIN_S == week
            found[now] = model.predict(known[now])
    return found


def _judge(
    figure: str, unit: str, actual: Array, ours: Array, rivals: dict[str, Array], splits: dict[str, Array]
) -> Accuracy:
    """All are scored on the same cases: those for which each of them said something."""
    everybody = {OURS: ours, **rivals}
    fair = np.all([np.isfinite(said).all(axis=1) for said in everybody.values()], axis=0)
    scores = tuple(_score(figure, unit, name, actual[fair], said[fair]) for name, said in everybody.items())
    parts = tuple(part for name, of in splits.items() for part in _parts(name, of[fair], actual[fair], ours[fair]))
    errors = actual[fair] - ours[fair, LEVELS.index(0.5)]
    return Accuracy(
        figure=figure,
        scores=scores,
        parts=parts,
        error_autocorrelation=autocorrelation(errors, 1),
        error_tail_index=tail_index(errors),
    )


def _score(figure: str, unit: str, by: str, actual: Array, said: Array) -> Score:
    return Score(
        figure=figure,
        by=by,
        unit=unit,
        count=len(actual),
        pinball=float(mean_pinball(actual, said).mean()),
        crps=float(crps(actual, said).mean()),
        coverage_90=covered(actual, said[:, BAND[0]], said[:, BAND[1]]),
    )


def _parts(split: str, of: Array, actual: Array, ours: Array) -> list[Part]:
    found = []
    for value in np.unique(of):
        here = of == value
        share = covered(actual[here], ours[here, BAND[0]], ours[here, BAND[1]])
        found.append(Part(split=split, part=_named(split, int(value)), count=int(here.sum()), coverage_90=share))
    return found


def _named(split: str, value: int) -> str:
    return ("new group", "known group")[value] if split == "novelty" else str(value)


def _deciles(sizes: Array) -> Array:
    """0 (calmest) to 9."""
    order = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
    decile: Array = order * 10 // max(len(sizes), 1)
    return decile


def _arrivals_in_hour(submit_s: Array) -> Array:
    """How many were submitted in the hour before each."""
    first = np.searchsorted(submit_s, submit_s - HOUR_S, side="right")
    arrivals: Array = np.arange(len(submit_s)) - first
    return arrivals
