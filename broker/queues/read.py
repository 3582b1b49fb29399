"""Configured sources -> `SourceView`s. A source that cannot be believed is UNKNOWN with one line that says why."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from broker.clock import Clock, WallClock
from broker.config.types import QueueSource
from broker.model.job import Job
from broker.model.snapshot import SourceView, Trust
from broker.queues import encoding, fetch, live, registry, slurmrestd
from broker.queues.fetch import Fetched
from broker.queues.gpu_names import renamed, unknown_among
from broker.queues.parsed import Context, Parsed, TooLarge, Unreadable
from broker.queues.registry import Detected, detect
from broker.side_by_side import side_by_side

_WALL = WallClock()
FUTURE = timedelta(minutes=5)
"""How far ahead of our clock a source's time may be before one of the two clocks is wrong."""


def read_all(sources: Sequence[QueueSource], clock: Clock, wall: Clock = _WALL) -> tuple[SourceView, ...]:
    """All sources side by side; a job that two of them report is kept in the one that is believed more.

    Files are dated by `wall`, the machine's own clock; their age is then counted back from `clock`, which may be a
    sandbox's.
    """
    views = side_by_side([partial(read_source, source, clock, wall) for source in sources])
    return without_doubles(views, [source.precedence for source in sources])


def read_source(source: QueueSource, clock: Clock, wall: Clock = _WALL) -> SourceView:
    """Never raises for anything that is wrong with the source."""
    try:
        parts = [_part(source, raw, ref) for raw, ref in _fetched(source, clock, wall)]
        return _view(source, _with_models(source, _joined(parts)), clock.now())
    except Unreadable as why:
        return unknown(source, str(why))


def unknown(source: QueueSource, why: str) -> SourceView:
    return SourceView(
        source=source.name, trust=Trust.UNKNOWN, as_of=None, pools=source.pools, problems=(_problem(source, why),)
    )


def _problem(source: QueueSource, sentence: str) -> str:
    """One line, without the control characters that a queue's text may hold: it is shown on terminals."""
    return "".join(letter if letter.isprintable() else "?" for letter in f"queue {source.name}: {sentence}")


def detected(source: QueueSource, clock: Clock) -> Detected:
    """The format of a source (of its first file), and why it is taken for that. Raises Unreadable."""
    if source.live or source.format != "auto":
        return Detected(source.live or source.format, "the configuration says so")
    if source.columns:
        return Detected("csv", "its columns are named by you")
    (fetched, _), *_ = _fetched(source, clock, _WALL)
    return detect(encoding.text(fetched.raw, source.max_bytes))


def without_doubles(views: Sequence[SourceView], precedence: Sequence[int]) -> tuple[SourceView, ...]:
    """Of one job's attempts each is kept once, and of its live attempts only those of the most believed source."""
    attempts: set[tuple[str, str, int]] = set()
    known: set[tuple[str, str]] = set()
    result = list(views)
    for index in sorted(range(len(views)), key=lambda index: -precedence[index]):
        jobs = views[index].jobs
        kept = tuple(job for job in jobs if not _reported(job, attempts, known))
        attempts |= {(job.cluster, job.id, job.attempt) for job in jobs}
        known |= {(job.cluster, job.id) for job in jobs}
        merged = views[index].merged + len(jobs) - len(kept)
        result[index] = msgspec.structs.replace(views[index], jobs=kept, kept=len(kept), merged=merged)
    return tuple(result)


def _reported(job: Job, attempts: set[tuple[str, str, int]], known: set[tuple[str, str]]) -> bool:
    return (job.cluster, job.id, job.attempt) in attempts or (job.state.live and (job.cluster, job.id) in known)


def _fetched(source: QueueSource, clock: Clock, wall: Clock) -> list[tuple[Fetched, str]]:
    seconds = source.timeout.total_seconds()
    if source.live:
        return [(live.ask(source.live, source.at, seconds, source.max_bytes, clock), source.live)]
    if source.url:
        return [(slurmrestd.get(source.url, seconds, source.max_bytes, clock), "answer")]
    if source.command:
        return [(fetch.command(source.command, seconds, source.max_bytes, clock), source.command[0])]
    if not source.files:
        raise Unreadable("has neither a file nor a command nor a url, and is not asked live")
    shift = clock.now() - wall.now()
    found = [(fetch.file(path, source.max_bytes), path.name) for path in source.files]
    return [(fetched._replace(as_of=fetched.as_of + shift), name) for fetched, name in found]


class Part(NamedTuple):
    """One file, or one answer, of a source: its text beside what was made of it."""

    format: str
    text: str
    context: Context
    parsed: Parsed


def parts(source: QueueSource, clock: Clock, wall: Clock = _WALL) -> list[Part]:
    """For those who want to see what became of single rows. Raises Unreadable."""
    return [_opened(source, fetched, ref) for fetched, ref in _fetched(source, clock, wall)]


def _part(source: QueueSource, fetched: Fetched, ref: str) -> Parsed:
    parsed = _opened(source, fetched, ref).parsed
    _freshness(parsed, fetched, asked=bool(source.command or source.url or source.live))
    return parsed


