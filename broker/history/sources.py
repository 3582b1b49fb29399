"""One history file as batches of rows, whatever its format: streamed where it can be large."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from broker.history import lines
from broker.history.job_facts import fact, newest
from broker.history.sacct_rows import Batch, SacctRows
from broker.model.job import Job
from broker.queues import bounds, csv_jobs, encoding, jsonl_jobs, registry
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable
from broker.queues.registry import Detected, detect
from state.encode import from_us
from state.history.facts import LIVE, Fact
from state.history.words import Words

MOST_BYTES = 512 * 2**20
"""A format that cannot be read piece by piece is read as a whole, up to this size."""
_BY_LINES = frozenset({"sacct", "csv", "jsonl"})
_CHUNK = 10_000
_ENDED = Fact._fields.index("ended")
_DAY_US = 86_400_000_000
_TODAY = "all jobs that ended did so on one day: without -S, sacct shows only those since 00:00"
_CUT = Unfit("has no line end: the file is cut off there")


class Told(NamedTuple):
    """Rows, and the latest time that the source has spoken of so far."""

    batch: Batch
    newest: int


def detected(path: Path, wanted: str) -> Detected:
    """The format, and why it is taken for that. Raises Unreadable."""
    if wanted != "auto":
        return Detected(wanted, "as told")
    try:
        return detect(lines.head(path))
    except Unreadable:
        return detect(_whole(path))


def read(path: Path, format_name: str, context: Context, words: Words, parsed: Parsed) -> Iterator[Told]:
    """Rows that cannot be used are accounted for in `parsed`. Raises Unreadable, before there is any row."""
    if format_name not in _BY_LINES or (format_name == "jsonl" and lines.head(path).lstrip().startswith("[")):
        return _streamed(_at_once(path, format_name, context, parsed), words, parsed)
    lines.check(path)
    if format_name == "sacct":
        return _sacct(path, context, words, parsed)
    if format_name == "csv":
        return _streamed(csv_jobs.stream(_ended(path, parsed, "\n"), context, parsed), words, parsed)
    return _streamed(jsonl_jobs.stream(chain.from_iterable(lines.batches(path)), context, parsed), words, parsed)


def _sacct(path: Path, context: Context, words: Words, parsed: Parsed) -> Iterator[Told]:
    pieces = _with_last(lines.batches(path))
    first, alone = next(pieces)
    skipped = next((at for at, line in enumerate(first) if line.strip()), 0)
    rows = SacctRows(first[skipped], context, words, parsed, cut=alone)
    number, oldest = skipped + 2, None
    for piece, is_last in chain([(first[skipped + 1 :], False)], pieces):
        if is_last:
            _cut_off(piece[0], parsed)
        else:
            batch = rows.take(piece, number)
            oldest = _oldest_end(batch, oldest, rows.newest)
            yield Told(batch, rows.newest)
            number += len(piece)
    if oldest and from_us(oldest) >= _midnight(from_us(rows.newest), context):
        parsed.note(_TODAY)


def _oldest_end(batch: Batch, oldest: int | None, newest: int) -> int | None:
    """Not looked for any further once it is more than a day back."""
    if oldest is not None and newest - oldest > _DAY_US:
        return oldest
    ends = [end for each in batch.ended if (end := each[_ENDED]) is not None]
    return min(ends if oldest is None else [oldest, *ends], default=None)


def _midnight(at: datetime, context: Context) -> datetime:
    return at.astimezone(context.zone or UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _with_last(pieces: Iterator[list[str]]) -> Iterator[tuple[list[str], bool]]:
    """Each with whether it is the last: what follows the last line end."""
    before = next(pieces)
    for piece in pieces:
        yield before, False
        before = piece
    yield before, True


def _cut_off(rest: str, parsed: Parsed) -> None:
    """A row without its end may lack digits: nothing of it can be believed."""
    if rest.strip():
        parsed.quarantine("the last line", Unfit(_CUT.reason, rest))


def _ended(path: Path, parsed: Parsed, end: str) -> Iterator[str]:
    for piece, is_last in _with_last(lines.batches(path)):
        if is_last:
            _cut_off(piece[0], parsed)
        else:
            yield from (f"{line}{end}" for line in piece)


def _at_once(path: Path, format_name: str, context: Context, parsed: Parsed) -> Iterator[Job]:
    found = registry.read(format_name, _whole(path), context)
    parsed.merged += found.merged
    parsed.dropped += found.dropped
    parsed.quarantined += found.quarantined
    parsed.examples |= found.examples
    parsed.notes += [note for note in found.notes if note not in parsed.notes]
    parsed.whole &= found.whole
    parsed.as_of = found.as_of
    yield from found.jobs


def _whole(path: Path) -> str:
    lines.mark(path)
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable(f"is larger than {MOST_BYTES >> 20} MiB; only sacct, CSV and JSON Lines may be")
    try:
        return encoding.text(path.read_bytes(), MOST_BYTES)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}; check the path and its mode") from None


def _streamed(jobs: Iterator[Job], words: Words, parsed: Parsed) -> Iterator[Told]:
    latest = 0
    while some := list(islice(jobs, _CHUNK)):
        chunk = bounds.within(some, parsed)
        latest = max([latest, *map(newest, chunk)])
        facts = [fact(job, words) for job in chunk]
        live = [each for each in facts if each.told == LIVE]
        yield Told(Batch([each for each in facts if each.told != LIVE], list(live), []), latest)
