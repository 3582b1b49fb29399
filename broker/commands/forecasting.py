"""`forecast`: jobs of the past and the queue -> quantiles of demand per pool, and how good they would have been.

The present is the latest time that any source tells of: what happened after it is not known, and not taken for quiet.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from broker.clock import WallClock
from broker.commands import queue_reading
from broker.commands.history import as_view
from broker.commands.workplace import clock_of
from broker.config import Config, load
from broker.config.values import nearest
from broker.counted import number
from broker.errors import InputError, UsageError
from broker.extras import FORECASTS, require
from broker.model.job import Job
from broker.model.policy import Policy, Pool
from broker.model.snapshot import SourceView, Trust
from broker.purchase.pools import pool_of
from broker.queues.read import FUTURE
from broker.schedule.supposing import suppose
from state.history.store import beside

if TYPE_CHECKING:
    from broker.commands.demand_history import Past
    from broker.commands.demand_memory import DemandMemory
    from forecasts.accuracy import Accuracy
    from forecasts.given import Given

AHEAD_H = (1, 2, 3, 6, 12, 24, 48, 72, 120, 168)
SCORED_AHEAD_H = (1, 6, 24)
UNSCORED = "its accuracy cannot be told from {} h of history: that takes more than two weeks, or 20 jobs that ended"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """`files` are histories beside the configured queue; `source_format` and what follows say how to read them."""

    files: tuple[Path, ...] = ()
    pools: tuple[str, ...] = ()
    hours: int = 24
    accuracy: bool = False
    source_format: str = "auto"
    timezone: str | None = None
    procs_per_gpu: int = 0

    @property
    def given(self) -> queue_reading.Given:
        return queue_reading.Given(
            files=self.files, format=self.source_format, timezone=self.timezone, procs_per_gpu=self.procs_per_gpu
        )


class Quantile(msgspec.Struct, frozen=True):
    level: float
    gpus: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Demand at a whole hour: GPUs of jobs that run or wait then."""

    ahead_h: int
    at: datetime
    quantiles: tuple[Quantile, ...]


class PoolForecast(msgspec.Struct, frozen=True, kw_only=True):
    """`notes` say what keeps it from being good. `gpus_now` is demand at the whole hour `as_of`."""

    pool: str
    as_of: datetime | None
    history_h: int
    jobs: int
    gpus_now: int
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    accuracy: "tuple[Accuracy, ...]" = ()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    pools: tuple[PoolForecast, ...]
    problems: tuple[str, ...] = ()


def forecast(path: Path, wish: Wish, *, flags: Mapping[str, str]) -> Forecast:
    """Raises UsageError for a pool or a library that is not there, InputError where nothing could be read."""
    require("forecasts need", FORECASTS, "sia")
    config = load(path, flags=flags, env=os.environ) if path.exists() or not wish.files else None
    policy = suppose(config.policy if config else Policy(), (), {}, None)
    views = tuple(_until(view, _latest_now(config)) for view in _views(path, config, wish, flags))
    given, problems = _given(config, policy)
    with _memory(config, wish) as (memory, lost):
        told = [_forecast(pool, policy, views, given, config, wish, memory) for pool in _pools(policy, wish.pools)]
    lines = (line for view in views for line in view.problems)
    return Forecast(pools=tuple(told), problems=tuple(dict.fromkeys((*lines, *problems, *lost))))


@contextmanager
def _memory(config: Config | None, wish: Wish) -> "Iterator[tuple[DemandMemory, list[str]]]":
    """What was learned of the state's own history, brought up to now and kept; of given files nothing is."""
    from broker.commands import demand_memory

    if config is None or wish.files or not beside(config.state).exists():
        yield demand_memory.DemandMemory(), []
        return
    memory, notes = demand_memory.remembered(config)
    lines = list(notes)
    yield memory, lines
    lines += demand_memory.keep(config, memory)


def _views(path: Path, config: Config | None, wish: Wish, flags: Mapping[str, str]) -> tuple[SourceView, ...]:
    """Histories (of the state, where no file is given), then the queue, which knows better how a job stands."""
    views: tuple[SourceView, ...] = ()
    if wish.files:
        views = queue_reading.read(path, wish.given, flags=flags).sources
    elif config and (kept := as_view(config)):
        views = (kept,)
    if config and config.queues:
        views = (*views, *queue_reading.read(path, queue_reading.Given(), flags=flags).sources)
    unread = [view for view in views if view.trust is Trust.UNKNOWN]
    if unread or not views:
        why = "; ".join(line for view in unread for line in view.problems) or "no queue and no history"
        raise InputError(f"the past is not known: {why}", next_step="Give --history FILE, or see: broker jobs")
    return views


