"""How one record of a queue became our job: its raw fields, and what each of ours depends on.

Nothing here knows any format. The record is read alone, again and again, each time with one raw field taken out; what
changes in our job hangs on that field. So the explanation is what the reader does, not what somebody wrote about it.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from broker.model.job import Job
from broker.queues import registry
from broker.queues.parsed import Context, Parsed, Unreadable

_INDEXED = re.compile(r"(?:.*:)?(\w*)\[(\d+)\]$")
_NUMBERED = re.compile(r"(?:.*:)?(\d+)$")
_TEXT_FIELD = re.compile(r"(?:^|\s)([A-Z][\w/:.]*)=(.*?)(?=\s[A-Z][\w/:.]*=|$)")
_DELIMITERS = ",;\t|"
_MOST_FIELDS = 400
NEEDED = "needed"
"""Stands for our fields where without the raw one there would be no job."""

Path = tuple[str | int, ...]


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


def explained(job: Job, format: str, text: str, context: Context) -> Explained:
    """`job` was read from `text`."""
    record = _record(registry.plain(format, text).document, job.raw_ref)
    return Explained(job=job, format=format, raw=tuple(_raws(record, job.id, format, context)) if record else ())


class _Record(msgspec.Struct, frozen=True):
    """A record by itself: `fields` by path, and how to write a text that holds it alone, without one of them."""

    kind: str
    value: Any
    frame: Any

    def fields(self) -> Iterator[tuple[Path, Any]]:
        if self.kind == "json":
            yield from _leaves(self.value, ())
        else:
            yield from (((name,), cell) for name, cell in self.value.items() if cell)

    def text(self, without: Path | None = None) -> str:
        if self.kind == "json":
            value = self.value if without is None else _without(self.value, without)
            return json.dumps([value] if self.frame is None else self.frame[1] | {self.frame[0]: [value]})
        cells = self.value if without is None else self.value | {str(without[0]): ""}
        if self.kind == "named":
            return " ".join(f"{name}={cell or '(null)'}" for name, cell in cells.items()) + "\n"
        return _table([list(cells), list(cells.values())], self.frame)


def _record(text: str, ref: str) -> _Record | None:
    if match := _INDEXED.match(ref):
        return _in_document(text, match[1], int(match[2]))
    match = _NUMBERED.match(ref)
    lines = text.splitlines()
    if not match or not 0 < int(match[1]) <= len(lines):
        return None
    return _at_line(lines, int(match[1]) - 1)


def _in_document(text: str, name: str, index: int) -> _Record | None:
    """An item of a JSON document."""
    try:
        document = json.loads(text)
        value = document[name][index] if name else document[index]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    rest = {key: each for key, each in document.items() if key != name} if isinstance(document, dict) else None
    return _Record("json", value, None if rest is None else (name, rest))


def _at_line(lines: list[str], at: int) -> _Record | None:
    line = lines[at]
    if line.startswith("{"):
        try:
            return _Record("json", json.loads(line), None)
        except (ValueError, RecursionError):
            return None
    if line.startswith("JobId="):
        end = next((n for n in range(at + 1, len(lines)) if not lines[n][:1].isspace()), len(lines))
        whole = " ".join(part.strip() for part in lines[at:end])
        return _Record("named", dict(_TEXT_FIELD.findall(whole)), None)
    header = next((each for each in lines if each.strip()), "")
    mark = max(_DELIMITERS, key=header.count)
    names, cells = _cells(header, mark), _cells(line, mark)
    return _Record("table", dict(zip(names, cells, strict=True)), mark) if len(names) == len(cells) > 1 else None


def _cells(line: str, mark: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return []


def _table(rows: list[list[str]], mark: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=mark, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """What a reader may look at: scalars, lists of them, and numbers in their struct."""
    if isinstance(value, dict) and value and "infinite" not in value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    elif path and value not in (None, "", [], {}):
        yield path, value


def _without(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        inner = {key: each for key, each in value.items() if key != path[0]}
        return inner if len(path) == 1 else inner | {path[0]: _without(value[path[0]], path[1:])}
    assert isinstance(value, list)
    return [_without(each, path[1:]) if index == path[0] and len(path) > 1 else each
            for index, each in enumerate(value)]  # fmt: skip


def _raws(record: _Record, identity: str, format: str, context: Context) -> Iterator[Raw]:
    """None where the record makes no such job by itself."""
    whole = _read(record.text(), identity, format, context)
    for number, (path, value) in enumerate(record.fields()):
        if number == _MOST_FIELDS or not whole:
            return
        makes = _changes(whole, _read(record.text(path), identity, format, context))
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
