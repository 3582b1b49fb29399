"""JSON Lines in the normal form: one object a line. A JSON array of such objects is read as well.

A first line `{"meta": {"jobs": 12, "as_of": "2026-03-04T14:00:00Z"}}` says how many jobs follow, so that a file that
is cut off shows, and an empty queue can be told from a broken one.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from broker.model.job import Job
from broker.queues.normal import READ, field, flat, job
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest
from broker.queues.times import moment

_ARRAY = re.compile(r"\[\s*(?:[{\]]|$)")
"""Many a log line begins with a bracket, too."""
_ENCODE = msgspec.json.Encoder()


def suits(head: str) -> str:
    """Why this looks like JSON Lines, "" if it does not."""
    first_line = head.partition("\n")[0].rstrip()
    if first_line.startswith("{") and first_line.endswith("}"):
        return "each line is a JSON object"
    return "it is a JSON array" if _ARRAY.match(first_line) else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    records = _records(text, parsed)
    begun = len(records)
    stated = _meta(records, context, parsed)
    jobs = list(_jobs(records, context, parsed))
    parsed.jobs = latest(jobs, parsed)
    if begun and stated is None and not parsed.rows:
        raise Unreadable('holds no job; an empty queue is the line {"meta": {"jobs": 0}}')
    if stated is not None and stated != parsed.rows:
        parsed.damage(f"its first line announces {stated} jobs, but {parsed.rows} follow: it is cut off")
    return parsed


def stream(lines: Iterable[str], context: Context, parsed: Parsed) -> Iterator[Job]:
    """Jobs one by one, doubles among them; one object a line."""
    records = ((number, _object(line, number, parsed)) for number, line in enumerate(lines, 1) if line.strip())
    usable = ((number, record) for number, record in records if record is not None)
    first = list(islice(usable, 1))
    _meta(first, context, parsed)
    return _jobs(chain(first, usable), context, parsed)


def write(jobs: Iterable[Job]) -> str:
    """Reads back as the same jobs."""
    lines = [_ENCODE.encode(flat(item)).decode() for item in jobs]
    return "\n".join(['{"meta":{"jobs":%d}}' % len(lines), *lines]) + "\n"  # noqa: UP031 - braces are JSON's here


def _records(text: str, parsed: Parsed) -> list[tuple[int, Any]]:
    """(line or item number, object)."""
    if text.lstrip().startswith("["):
        return _array(text)
    found = [(number, _object(line, number, parsed)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise Unreadable('is empty; an empty queue is the line {"meta": {"jobs": 0}}')
    return [(number, record) for number, record in found if record is not None]


def _array(text: str) -> list[tuple[int, Any]]:
    try:
        return list(enumerate(msgspec.json.decode(text), 1))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"is not whole JSON ({error}): cut off, or still being written") from None


def _object(line: str, number: int, parsed: Parsed) -> Any:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        parsed.quarantine(f"line {number}", Unfit("is not whole JSON (cut off, or still being written?)", line))
        return None
    if found is None:
        parsed.quarantine(f"line {number}", Unfit("is not a JSON object", "null"))
    return found


def _meta(records: list[tuple[int, Any]], context: Context, parsed: Parsed) -> int | None:
    """Takes the announcement off the records; returns how many jobs it announces."""
    if not records or not isinstance(records[0][1], dict) or not isinstance(records[0][1].get("meta"), dict):
        return None
    meta = records.pop(0)[1]["meta"]
    try:
        parsed.as_of = moment(meta.get("as_of"), context.zone)
    except Unfit as unfit:
        raise Unreadable(f"its as_of {unfit.reason}") from None
    stated = meta.get("jobs")
    return stated if type(stated) is int else None


def _jobs(records: Iterable[tuple[int, Any]], context: Context, parsed: Parsed) -> Iterator[Job]:
    unknown: dict[str, None] = {}
    for number, raw in records:
        try:
            if not isinstance(raw, dict):
                raise Unfit("is not a JSON object", raw)
            record = {field(name): value for name, value in raw.items()}
            unknown.update(dict.fromkeys(name for name in record if name not in READ))
            yield job(record, context, f"{context.ref}:{number}", parsed)
        except Unfit as unfit:
            parsed.quarantine(f"line {number}", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)
    if unknown:
        parsed.note(f"keys not used: {', '.join(list(unknown)[:8])}")