def _latest_now(config: Config | None) -> datetime:
    """A sandbox's clock may be behind the machine's, and a history be of either time."""
    wall = WallClock().now()
    return max(clock_of(config).now(), wall) if config else wall


def _until(view: SourceView, now: datetime) -> SourceView:
    """Without jobs from the future: one would be taken for the present, and all between for quiet."""
    jobs = tuple(job for job in view.jobs if max(job.submit, job.start or job.submit) <= now + FUTURE)
    if len(jobs) == len(view.jobs):
        return view
    left_out = f"{view.source}: {number(len(view.jobs) - len(jobs), 'job')} from the future left out"
    return msgspec.structs.replace(view, jobs=jobs, problems=(*view.problems, left_out))


def _pools(policy: Policy, names: Sequence[str]) -> list[Pool]:
    known = [pool.name for pool in policy.pools]
    for name in names:
        if name not in known:
            raise UsageError(
                f'there is no pool "{name}"{nearest(name, known)}', next_step=f"Use one of {', '.join(known)}"
            )
    return [pool for pool in policy.pools if not names or pool.name in names]


def _given(config: Config | None, policy: Policy) -> "tuple[Given | None, tuple[str, ...]]":
    if config is None or config.forecast is None:
        return None, ()
    from forecasts import given

    try:
        found = given.read(config.forecast)
    except InputError as error:
        return None, (f"your forecast is not used: {error}",)
    strange = sorted(set(found.pools) - {pool.name for pool in policy.pools})
    unknown = (f"{config.forecast} forecasts {', '.join(strange)}: no such pool, not used",) if strange else ()
    return found, (*found.repairs, *unknown)


def _forecast(
    pool: Pool,
    policy: Policy,
    views: Sequence[SourceView],
    given: "Given | None",
    config: Config | None,
    wish: Wish,
    memory: "DemandMemory",
) -> PoolForecast:
    from broker.commands import demand_history as history

    jobs = [job for job in _latest(views) if pool_of(job, policy.pools) is pool and job.gpus > 0]
    told = _present(views)
    if not jobs or told is None:
        nothing = "no job of this pool was ever seen: there is nothing to forecast from"
        return PoolForecast(pool=pool.name, as_of=told, history_h=0, jobs=0, gpus_now=0, rows=(), notes=(nothing,))
    past = history.past(jobs, told)
    usable, notes = _usable(given, pool.name, past, config, wish.hours)
    accuracy = history.accuracy(past, SCORED_AHEAD_H) if wish.accuracy else ()
    unscored = (UNSCORED.format(past.hours),) if wish.accuracy and not accuracy else ()
    rows, said = history.ahead(past, pool.name, _hours(wish.hours), usable, memory)
    return PoolForecast(
        pool=pool.name,
        as_of=past.as_of,
        history_h=past.hours,
        jobs=len(jobs),
        gpus_now=int(past.series.level[-1]),
        rows=tuple(_row(past, hours, quantiles) for hours, quantiles in rows),
        notes=(*history.cold(past), *notes, *said, *unscored),
        accuracy=accuracy,
    )


def _hours(most: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*(hours for hours in AHEAD_H if hours < most), most)))


def _latest(views: Sequence[SourceView]) -> Iterable[Job]:
    """Each attempt once, as the last source tells it."""
    found = {(job.cluster, job.id, job.attempt, job.submit): job for view in views for job in view.jobs}
    return found.values()


def _present(views: Sequence[SourceView]) -> datetime | None:
    """The latest time that a job tells, or at which a queue with live jobs was read."""
    jobs = chain.from_iterable(view.jobs for view in views)
    told = [at for job in jobs for at in (job.submit, job.start, job.end) if at is not None]
    told += [view.as_of for view in views if view.as_of and any(job.state.live for job in view.jobs)]
    return max(told, default=None)


def _usable(
    given: "Given | None", pool: str, past: "Past", config: Config | None, hours: int
) -> "tuple[Given | None, tuple[str, ...]]":
    if given is None or config is None:
        return None, ()
    problems = given.problems(pool, past.as_of, config.forecast_max_age, timedelta(hours=hours))
    usable = given.usable(pool, past.as_of, config.forecast_max_age)
    return given if usable else None, tuple(f"your {problem}" for problem in problems)


def _row(past: "Past", hours: int, quantiles: Sequence[tuple[float, int]]) -> Row:
    at = past.as_of + timedelta(hours=hours)
    return Row(ahead_h=hours, at=at, quantiles=tuple(Quantile(level, gpus) for level, gpus in quantiles))
