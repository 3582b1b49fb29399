"""The JSON document that `squeue --json`, `sacct --json` and slurmrestd answer with: jobs, errors, freshness."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from broker.queues import slurm_record
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted
from broker.queues.slurm_record import Draft, Record

_JOBS = re.compile(r'"jobs"\s*:\s*(?:\[|null)')
_ERRORS = re.compile(r'"(?:errors|meta)"\s*:\s*[\[{]')
_ACCOUNTING = re.compile(
    r'"command"\s*:\s*\[\s*"(?:\S*/)?sacct"|"association"\s*:\s*\{|"time"\s*:\s*\{|"allocation_nodes"\s*:'
)


class Answer(msgspec.Struct):
    """Records stay raw so that one bad record costs only itself."""

    jobs: list[msgspec.Raw] | None = None
    errors: list[Any] | None = None
    warnings: list[Any] | None = None
    last_update: Any = None
    last_backfill: Any = None


_ANSWER = msgspec.json.Decoder(Answer)


def is_document(head: str) -> bool:
    """Whether a text begins like Slurm's JSON: an object with "jobs", or one that only reports errors."""
    first_line = head.partition("\n")[0].rstrip()
    one_a_line = first_line.endswith("}") and len(first_line) > 2 and not _JOBS.search(first_line)
    return head.startswith("{") and bool(_JOBS.search(head) or _ERRORS.search(head)) and not one_a_line


def is_accounting(head: str) -> bool:
    """Whether the records are those of slurmdbd (`sacct`), which nest what slurmctld's (`squeue`) keep flat."""
    return bool(_ACCOUNTING.search(head))


def read(text: str, parsed: Parsed, ask: str, server: str) -> list[msgspec.Raw]:
    """The raw records; sets their freshness. `ask` and `server`: what to run and to look at. Raises Unreadable."""
    answer = _answer(text)
    _refuse_errors(answer, server)
    if answer.jobs is None:
        raise Unreadable(f'has no "jobs"; is it the whole output of {ask}?')
    parsed.as_of = _freshness(answer)
    return answer.jobs


def drafts(
    raws: list[msgspec.Raw], decode: Callable[[msgspec.Raw], Record], context: Context, parsed: Parsed
) -> Iterator[Draft]:
    """Of every record that is a job with GPUs; all others are accounted for."""
    for index, raw in enumerate(raws):
        try:
            yield slurm_record.draft(decode(raw), context, f"{context.ref}:jobs[{index}]", parsed)
        except (msgspec.DecodeError, RecursionError) as error:
            parsed.quarantine(f"jobs[{index}]", Unfit("is not a job record", error))
        except Unfit as unfit:
            parsed.quarantine(f"jobs[{index}]", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)


def _answer(text: str) -> Answer:
    """Raises Unreadable."""
    try:
        return _ANSWER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _broken(text, error) from None


def _broken(text: str, error: Exception) -> Unreadable:
    first_line = text.strip().partition("\n")[0][:80]
    if first_line.startswith("{"):
        return Unreadable(f"is not whole JSON ({error}): cut off, or still being written")
    return Unreadable(f'is not JSON; it begins with "{first_line}"')


def _refuse_errors(answer: Answer, server: str) -> None:
    """An error beside an empty list is no empty queue."""
    if answer.errors:
        first = answer.errors[0]
        said = first.get("description") or first.get("error") or first if isinstance(first, dict) else first
        raise Unreadable(f"reports an error: {str(said)[:160]}; ask {server}")


def _freshness(answer: Answer) -> datetime | None:
    """When slurmctld last changed or weighed a job."""
    times = [_epoch(answer.last_update), _epoch(answer.last_backfill)]
    return max((at for at in times if at), default=None)


def _epoch(raw: Any) -> datetime | None:
    try:
        seconds = slurm_record.number(raw)
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (Unfit, OverflowError, ValueError, OSError):
        return None
