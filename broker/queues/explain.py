"""How one record of a queue became our job: its raw fields, and what each of ours depends on.

Nothing here knows any format. The record is read alone, again and again, each time with one raw field taken out; what
changes in our job hangs on that field. Then with two taken out, for what two of them say alike. So the explanation is
what the reader does, not what somebody wrote about it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, islice
from typing import Any

import msgspec
from msgspec.structs import replace

from broker.model.job import Job
from broker.queues import raw_records, registry
from broker.queues.parsed import Context, Parsed, Unreadable
from broker.queues.raw_records import Path, Record

_MOST_FIELDS = 400
_MOST_PAIRED = 60
NEEDED = "needed"
"""Stands for our fields where without the raw one there would be no job."""


class Raw(msgspec.Struct, frozen=True):
    """One field of the source: where, what, and which of our fields hang on it.

    `shares` are those that hang on it only where another one, which says the same, is missing too.
    """

    name: str
    value: str
    makes: tuple[str, ...]
    shares: tuple[str, ...] = ()


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """`raw` is empty where the source's records cannot be looked at one by one."""

    job: Job
    format: str
    raw: tuple[Raw, ...]


def explained(job: Job, format: str, text: str, context: Context, taken: Collection[str] = ()) -> Explained:
    """`job` was read from `text`, whose records that became jobs are `taken`, by `raw_ref`."""
    found = _record(job, format, text, context, taken)
    return Explained(job=job, format=format, raw=() if found is None else tuple(_raws(*found, format, context)))


def _record(
    job: Job, format: str, text: str, context: Context, taken: Collection[str]
) -> tuple[Record, Job] | None:  # fmt: skip
    """The job's record and what is made of it by itself; beside others only where those make it what it is."""
    found = []
    for record in raw_records.candidates(format, text, job.raw_ref, taken):
        made = _read(record.text(), job.id, format, context)
        if made is not None and _same(made, job):
            return record, made
        found += [] if made is None else [(record, made)]
    return found[0] if found else None


def _same(made: Job, job: Job) -> bool:
    return replace(made, raw_ref=job.raw_ref) == job


def _raws(record: Record, whole: Job, format: str, context: Context) -> Iterator[Raw]:
    def without(*paths: Path) -> tuple[str, ...]:
        return _changes(whole, _read(record.text(*paths), whole.id, format, context))

    fields = dict(islice(record.fields(), _MOST_FIELDS))
    makes = {path: without(path) for path in fields}
    silent = [path for path, made in makes.items() if not made]
    shares = {} if record.beside else _shared(silent[:_MOST_PAIRED], without)
    for path, value in fields.items():
        yield Raw(".".join(map(str, path)), _shown(value), makes[path], shares.get(path, ()))


def _shared(silent: Sequence[Path], without: Callable[[Path, Path], tuple[str, ...]]) -> dict[Path, tuple[str, ...]]:
    """What hangs on two fields together of which each is enough."""
    found: dict[Path, dict[str, None]] = {}
    for one, other in combinations(silent, 2):
        for name in without(one, other):
            found.setdefault(one, {})[name] = found.setdefault(other, {})[name] = None
    return {path: tuple(names) for path, names in found.items()}


def _read(text: str, identity: str, format: str, context: Context) -> Job | None:
    try:
        parsed: Parsed = registry.read(format, text, context)
    except Unreadable:
        return None
    return next((job for job in parsed.jobs if job.id == identity), None)


def _changes(whole: Job, less: Job | None) -> tuple[str, ...]:
    if less is None:
        return (NEEDED,)
    names = (name for name in Job.__struct_fields__ if name not in ("raw_ref", "source"))
    return tuple(name for name in names if getattr(whole, name) != getattr(less, name))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
