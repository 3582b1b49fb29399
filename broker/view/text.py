"""Figures, times and columns as plain text. Identifiers are never wrapped, cut or abbreviated."""

import csv
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO

from broker.counted import number
from broker.report import Bounds

Paint = Callable[[str, str], str]
"""(text, colour name) -> text as it is to appear; colour is a second signal, never the only one."""


def plain(text: str, _colour: str) -> str:
    return text


def money(usd: Decimal) -> str:
    """`$1,234.50`, to the cent."""
    sign = "-" if usd < 0 else ""
    return f"{sign}${abs(usd):,.2f}"


def rate(usd_per_hour: Decimal | None, *, signed: bool = True) -> str:
    """`+$165.12/h`; an unknown price is never shown as a figure."""
    if usd_per_hour is None:
        return "price unknown"
    sign = "+" if signed and usd_per_hour > 0 else ""
    return f"{sign}{money(usd_per_hour)}/h"


def least(figure: str, *, unpriced: bool) -> str:
    """What has no price is in no sum: then the sum is only the least."""
    return f"at least {figure}" if unpriced else figure


def bounds(usd: Bounds) -> str:
    """One figure where it is exact, else the two that hold the truth."""
    low, high = money(usd.low), money(usd.high)
    return low if low == high else f"{low} to {high}"


def when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "-"


def span(length: timedelta) -> str:
    """`45m`, `26h`, `3d 4h`: to what a person needs, rounded down."""
    minutes = int(length.total_seconds()) // 60
    if minutes < 120:
        return f"{minutes}m"
    days, hours = divmod(minutes // 60, 24)
    if days < 4:
        return f"{minutes // 60}h"
    return f"{days}d {hours}h" if hours else f"{days}d"


def duration(length: timedelta) -> str:
    """`36.5 hours`, `1 hour`, `59 minutes`, `12 seconds`: of what may be short."""
    seconds = length.total_seconds()
    if seconds >= 3600:
        hours = f"{seconds / 3600:,.1f}".removesuffix(".0")
        return f"{hours} {'hour' if hours == '1' else 'hours'}"
    return number(round(seconds / 60), "minute") if seconds >= 60 else number(round(seconds), "second")


def columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), gap: int = 2) -> list[str]:
    """Rows as lines with aligned columns; those in `right` are aligned to the right. No width limit."""
    if not rows:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [(" " * gap).join(_cells(row, widths, right)).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    return [
        cell.rjust(width) if index in right else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    return "\n".join(columns([header, *rows], right=right))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """A GitHub table; bars inside cells are escaped."""
    rule = ["---:" if index in right else "---" for index in range(len(header))]
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().rstrip("\n")


def pool_text(name: str) -> str:
    """Jobs that no pool serves have none."""
    return f"pool {name}" if name else "no pool"
