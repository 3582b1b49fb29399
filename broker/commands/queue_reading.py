"""The queue as the broker reads it: configured sources, or files that somebody wants to see through its eyes."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from broker.clock import Clock, WallClock
from broker.commands.workplace import clock_of
from broker.config import Config, QueueSource, load
from broker.config.values import Wrong, choice
from broker.config.values import timezone as checked_timezone
from broker.errors import Exit, InputError, UsageError
from broker.model.job import Job, JobState
from broker.model.policy import Pool
from broker.model.snapshot import SourceView, Trust
from broker.observe.drops import live
from broker.observe.observe import observe_queues
from broker.purchase.pools import Asks, asks, pool_of
from broker.queues.explain import Explained, explained
from broker.queues.parsed import Unreadable
from broker.queues.read import Part, parts, read_all
from broker.queues.registry import FORMATS
from state.queue_reads import QueueRead, recall_or_begin, remember

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


class Unrouted(msgspec.Struct, frozen=True, kw_only=True):
    """Live jobs that no pool takes, by all that decides it. `example` is one of their ids."""

    tenant: str
    queue: str | None
    gpu_model: str | None
    constraint: str | None
    jobs: int
    gpus: int
    example: str


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    sources: tuple[SourceView, ...]
    groups: tuple[Group, ...]
    unrouted: tuple[Unrouted, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """Not read at all is an error; read in part is not, but is said."""
        unknown = any(source.trust is Trust.UNKNOWN for source in self.sources)
        return Exit.ERROR if unknown else Exit.OK


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are named instead of the configured sources, and how they are read."""

    files: tuple[Path, ...] = ()
    format: str = "auto"
    timezone: str | None = None
    procs_per_gpu: int = 0
    epoch: datetime | None = None
    columns: tuple[tuple[str, str], ...] = ()


def read(path: Path, given: Given, *, flags: Mapping[str, str]) -> Queue:
    """With files, the configuration is needed for the pools only, and may be missing."""
    config, sources = _sources(path, given, flags)
    views = observe_queues(config, _clock(config)) if config and not given.files else read_all(sources, _clock(config))
    pools = config.policy.pools if config else ()
    return Queue(sources=views, groups=_groups(views, pools), unrouted=_unrouted(views, pools) if pools else ())


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was set aside."""

    source: str
    where: str
    reason: str
    value: str


def quarantine(path: Path, given: Given, *, flags: Mapping[str, str]) -> tuple[Row, ...]:
    """Raises InputError for a source that cannot be read."""
    rows = []
    for source, part in _parts(path, given, flags):
        for where, reason, value in part.parsed.set_aside:
            rows.append(Row(source=source.name, where=f"{part.context.ref}:{where}", reason=reason, value=value))
    return tuple(rows)


def explain(
    path: Path, given: Given, identity: str, *,
    flags: Mapping[str, str],
) -> tuple[Explained, ...]:  # fmt: skip
    """Each attempt of the job in each source. Raises InputError for a source or job that cannot be found."""
    found = tuple(
        explained(job, part.format, part.text, part.context, {each.raw_ref for each in part.parsed.jobs})
        for _, part in _parts(path, given, flags)
        for job in part.parsed.jobs
        if identity in (job.id, job.name)
    )
    if not found:
        raise InputError(
            f"no source holds a job {identity}",
            next_step="See the ids with: broker jobs -v. Jobs without whole GPUs are dropped; for rows that were set "
            "aside: broker jobs --quarantine",
        )
    return found


def confirm(path: Path, name: str, *, flags: Mapping[str, str]) -> int:
    """Believe how many jobs a source holds now; returns how many those are. Raises InputError or UsageError."""
    config = load(path, flags=flags, env=os.environ)
    sources = [source for source in config.queues if source.name == name]
    if not sources:
        raise UsageError(
            f'there is no queue "{name}"', next_step=f"There are: {', '.join(s.name for s in config.queues)}"
        )
    (view,) = [view for view in read_all(config.queues, _clock(config)) if view.source == name]
    if view.trust is Trust.UNKNOWN:
        raise InputError(view.problems[0], next_step="What cannot be read cannot be confirmed")
    remember(config.state, recall_or_begin(config.state) | {name: QueueRead(source=name, live=live(view))})
    return live(view)


def _parts(path: Path, given: Given, flags: Mapping[str, str]) -> Iterator[tuple[QueueSource, Part]]:
    config, sources = _sources(path, given, flags)
    for source in sources:
        try:
            yield from ((source, part) for part in parts(source, _clock(config)))
        except Unreadable as why:
            raise InputError(f"queue {source.name}: {why}", next_step="Correct it, or name another file") from None


def _sources(path: Path, given: Given, flags: Mapping[str, str]) -> tuple[Config | None, Sequence[QueueSource]]:
    """Files stand in the place of the configured sources; GPUs are called as configured in either."""
    config = load(path, flags=flags, env=os.environ) if path.exists() or not given.files else None
    aliases = config.gpu_aliases if config else ()
    named = [
        msgspec.structs.replace(
            checked_source(each, given.format, given.timezone),
            gpu_aliases=aliases,
            procs_per_gpu=given.procs_per_gpu,
            epoch=given.epoch,
            columns=given.columns,
        )
        for each in given.files
    ]
    return config, named or (config.queues if config else ())


def _clock(config: Config | None) -> Clock:
    return clock_of(config) if config else WallClock()


def checked_source(path: Path, source_format: str, timezone: str | None) -> QueueSource:
    checked = _checked("--format", choice(("auto", *FORMATS)), source_format)
    zone = _checked("--tz", checked_timezone, timezone) if timezone else None
    return QueueSource(name=path.name, files=(path,), format=checked, timezone=zone, max_age=_ANY_AGE)


def _checked(flag: str, parser: Callable[[str], Any], given: str) -> Any:
    try:
        return parser(given)
    except Wrong as wrong:
        raise UsageError(f"{flag} {wrong}", next_step="See: broker jobs --help") from None


def _groups(views: Sequence[SourceView], pools: tuple[Pool, ...]) -> tuple[Group, ...]:
    jobs: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in (job for view in views for job in view.jobs if job.state.live):
        pool = pool_of(job, pools)
        jobs[job.tenant, pool.name if pool else NO_POOL].append(job)
    return tuple(_group(tenant, pool, members) for (tenant, pool), members in sorted(jobs.items()))


def _unrouted(views: Sequence[SourceView], pools: tuple[Pool, ...]) -> tuple[Unrouted, ...]:
    """Most GPUs first. Without any pool nothing is routed, and there is nothing to say."""
    found: dict[Asks, list[Job]] = defaultdict(list)
    for job in (job for view in views for job in view.jobs if job.state.live):
        found[asks(job)].append(job)
    left = [jobs for jobs in found.values() if pool_of(jobs[0], pools) is None]
    return tuple(_left(jobs) for jobs in sorted(left, key=lambda jobs: -sum(job.gpus for job in jobs)))


def _left(jobs: Sequence[Job]) -> Unrouted:
    first = jobs[0]
    return Unrouted(
        tenant=first.tenant,
        queue=first.queue,
        gpu_model=first.gpu_model,
        constraint=first.constraint,
        jobs=len(jobs),
        gpus=sum(job.gpus for job in jobs),
        example=first.id,
    )


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
