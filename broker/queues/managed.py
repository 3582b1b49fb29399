"""What the readers of managed services share: records out of JSON, typed values, and an account of each record."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from broker.model.gpu import normalise
from broker.model.job import Job
from broker.queues.json_documents import documents
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest
from broker.queues.times import moment

Record = Mapping[str, Any]
_MOST = 10**6


def named(text: str, *keys: str) -> bool:
    """Whether one of the keys stands near the beginning, as JSON writes keys (not within a text)."""
    return re.search(rf'(?<!\\)"(?:{"|".join(keys)})"\s*:', text[: 1 << 16]) is not None


def listed(text: str, keys: tuple[str, ...], parsed: Parsed, single: str = "") -> list[Any]:
    """The records under the first of `keys`, in a bare list, or (with its key `single`) alone. Raises Unreadable."""
    found: list[Any] = []
    several = documents(text)
    if several.broken_at is not None:
        raise Unreadable("is not whole JSON: cut off, or still being written")
    for document in several.found:
        found += _records(document, keys, parsed, single)
    return found


def _records(document: Any, keys: tuple[str, ...], parsed: Parsed, single: str) -> list[Any]:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise Unreadable("is neither a list nor an object")
    if token := next((key for key in ("nextToken", "NextToken", "nextPageToken", "nextLink") if document.get(key)), ""):
        parsed.damage(f"holds one page of a longer list ({token})")
    for key in keys:
        if isinstance(document.get(key), list):
            return list(document[key])
    if single and single in document:
        return [document]
    said = document.get("message") or document.get("error") or document.get("detail")
    raise Unreadable(f"reports an error: {str(said)[:160]}" if said else f'has no "{keys[0]}"; is it the whole answer?')


def read(
    records: Iterable[Any], one: Callable[[Record, str], Iterable[Job]], context: Context, parsed: Parsed
) -> Parsed:
    """Every record through `one`, which may raise Unfit or Unwanted."""
    jobs: list[Job] = []
    for index, record in enumerate(records):
        where = f"[{index}]"
        try:
            if not isinstance(record, dict):
                raise Unfit("is not a JSON object", record)
            jobs += one(record, f"{context.ref}:{where}")
        except Unfit as unfit:
            parsed.quarantine(where, unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)
    parsed.jobs = latest(jobs, parsed)
    return parsed


def inner(record: Any, *path: str) -> Record:
    """The object at the end of the path; what is none counts as empty."""
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None
    return record if isinstance(record, dict) else {}


def sequence(record: Record, name: str) -> list[Record]:
    found = record.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text_of(record: Record, *names: str) -> str | None:
    """The first of these that says something."""
    found = (record.get(name) for name in names)
    return next((str(value) for value in found if isinstance(value, str | int) and str(value).strip()), None)


def count(record: Record, name: str, default: int = 0) -> int:
    """A whole number, also written as text. Raises Unfit."""
    value = record.get(name)
    if value is None or value == "":
        return default
    written = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or not written.isascii() or not written.isdigit() or len(written) > 15:
        raise Unfit(f"{name} is not a whole number", value)
    return int(written)


def size(record: Record, name: str, default: int = 0) -> int:
    """A number of GPUs or machines. Raises Unfit."""
    found = count(record, name, default)
    if found > _MOST:
        raise Unfit(f"{name} is a number that cannot be", found)
    return found


def when(record: Record, *names: str) -> datetime | None:
    """The first time that is stated. Raises Unfit."""
    for name in names:
        try:
            if (found := moment(_short(record.get(name)), None)) is not None:
                return found
        except Unfit as unfit:
            raise Unfit(f"{name} {unfit.reason}", unfit.value) from None
    return None


def _short(written: Any) -> Any:
    """Nanoseconds are cut to what our times hold."""
    return re.sub(r"(\.\d{6})\d+", r"\1", written) if isinstance(written, str) else written


def submitted(record: Record, *names: str) -> datetime:
    """Raises Unfit."""
    found = when(record, *names)
    if found is None:
        raise Unfit(f"has no {names[0]}", text_of(record, "name", "jobId", "job_id"))
    return found


def spelled(model: str | None) -> str | None:
    """A name that is new to us stays as it is."""
    return (normalise(model) or model.strip().lower()) if model and model.strip() else None
