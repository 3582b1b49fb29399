"""Jobs of the past as the columns that forecasts learn from, and the forecasts of one pool."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from broker.commands.demand_memory import DemandMemory
from broker.model.job import Job
from forecasts import accuracy as scoring
from forecasts.accuracy import Accuracy
from forecasts.ahead import Setting
from forecasts.demand import HOUR_S, Jobs, Series, cut, series
from forecasts.given import SLACK, Given
from forecasts.history import Submitted
from forecasts.quantiles import LEVELS, Array
from forecasts.scores import mean_pinball

COLD_H = 48
STALE = timedelta(hours=24)
MODEL_H = 240
"""From so many hours of history on, the boosted model of demand some hours ahead can be fitted."""
LEARNED_H = 28 * 24
"""Experts compete over the last weeks; what lies before only teaches the model."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """`origin` is a midnight (UTC), `as_of` the last whole hour that is known."""

    origin: datetime
    as_of: datetime
    series: Series
    submitted: Submitted
    last_end: datetime | None

    @property
    def hours(self) -> int:
        return len(self.series.level) - 1


def past(jobs: Sequence[Job], told: datetime) -> Past:
    """`told` is the last instant of which anything is known. Jobs without an end that are over are left out."""
    usable = sorted((job for job in jobs if job.end is not None or job.state.live), key=lambda job: job.submit)
    first = min((job.submit for job in usable), default=told).astimezone(UTC)
    origin = first.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = int((told - origin).total_seconds() // HOUR_S) + 1
    submit_s = np.array([_seconds(job.submit, origin) for job in usable])
    end_s = np.array([_seconds(job.end, origin) for job in usable])
    demand = Jobs(submit_s=submit_s, end_s=np.maximum(end_s, submit_s), gpus=np.array([float(j.gpus) for j in usable]))
    return Past(
        origin=origin,
        as_of=origin + timedelta(hours=hours - 1),
        series=series(demand, hours, weekday_of_start=origin.weekday()),
        last_end=max((job.end for job in usable if job.end is not None), default=None),
        submitted=submitted([job for job in usable if job.start is not None], origin)[0],
    )


def _seconds(at: datetime | None, origin: datetime) -> float:
    return float("inf") if at is None else (at - origin).total_seconds()


def submitted(jobs: Sequence[Job], origin: datetime) -> tuple[Submitted, dict[str, int]]:
    """Jobs that have started, in order of submit, in seconds from `origin`; and the numbers of their groups."""
    groups: dict[str, int] = {}
    limits = [float("nan") if job.time_limit_s is None else float(job.time_limit_s) for job in jobs]
    start_s = np.array([_seconds(job.start, origin) for job in jobs])
    columns = Submitted(
        submit_s=np.array([_seconds(job.submit, origin) for job in jobs]),
        start_s=start_s,
        end_s=np.maximum(np.array([_seconds(job.end, origin) for job in jobs]), start_s),
        gpus=np.array([float(job.gpus) for job in jobs]),
        group=np.array([float(groups.setdefault(job.user or job.tenant, len(groups))) for job in jobs]),
        time_limit_s=np.array(limits),
    )
    return columns, groups


def cold(past: Past) -> tuple[str, ...]:
    """What too little history, or one that stops, means: said plainly."""
    if past.last_end is None:
        return ("cold start: no finished job is known, so what was wanted in the past is understated; give --history",)
    if past.as_of - past.last_end > STALE:
        return (f"no job is known to have ended since {past.last_end:%Y-%m-%d %H:%M} UTC: the history is old",)
    if past.hours < COLD_H:
        return (f"cold start: {past.hours} h of history say next to nothing; the figures are what demand did in them",)
    if past.hours < MODEL_H:
        return (f"little history ({past.hours} h): only past changes are used, the model needs {MODEL_H} h",)
    return ()


Forecasted = list[tuple[int, list[tuple[float, int]]]]


def ahead(
    past: Past, pool: str, hours: Sequence[int], given: Given | None, memory: DemandMemory
) -> tuple[Forecasted, tuple[str, ...]]:
    """(hours ahead, (level, GPUs) of each), without the hours of which nothing can be said; and why.

    Goes on from what `memory` holds, which is brought up to now; not where a forecast of the user's is to be weighed
    too, which takes all the hours of which it spoke.
    """
    memory = DemandMemory() if given else memory
    found: Forecasted = []
    silent = []
    losses: list[tuple[float, float]] = []
    for hour in hours:
        quantiles, scored = _one(past, pool, hour, given, memory)
        losses += scored
        if np.isfinite(quantiles).all():
            found.append((hour, [(level, round(max(q, 0.0))) for level, q in zip(LEVELS, quantiles, strict=True)]))
        else:
            silent.append(f"{hour} h")
    notes = [f"nothing can be said {', '.join(silent)} ahead from {past.hours} h of history"] if silent else []
    if losses:
        ours, yours = np.mean(losses, axis=0)
        notes.append(
            f"pinball loss where your forecast spoke ({len(losses)} hours): ours {ours:.2f}, yours {yours:.2f}"
        )
    return found, tuple(notes)


def _one(
    past: Past, pool: str, ahead_h: int, given: Given | None, memory: DemandMemory
) -> tuple[Array, list[tuple[float, float]]]:
    """The forecast now, after the experts have competed over the last weeks; and losses of (ours, the user's)."""
    setting = Setting(extra=1 if given else 0)
    first = max(0, past.hours - LEARNED_H)
    learned = memory.resumed(pool, setting, ahead_h, past.origin, first, past.hours)
    online, quantiles = learned.online, learned.online.said_at(past.hours)
    losses: list[tuple[float, float]] = []
    level = past.series.level
    for hour in range(learned.hour + 1, past.hours + 1):
        yours = _yours(past, pool, hour, ahead_h, given) if given else None
        quantiles = online.forecast(cut(past.series, hour + 1), yours)
        target = hour + ahead_h
        if yours is not None and target < len(level) and np.isfinite(yours).all() and np.isfinite(quantiles).all():
            actual = level[target : target + 1]
            both = (mean_pinball(actual, each[None, :])[0] for each in (quantiles, yours[0]))
            losses.append((float(next(both)), float(next(both))))
    memory.keep(pool, msgspec.structs.replace(learned, hour=past.hours))
    return quantiles, losses


def _yours(past: Past, pool: str, hour: int, ahead_h: int, given: Given) -> Array:
    """What the user's file had said by then of the time so many hours later: (1, levels)."""
    made_at = past.origin + timedelta(hours=hour)
    by = made_at + SLACK if hour == past.hours else made_at
    return given.at(pool, made_at + timedelta(hours=ahead_h), by)[None, :]


def accuracy(past: Past, hours: Sequence[int]) -> tuple[Accuracy, ...]:
    """Split by time: the first half only teaches. What was never seen twice cannot be scored and is left out."""
    half = past.hours // 2
    found = [
        scoring.of_demand(past.series, ahead_h, half)
        for ahead_h in hours
        if past.hours - half > ahead_h and half >= 168
    ]
    ended = np.isfinite(past.submitted.end_s) & (past.submitted.submit_s >= half * HOUR_S)
    if ended.sum() >= 20:
        found.append(scoring.of_durations(past.submitted, half * HOUR_S))
    return tuple(each for each in found if each.scores[0].count)
