"""`broker history import`: files into the history, each once, in any order."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from broker.history import lines, sources
from broker.history.job_facts import fact
from broker.history.sacct_rows import Batch
from broker.model.job import Job
from broker.model.snapshot import SourceView, Trust
from broker.queues.parsed import Context, Parsed, TooLarge, Unreadable
from broker.queues.registry import Detected
from state.encode import to_us
from state.history.facts import LIVE
from state.history.store import History
from state.history.writing import Writer

READING = 1
"""Part of what a file is remembered by: raised when files are read differently, so that they can be imported anew."""
_ROWS = 75_000
_JOBS = 10_000


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How files are read. `cluster` and `tenant` are of jobs that name none, `timezone` of times that carry none.

    `procs_per_gpu` is for logs that count only processors, `epoch` for those that do not say when they began.
    """

    format: str = "auto"
    cluster: str = ""
    tenant: str = ""
    timezone: str | None = None
    procs_per_gpu: int = 0
    epoch: datetime | None = None


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """rows = kept + merged + dropped + quarantined; of the kept ones `changed` told something new.

    `known`: the very same file was in already, and nothing was read. `forgotten` ended before what is kept.
    """

    file: str
    format: str = ""
    why: str = ""
    known: bool = False
    failed: bool = False
    rows: int = 0
    kept: int = 0
    changed: int = 0
    forgotten: int = 0
    merged: int = 0
    dropped: int = 0
    quarantined: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()


def import_file(path: Path, options: Options, history: History, now: datetime) -> Imported:
    """Never raises for anything that is wrong with the file. Raises StateError."""
    try:
        return _imported(path, options, history, now)
    except TooLarge as why:
        return Imported(file=str(path), failed=True, problems=(_shown(f"{path} {why}; import it in parts"),))
    except Unreadable as why:
        return Imported(file=str(path), failed=True, problems=(_shown(f"{path} {why}"),))


def import_view(view: SourceView, history: History, now: datetime) -> Imported:
    """A configured queue as it was read now: what it holds is added, nothing is taken for gone. Raises StateError."""
    if view.trust is Trust.UNKNOWN:
        return Imported(file=view.source, failed=True, problems=view.problems)
    with history.importing() as writer:
        for some in _portions(view.jobs):
            facts = [fact(job, writer.words) for job in some]
            writer.add([each for each in facts if each.told != LIVE], [each for each in facts if each.told == LIVE])
        writer.finish(to_us(min(view.as_of or now, now)))
        return Imported(
            file=view.source,
            format="queue",
            why="a configured queue has this name",
            rows=view.rows,
            kept=view.kept,
            changed=writer.changed,
            forgotten=writer.forgotten,
            merged=view.merged,
            dropped=view.dropped,
            quarantined=view.quarantined,
            problems=view.problems,
        )


def _imported(path: Path, options: Options, history: History, now: datetime) -> Imported:
    before = lines.mark(path)
    digest = lines.digest(path, f"{READING} {msgspec.json.encode(options).decode()}")
    if history.has_file(digest):
        return Imported(file=str(path), known=True)
    found = sources.detected(path, options.format)
    parsed = Parsed()
    with history.importing() as writer:
        told = sources.read(path, found.name, _context(path, options), writer.words, parsed)
        kept, newest = _written(told, writer)
        if not kept and parsed.quarantined:
            raise Unreadable(f"holds no row that can be used: {'; '.join(parsed.account())[:300]}{_hint(parsed)}")
        as_of = newest if parsed.as_of is None else to_us(parsed.as_of)
        writer.finish(min(as_of, to_us(now)))
    if lines.mark(path) == before:
        history.record_file(digest, path.name, to_us(now), kept)
    else:
        parsed.note("changed while it was read; import it again when it is whole")
    return _account(path, found, kept, writer, parsed)


def _portions(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    return (jobs[first : first + _JOBS] for first in range(0, len(jobs), _JOBS))


def _context(path: Path, options: Options) -> Context:
    zone = ZoneInfo(options.timezone) if options.timezone else None
    return Context(path.name, options.cluster, options.tenant, zone, path.name, options.procs_per_gpu, options.epoch)


def _written(told: Iterator[sources.Told], writer: Writer) -> tuple[int, int]:
    """(rows kept, the latest time that any speaks of); a transaction for each so many rows."""
    kept, newest, waiting = 0, 0, Batch([], [], [])
    for batch, newest in told:  # noqa: B007 - the last one counts
        for held, more in zip(waiting, batch, strict=True):
            held.extend(more)
        if sum(map(len, waiting)) >= _ROWS:
            kept += _add(waiting, writer)
    return kept + _add(waiting, writer), newest


def _add(waiting: Batch, writer: Writer) -> int:
    writer.add(*waiting)
    count = len(waiting.ended) + len(waiting.live)
    for held in waiting:
        held.clear()
    return count


def _account(path: Path, found: Detected, kept: int, writer: Writer, parsed: Parsed) -> Imported:
    dropped, quarantined = parsed.dropped.total(), parsed.quarantined.total()
    return Imported(
        file=str(path),
        format=found.name,
        why=found.why,
        rows=kept + parsed.merged + dropped + quarantined,
        kept=kept,
        changed=writer.changed,
        forgotten=writer.forgotten,
        merged=parsed.merged,
        dropped=dropped,
        quarantined=quarantined,
        reasons=tuple((parsed.dropped + parsed.quarantined).most_common()),
        problems=tuple(_shown(f"{path.name}: {line}{_hint(parsed)}") for line in parsed.account()),
    )


def _hint(parsed: Parsed) -> str:
    """What the configuration calls timezone is a flag here."""
    return " (here: --tz Europe/Zurich)" if any("without a zone" in reason for reason in parsed.quarantined) else ""


def _shown(sentence: str) -> str:
    """One line, without the control characters that a file may hold: it is shown on terminals."""
    return "".join(letter if letter.isprintable() else "?" for letter in sentence)
