"""How one record of a queue became our job: its raw fields, and what each of ours depends on.

Nothing here knows any format. The record is read alone, again and again, each time with one raw field taken out; what
changes in our job hangs on that field. So the explanation is what the reader does, not what somebody wrote about it.
"""

import json
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from broker.model.job import Job
from broker.queues import raw_records, registry
from broker.queues.parsed import Context, Parsed, Unreadable
from broker.queues.raw_records import Record

_MOST_FIELDS = 400
NEEDED = "needed"
"""Stands for our fields where without the raw one there would be no job."""


class Raw(msgspec.Struct, frozen=True):
    """One field of the source: where, what, and which of our fields hang on it."""

    name: str
    value: str
    makes: tuple[str, ...]


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
    for number, (path, value) in enumerate(record.fields()):
        if number == _MOST_FIELDS:
            return
        makes = _changes(whole, _read(record.text(path), whole.id, format, context))
        yield Raw(".".join(map(str, path)), _shown(value), makes)


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