def _opened(source: QueueSource, fetched: Fetched, ref: str) -> Part:
    context = _context(source, ref)
    try:
        text = encoding.text(fetched.raw, source.max_bytes)
        name, why = _format(source, text)
        parsed = registry.read(name, text, context)
        parsed.read_as = f"{name}: {why}"
        return Part(name, text, context, parsed)
    except TooLarge as why:
        raise Unreadable(f"{ref} {why}; raise max_size") from None
    except Unreadable as why:
        raise Unreadable(f"{ref} {why}") from None


def _format(source: QueueSource, text: str) -> Detected:
    if source.live:
        return Detected(source.live, "it was asked for live")
    if source.format != "auto":
        return Detected(source.format, "the configuration says so")
    if source.columns:
        return Detected("csv", "its columns are named by you")
    return detect(text)


def _context(source: QueueSource, ref: str) -> Context:
    zone = ZoneInfo(source.timezone) if source.timezone else None
    return Context(
        source.name, source.cluster, source.tenant, zone, ref, source.procs_per_gpu, source.epoch, source.columns
    )


def _freshness(parsed: Parsed, fetched: Fetched, *, asked: bool) -> None:
    """What was asked speaks of now, though nothing may have changed for long; a file is as old as its older sign."""
    stated = parsed.as_of
    parsed.as_of = fetched.as_of if asked or stated is None else min(stated, fetched.as_of)


def _joined(parts: Sequence[Parsed]) -> Parsed:
    """Several files of one source; of a job that two of them hold the later file counts."""
    whole = parts[0]
    for part in parts[1:]:
        jobs = {(job.cluster, job.id, job.attempt): job for job in [*whole.jobs, *part.jobs]}
        whole = Parsed(
            jobs=list(jobs.values()),
            merged=whole.merged + part.merged + len(whole.jobs) + len(part.jobs) - len(jobs),
            dropped=whole.dropped + part.dropped,
            quarantined=whole.quarantined + part.quarantined,
            limited=whole.limited + part.limited,
            examples=part.examples | whole.examples,
            set_aside=whole.set_aside + part.set_aside,
            notes=list(dict.fromkeys([*whole.notes, *part.notes])),
            whole=whole.whole and part.whole,
            read_as=whole.read_as if whole.read_as == part.read_as else f"{whole.read_as}; {part.read_as}",
            as_of=min((part.as_of, whole.as_of), key=lambda at: (at is not None, at)),
        )
    return whole


def _with_models(source: QueueSource, parsed: Parsed) -> Parsed:
    """GPU models by the user's own names; those that are new to us are listed, for no pool serves them."""
    aliases = dict(source.gpu_aliases)
    if aliases:
        parsed.jobs = [_with_model(job, renamed(job.gpu_model, aliases)) for job in parsed.jobs]
    new = unknown_among(job.gpu_model for job in parsed.jobs)
    if new:
        parsed.note(f"GPU models not known: {', '.join(new[:8])}; say what they are in [gpu_aliases]")
    return parsed


def _with_model(job: Job, model: str | None) -> Job:
    return job if model == job.gpu_model else msgspec.structs.replace(job, gpu_model=model)


def _view(source: QueueSource, parsed: Parsed, now: datetime) -> SourceView:
    _refuse_age(parsed.as_of, source.max_age, now)
    parsed.jobs = _without_future(parsed, now)
    faults = parsed.quarantined.total()
    if faults and not parsed.jobs:
        raise Unreadable(f"holds no row that can be used: {'; '.join(parsed.account())[:300]}")
    if not parsed.whole and not parsed.jobs:
        raise Unreadable("; ".join(parsed.notes)[:300])
    return SourceView(
        source=source.name,
        trust=Trust.COMPLETE if parsed.whole and not faults else Trust.PARTIAL,
        as_of=parsed.as_of,
        jobs=tuple(parsed.jobs),
        rows=parsed.rows,
        kept=len(parsed.jobs),
        merged=parsed.merged,
        dropped=parsed.dropped.total(),
        dropped_why=tuple(sorted(parsed.dropped.items())),
        quarantined=faults,
        pools=source.pools,
        problems=tuple(_problem(source, line) for line in parsed.account()),
        read_as=parsed.read_as,
    )


def _without_future(parsed: Parsed, now: datetime) -> list[Job]:
    """An end that is still to come is somebody's guess: believed, it would move the present of every forecast."""
    latest = now + FUTURE
    guessed = next((job for job in parsed.jobs if job.end and job.end > latest), None)
    if guessed is None:
        return parsed.jobs
    parsed.note(f"job {guessed.id} has ended, but in the future: such ends are not believed")
    return [msgspec.structs.replace(job, end=None) if job.end and job.end > latest else job for job in parsed.jobs]


def _refuse_age(as_of: datetime | None, max_age: timedelta, now: datetime) -> None:
    if as_of is None:
        return
    if as_of > now + FUTURE:
        raise Unreadable(f"is dated {_span(as_of - now)} in the future; one of the two clocks is wrong")
    if now - as_of > max_age:
        raise Unreadable(f"is {_span(now - as_of)} old, allowed are {_span(max_age)} (max_age); is its writer alive?")


def _span(length: timedelta) -> str:
    minutes = int(length.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
