"""Reading small CSV tables strictly: one error that names the file, the line and what to do."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from broker import regular
from broker.errors import InputError

Row = dict[str, str]
T = TypeVar("T")


def read_rows(path: Path, columns: tuple[str, ...], parse: Callable[[Row], T]) -> tuple[T, ...]:
    """Every row through `parse`, whose ValueError is reported with its line. Raises InputError, once, for the first
    mistake, with the count of the others.
    """
    parsed: list[T] = []
    mistakes: list[str] = []
    for line, row in _numbered(path, columns):
        try:
            parsed.append(parse(row))
        except ValueError as error:
            mistakes.append(f"line {line}: {error}")
    if mistakes:
        others = f" (and {len(mistakes) - 1} more lines like it)" if len(mistakes) > 1 else ""
        raise InputError(f"{path}: {mistakes[0]}{others}", next_step="Correct the file; nothing was read from it")
    return tuple(parsed)


def _numbered(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(_text(path).splitlines())
    try:
        header = [name.strip().lower() for name in reader.fieldnames or ()]
        missing = [column for column in columns if column not in header]
        if missing:
            raise _unusable(
                path, f"has no column {', '.join(missing)}", f"Its first line must name {','.join(columns)}"
            )
        reader.fieldnames = header
        for row in reader:
            yield reader.line_num, _complete(path, reader.line_num, row)
    except csv.Error as error:
        raise _unusable(path, f"is not CSV: {error}", "Save it as comma-separated UTF-8 text") from error


def _text(path: Path) -> str:
    try:
        regular.require(path)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}", "Check the path and its permissions") from error
    except UnicodeDecodeError as error:
        raise _unusable(path, "is not UTF-8 text", "Save it as comma-separated UTF-8 text") from error


def _complete(path: Path, line: int, row: Row) -> Row:
    """csv marks surplus fields with the key None and absent ones with the value None, whatever its types say."""
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in row.items()):
        raise _unusable(path, f"line {line} has not as many fields as the first line", "Is the file cut off?")
    return {name: value.strip() for name, value in row.items()}


def _unusable(path: Path, what: str, next_step: str) -> InputError:
    return InputError(f"{path} {what}", next_step=next_step)
