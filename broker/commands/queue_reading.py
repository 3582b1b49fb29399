"""The queue as the broker reads it: configured sources, or files that somebody wants to see through its eyes."""

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from broker.clock import Clock, WallClock
from broker.commands.workplace import clock_of
from broker.config import Config, QueueSource, load
from broker.config.values import Wrong, choice
from broker.config.values import timezone as checked_timezone
from broker.errors import Exit, UsageError
from broker.model.job import Job, JobState
from broker.model.policy import Pool
from broker.model.snapshot import SourceView, Trust
from broker.purchase.pools import pool_of
from broker.queues.read import read_all
from broker.queues.registry import FORMATS

NO_POOL = "(no pool)"
_ANY_AGE = timedelta(days=36500)
"""A file that is named on the command line is shown however old it is."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What one tenant asks of one pool."""

    tenant: str
    pool: str
    queued_jobs: int
    queued_gpus: int
    running_jobs: int
    running_gpus: int


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    sources: tuple[SourceView, ...]
    groups: tuple[Group, ...]

    @property
    def exit_code(self) -> Exit:
        """Not read at all is an error; read in part is not, but is said."""
        unknown = any(source.trust is Trust.UNKNOWN for source in self.sources)
        return Exit.ERROR if unknown else Exit.OK


def read(
    path: Path, files: Sequence[Path], source_format: str, timezone: str | None, *, flags: Mapping[str, str]
) -> Queue:
    """With files, the configuration is needed for the pools only, and may be missing."""
    config = load(path, flags=flags, env=os.environ) if path.exists() or not files else None
    sources = [_source(each, source_format, timezone) for each in files] or (config.queues if config else ())
    views = read_all(sources, _clock(config))
    return Queue(sources=views, groups=_groups(views, config.policy.pools if config else ()))


def _clock(config: Config | None) -> Clock:
    return clock_of(config) if config else WallClock()


def _source(path: Path, source_format: str, timezone: str | None) -> QueueSource:
    try:
        checked = choice(("auto", *FORMATS))(source_format)
        zone = checked_timezone(timezone) if timezone else None
    except Wrong as wrong:
        raise UsageError(f"the flag {wrong}", next_step="See: broker jobs --help") from None
    return QueueSource(name=path.name, files=(path,), format=checked, timezone=zone, max_age=_ANY_AGE)


def _groups(views: Sequence[SourceView], pools: tuple[Pool, ...]) -> tuple[Group, ...]:
    jobs: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in (job for view in views for job in view.jobs if job.state.live):
        pool = pool_of(job, pools)
        jobs[job.tenant, pool.name if pool else NO_POOL].append(job)
    return tuple(_group(tenant, pool, members) for (tenant, pool), members in sorted(jobs.items()))


def _group(tenant: str, pool: str, jobs: Sequence[Job]) -> Group:
    count, gpus = Counter[bool](), Counter[bool]()
    for job in jobs:
        running = job.state is JobState.RUNNING
        count[running] += 1
        gpus[running] += job.gpus
    return Group(
        tenant=tenant,
        pool=pool,
        queued_jobs=count[False],
        queued_gpus=gpus[False],
        running_jobs=count[True],
        running_gpus=gpus[True],
    )
