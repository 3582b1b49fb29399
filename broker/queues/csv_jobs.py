"""CSV in the normal form: a header line, then one job a line; comma, semicolon, tab or bar between."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from broker.model.job import Job
from broker.queues.normal import FIELDS, READ, REQUIRED, field, flat, job
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest

DELIMITERS = ",;\t|"
_BREAK = re.compile(r"[\r\n]")
RENAME = (
    "id, submit and gpus are required: rename columns, or say which they are, as in "
    '`columns = { gpus = "GPU count" }` of the [[queue]] or `broker jobs --column gpus="GPU count"`'
)
_MODEL = {"gpus": " for their number, and call the model gpu_type"}


def suits(head: str) -> str:
    """Why this looks like CSV, "" if it does not."""
    columns = _head(head)
    missing = [name for name in REQUIRED if name not in columns]
    return "" if missing else f"its first line names the columns {', '.join(REQUIRED)}"


def is_table(head: str) -> bool:
    """Whether the first line has several columns, whatever they are called."""
    first_line = head.partition("\n")[0]
    return len(first_line.split(delimiter(first_line))) > 2 and not first_line.startswith(("{", "["))


def lacks(head: str) -> list[str]:
    """The required columns that are missing from what is a table of jobs all the same, by two of its columns."""
    columns = _head(head)
    return [name for name in REQUIRED if name not in columns] if len(columns.intersection(FIELDS)) > 1 else []


def _head(head: str) -> set[str]:
    first_line = head.partition("\n")[0]
    return {field(name.strip().strip('"')) for name in first_line.split(delimiter(first_line))}


def naming(columns: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """The field that a column fills, where `columns` are pairs of a field and its column's own name.

    Raises Unreadable for a field that there is not.
    """
    own = {theirs.strip().lower(): ours.strip().lower() for ours, theirs in columns}
    strange = [ours for ours in own.values() if ours not in READ]
    if strange:
        raise Unreadable(f"is given columns for {', '.join(strange)}; the fields are {', '.join(sorted(READ))}")
    taken = frozenset(own.values())

    def named(header: str) -> str:
        given = own.get(header.strip().lower())
        usual = field(header)
        return given or (usual if usual not in taken else header.strip())

    return named


def delimiter(first_line: str) -> str:
    return max(DELIMITERS, key=first_line.count)


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    return read_named(text, context, naming(context.columns))


def read_named(text: str, context: Context, named: Callable[[str], str]) -> Parsed:
    """The same of a table whose columns have other names: `named` says which field one fills. Raises Unreadable."""
    first_line, line_end, _ = text.lstrip("\r\n").partition("\n")
    parsed = Parsed()
    rows = csv.reader(io.StringIO(text.lstrip("\r\n")), delimiter=delimiter(first_line), strict=True)
    columns = _columns(rows, bool(line_end), named, parsed)
    jobs = list(_jobs(rows, columns, context, parsed))
    if not text.endswith(("\n", "\r")):
        parsed.damage("the last line has no line end: the file may be cut off there; end it with a line end")
    parsed.jobs = latest(jobs, parsed)
    return parsed


def stream(lines: Iterator[str], context: Context, parsed: Parsed) -> Iterator[Job]:
    """Jobs one by one, doubles among them, from lines with their ends. Raises Unreadable."""
    first_line = next((line for line in lines if line.strip()), "")
    rows = csv.reader(chain([first_line], lines), delimiter=delimiter(first_line), strict=True)
    columns = _columns(rows, first_line.endswith(("\n", "\r")), naming(context.columns), parsed)
    return _jobs(rows, columns, context, parsed)


def write(jobs: Iterable[Job]) -> str:
    """Reads back as the same jobs."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in flat(item).items()} for item in jobs)
    return out.getvalue()


def cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(_quoted(item) for item in value) + "]" if isinstance(value, list) else value


def _quoted(item: str) -> str:
    return json.dumps(item)


def _columns(rows: Iterator[list[str]], ended: bool, named: Callable[[str], str], parsed: Parsed) -> list[str]:
    try:
        header = next(rows)
    except (StopIteration, csv.Error):
        raise Unreadable("has no header line; is it CSV?") from None
    if any(_BREAK.search(name) for name in header):
        raise Unreadable("has a header that goes on over the next line: a quote is not closed")
    columns = [named(name) for name in header]
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise Unreadable(f"has no column {', '.join(missing)}; {RENAME}; it has {', '.join(header)[:200]}")
    if not ended:
        raise Unreadable("ends within its header line: it is cut off, or still being written")
    for twice in sorted({name for name in columns if name and columns.count(name) > 1}):
        those = [given.strip() for given, name in zip(header, columns, strict=True) if name == twice]
        raise Unreadable(f"has two columns for {twice} ({', '.join(those)}); keep one{_MODEL.get(twice, '')}")
    unknown = [name for name in columns if name not in READ]
    if unknown:
        parsed.note(f"columns not used: {', '.join(unknown[:8])}")
    return columns


def _jobs(rows: Iterator[list[str]], columns: list[str], context: Context, parsed: Parsed) -> Iterator[Job]:
    number = 1
    while True:
        number += 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            parsed.quarantine(f"row {number}", Unfit(f"is broken CSV: {error}"))
            continue
        if not any(cell.strip() for cell in row):
            continue
        try:
            if len(row) != len(columns):
                raise Unfit(f"has not the {len(columns)} columns of the header", f"{len(row)} columns")
            _refuse_swallowed(row)
            yield job(dict(zip(columns, row, strict=True)), context, f"{context.ref}:{number}", parsed)
        except Unfit as unfit:
            parsed.quarantine(f"row {number}", unfit)
        except Unwanted as unwanted:
            parsed.drop(unwanted)


def _refuse_swallowed(row: list[str]) -> None:
    """Two stray quotes make one cell of all that stands between them. Raises Unfit."""
    for cell in row:
        if "\n" in cell or "\r" in cell:
            longest = max(max(map(line.count, DELIMITERS)) for line in cell.splitlines())
            if longest >= len(row) - 1:
                raise Unfit("holds what looks like another row: is a quote missing?", cell)
