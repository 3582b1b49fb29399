"""One HTML file that needs no other: no script, no style sheet, no picture from elsewhere."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from broker.errors import UsageError
from state.whole_file import holds_else

_DOCTYPE = "<!doctype html>"
_STYLE = (
    "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}td.n,th.n{text-align:right}"
    "tr:last-child td{font-weight:bold}"
)


def page(title: str, parts: Sequence[str]) -> str:
    """`parts` are HTML already."""
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"{_DOCTYPE}<html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """The last row is the total."""
    lines = [_row("th", header, right), *(_row("td", row, right) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def may_be_saved(path: Path) -> None:
    """Before long work is done for it. Raises UsageError."""
    with _plainly(path):
        _spare(path)
        if not path.exists() or path.is_file():
            _beside(path).touch()
            _beside(path).unlink()


def save(path: Path, html: str) -> None:
    """Whole or not at all, over an older page and over no other file. Raises UsageError."""
    with _plainly(path):
        _spare(path)
        if path.exists() and not path.is_file():
            path.write_text(html, encoding="utf-8")
            return
        _beside(path).write_text(html, encoding="utf-8")
        _beside(path).replace(path)


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            _beside(path).unlink()
        raise UsageError(f"cannot write {path}: {error.strerror}", next_step="Give another --html") from None


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _spare(path: Path) -> None:
    """A mistyped name costs no file."""
    if holds_else(path, lambda begun: begun.lower().startswith(_DOCTYPE.encode())):
        raise UsageError(f"{path} is there already and is no page", next_step="Give another --html")


def _row(kind: str, cells: Sequence[str], right: frozenset[int]) -> str:
    classes = [" class='n'" if index in right else "" for index in range(len(cells))]
    return (
        f"<tr>{''.join(f'<{kind}{of}>{escape(cell)}</{kind}>' for of, cell in zip(classes, cells, strict=True))}</tr>"
    )
