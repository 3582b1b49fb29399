"""`squeue --json`, in all shapes that its data parsers have had.

Numbers come bare, as null, as text, or as `{set, infinite, number}`; states as text or as a list with flags. For a
job that waits, `start_time` and `end_time` are the scheduler's guess and are not used.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from broker.queues import slurm_record
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest
from broker.queues.slurm_links import linked
from broker.queues.slurm_record import Draft, Record

_RECORD = msgspec.json.Decoder(Record)


class _Answer(msgspec.Struct):
    """The document; records stay raw so that one bad record costs only itself."""

    jobs: list[msgspec.Raw] | None = None
    errors: list[Any] | None = None
    warnings: list[Any] | None = None
    last_update: Any = None
    last_backfill: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def suits(first_line: str) -> str:
    """Why this looks like `squeue --json`; the caller has seen `"jobs"` in the text."""
    return 'it is one JSON object with "jobs"' if first_line.lstrip().startswith("{") else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    answer = _answer(text, parsed)
    _refuse_errors(answer)
    if answer.jobs is None:
        raise Unreadable('has no "jobs"; is it the whole output of squeue --json?')
    parsed.as_of = _freshness(answer)
    drafts = list(_drafts(answer.jobs, context, parsed))
    parsed.jobs = latest(linked(drafts, parsed), parsed)
    return parsed


def _answer(text: str, parsed: Parsed) -> _Answer:
    """The JSON document; log lines that a site's wrapper prints around it are passed over, and said."""
    try:
        return _ANSWER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        start, end = text.find("\n{"), text.rfind("\n}")
        first = 0 if text.startswith("{") else start + 1
        if end < 0 or (first == 0 and not text.startswith("{")):
            raise _broken(text, error) from None
        parsed.note("lines around the JSON document were passed over")
        try:
            return _ANSWER.decode(text[first : end + 2])
        except (msgspec.DecodeError, RecursionError):
            raise _broken(text, error) from None


def _broken(text: str, error: Exception) -> Unreadable:
    first_line = text.strip().partition("\n")[0][:80]
    if first_line.startswith("{"):
        return Unreadable(f"is not whole JSON ({error}): cut off, or still being written")
    return Unreadable(f'is not JSON; it begins with "{first_line}"')


def _refuse_errors(answer: _Answer) -> None:
    """An error beside an empty list is no empty queue."""
    if answer.errors:
        first = answer.errors[0]
        said = first.get("description") or first.get("error") or first if isinstance(first, dict) else first
        raise Unreadable(f"reports an error: {str(said)[:160]}; ask slurmctld (scontrol ping)")


def _freshness(answer: _Answer) -> datetime | None:
    """When slurmctld last changed or weighed a job."""
    times = [_epoch(answer.last_update), _epoch(answer.last_backfill)]
    return max((at for at in times if at), default=None)


def _epoch(raw: Any) -> datetime | None:
    try:
        seconds = slurm_record.number(raw)
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (Unfit, OverflowError, ValueError, OSError):
        return None


def _drafts(records: list[msgspec.Raw], context: Context, parsed: Parsed) -> Iterator[Draft]:
    for index, raw in enumerate(records):
        try:
            record = _RECORD.decode(raw)
            yield from slurm_record.drafts(record, context, f"{context.ref}:jobs[{index}]", parsed)
        except msgspec.DecodeError as error:
            parsed.quarantine(f"jobs[{index}]", Unfit("is not a job record", error))
        except Unfit as unfit:
            parsed.quarantine(f"jobs[{index}]", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)
