"""One record of a queue as it is written: its fields by path, and a text that holds it without one of them."""

import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from functools import reduce
from typing import Any

import msgspec

from broker.queues.parsed import Parsed, Unreadable
from broker.queues.registry import FORMATS, plain

_INDEXED = re.compile(r"(?:.*:)?(\w*)\[(\d+)\]$")
_NUMBERED = re.compile(r"(?:.*:)?(\d+)$")
_TEXT_FIELD = re.compile(r"(?:^|\s)([A-Z][\w/:.]*)=(.*?)(?=\s[A-Z][\w/:.]*=|$)")
_DELIMITERS = ",;\t|"
_SWF = (
    "job", "submit", "wait", "run", "processors used", "cpu", "memory used", "processors", "time limit", "memory",
    "status", "user", "group", "program", "queue", "partition", "preceding job", "think time",
)  # fmt: skip
_MOST_BESIDE = 500

Path = tuple[str | int, ...]


class Record(msgspec.Struct, frozen=True):
    """`kind` is json, named (`name=value`), table (with a header) or log (SWF). `frame`: what else the text needs.

    `beside`: other records of a document that may say something about this one.
    """

    kind: str
    value: Any
    frame: Any = None
    beside: tuple[Any, ...] = ()

    def fields(self) -> Iterator[tuple[Path, Any]]:
        if self.kind == "json":
            yield from _leaves(self.value, ())
        else:
            yield from (((name,), cell) for name, cell in self.value.items() if cell)

    def text(self, *without: Path) -> str:
        if self.kind == "json":
            value = reduce(_without, without, self.value)
            listed = [value, *self.beside]
            return json.dumps(listed if self.frame is None else self.frame[1] | {self.frame[0]: listed})
        cells = self.value | {str(path[0]): "" for path in without}
        if self.kind == "named":
            return " ".join(f"{name}={cell or '(null)'}" for name, cell in cells.items()) + "\n"
        if self.kind == "log":
            return str(self.frame) + " ".join(cell or "-1" for cell in cells.values()) + "\n"
        return _table([list(cells), list(cells.values())], self.frame)


def candidates(format: str, text: str, ref: str, taken: Collection[str]) -> Iterator[Record]:
    """The record that `ref` names: alone, and beside others. `taken`: the refs of records that became jobs."""
    text = plain(format, text).document
    if match := _INDEXED.match(ref):
        yield from _in_document(format, text, match[1], int(match[2]), taken)
    elif match := _NUMBERED.match(ref):
        lines = text.splitlines()
        record = _at_line(lines, int(match[1]) - 1) if 0 < int(match[1]) <= len(lines) else None
        yield from [record] if record else []


def _in_document(format: str, text: str, name: str, index: int, taken: Collection[str]) -> Iterator[Record]:
    try:
        records, frame = _records(format, text, name)
        value = records[index]
    except (ValueError, LookupError, TypeError, RecursionError, Unreadable):
        return
    yield Record("json", value, frame)
    used = {int(match[2]) for ref in taken if (match := _INDEXED.match(ref))}
    beside = [each for at, each in enumerate(records) if at != index and at not in used]
    if beside:
        yield Record("json", value, frame, tuple(beside[:_MOST_BESIDE]))


def _records(format: str, text: str, name: str) -> tuple[list[Any], Any]:
    """All of them, and under which name they stand beside what else."""
    if listed := FORMATS[format].records:
        return listed(text, Parsed()), None
    document = json.loads(text)
    if not name:
        return document, None
    return document[name], (name, {key: each for key, each in document.items() if key != name})


def _at_line(lines: list[str], at: int) -> Record | None:
    line = lines[at]
    if line.startswith("{"):
        try:
            return Record("json", json.loads(line), None)
        except (ValueError, RecursionError):
            return None
    if line.startswith("JobId="):
        end = next((n for n in range(at + 1, len(lines)) if not lines[n][:1].isspace()), len(lines))
        whole = " ".join(part.strip() for part in lines[at:end])
        return Record("named", dict(_TEXT_FIELD.findall(whole)), None)
    if len(cells := line.split()) == len(_SWF) and not any(mark in line for mark in _DELIMITERS):
        head = "".join(f"{each}\n" for each in lines if each.startswith(";"))
        return Record("log", dict(zip(_SWF, cells, strict=True)), head)
    header = next((each for each in lines if each.strip()), "")
    mark = max(_DELIMITERS, key=header.count)
    names, cells = _cells(header, mark), _cells(line, mark)
    return Record("table", dict(zip(names, cells, strict=True)), mark) if len(names) == len(cells) > 1 else None


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
