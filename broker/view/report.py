"""The cost report as table, Markdown, CSV and JSON."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from html import escape
from typing import Any

import msgspec

from broker.counted import number
from broker.course import Moment
from broker.plots import Axis, plot, steps
from broker.report import Bounds, Line, Report, Share
from broker.view.document import document
from broker.view.text import as_csv, bounds, duration, least, markdown, money, table, when
from broker.webpage import page
from broker.webpage import table as html_table

_RIGHT = frozenset({1, 2, 3, 4, 5})
_SHARE = 3
_WORTH_SAYING = Decimal("0.01")


def report_text(report: Report) -> str:
    return "\n\n".join([_title(report), table(_header(report), _rows(report), right=_RIGHT), *_closing(report)])


def report_markdown(report: Report) -> str:
    return "\n\n".join([_title(report), markdown(_header(report), _rows(report), right=_RIGHT), *_closing(report)])


def report_html(reports: Sequence[Report], course: Sequence[Moment]) -> str:
    """One page: the course of time, and the same window by each grouping; the first says what holds for all of them."""
    parts = [f"<h1>{escape(_title(reports[0]))}</h1>", *(f"<p>{escape(note)}</p>" for note in _notes(reports))]
    shown = _begun(course)
    if shown[:1] != course[:1]:
        held = (
            f"Nothing was held from {when(course[0].at)} to {when(shown[0].at)}: the plots begin where something was."
        )
        parts.append(f"<p>{escape(held)}</p>")
    parts += [*_plots(shown), *(_section(each) for each in reports)]
    return page("GPU capacity report", parts)


def _section(report: Report) -> str:
    return f"<h2>By {report.by.value}</h2>{html_table(_header(report), _rows(report), right=_RIGHT)}"


def _notes(reports: Sequence[Report]) -> list[str]:
    """Each once, though it may hold for some groupings only."""
    return list(dict.fromkeys(line for each in reports for block in _closing(each) for line in block.split("\n")))


def _begun(course: Sequence[Moment]) -> Sequence[Moment]:
    """Without the empty stretch before the first purchase, which would leave little room for the rest."""
    first = next((at for at, each in enumerate(course) if each.held.high or each.used.high), 0)
    return course[first:]


def _plots(course: Sequence[Moment]) -> list[str]:
    days = [(each.at - course[0].at) / timedelta(days=1) for each in course]
    since = Axis(text=lambda day: f"{course[0].at + timedelta(days=day):%m-%d %H:%M}")
    usd, an_hour = Axis(from_zero=True, text=_dollars), Axis(from_zero=True, text=_dollars)
    spent = _both("spent", [each.spent for each in course])
    rates = [*_both("held", [each.held for each in course]), *_both("used", [each.used for each in course])]
    return [
        plot("Spent since the beginning, US dollars", [(name, days, values) for name, values in spent], since, usd),
        plot(
            "Held and used, US dollars an hour",
            [(name, *steps(days, values)) for name, values in rates],
            since,
            an_hour,
        ),
    ]


def _dollars(value: float) -> str:
    return f"${value:,.0f}" if value >= 100 else f"${value:,.2f}"


def _both(name: str, amounts: Sequence[Bounds]) -> list[tuple[str, list[float]]]:
    """One line where every figure is exact, else the two between which the truth lies."""
    low, high = [float(each.low) for each in amounts], [float(each.high) for each in amounts]
    return [(name, low)] if low == high else [(f"{name}, at least", low), (f"{name}, at most", high)]


def report_json(report: Report) -> str:
    """All amounts in US dollars; null where a part of it has no price, never a figure that is too low."""
    plain: dict[str, Any] = msgspec.to_builtins(report, builtin_types=(Decimal, datetime))
    plain["lines"] = [_honest(each) for each in plain["lines"]]
    plain["total"] = _honest(plain["total"])
    if report.total.unpriced_instance_hours:
        plain["static"]["cost"]["high"] = None
    return document("report", {"currency": "USD", "report": plain})


def _honest(line: dict[str, Any]) -> dict[str, Any]:
    if line["unpriced_instance_hours"]:
        for name in _FIGURES:
            line[name]["high"] = None
    if line["unpriced_reservations"]:
        line["committed"] = None
    return line


def report_csv(report: Report) -> str:
    """One line a group; amounts in US dollars, to a millionth."""
    return as_csv([report.by.value, *_columns(), *_TAIL], map(_csv_row, report.lines))


_FIGURES = ("spent", "used", "idle")
_TAIL = ["committed_usd", "unpriced_instance_hours", "used_share_low", "used_share_high", "unpriced_reservations"]


def _columns() -> list[str]:
    return [f"{name}_usd_{end}" for name in _FIGURES for end in ("low", "high")]


def _csv_row(line: Line) -> list[str]:
    bounds = (line.spent, line.used, line.idle)
    figures = [end for each in bounds for end in (f"{each.low:f}", "" if _unpriced(line) else f"{each.high:f}")]
    committed = "" if line.unpriced_reservations else f"{line.committed:f}"
    share = [f"{line.used_share.low:f}", f"{line.used_share.high:f}"] if line.used_share else ["", ""]
    tail = [committed, f"{line.unpriced_instance_hours:f}", *share, str(line.unpriced_reservations)]
    return [line.name, *figures, *tail]


def _unpriced(line: Line) -> bool:
    return bool(line.unpriced_instance_hours)


def _title(report: Report) -> str:
    return f"Cost from {when(report.since)} to {when(report.until)}, US dollars"


def _header(report: Report) -> list[str]:
    return [report.by.value, "spent", "used", "share of use", "idle", "committed"]


def _rows(report: Report) -> list[list[str]]:
    return [_row(line) for line in (*report.lines, report.total)]


def _row(line: Line) -> list[str]:
    spent, used, idle = (_figure(each, line) for each in (line.spent, line.used, line.idle))
    committed = least(money(line.committed), unpriced=line.unpriced_reservations > 0)
    return [line.name, spent, used, _share(line.used_share), idle, committed]


def _figure(usd: Bounds, line: Line) -> str:
    return least(money(usd.low), unpriced=True) if _unpriced(line) else bounds(usd)


def _share(share: Share | None) -> str:
    if share is None:
        return ""
    low, high = f"{share.low:.0%}", f"{share.high:.0%}"
    if (low, high) == ("0%", "100%"):
        return "not known"
    return low if low == high else f"{low} to {high}"


def _closing(report: Report) -> list[str]:
    notes = [_static(report)] if report.static.cost.high else []
    if report.use_as_of:
        notes.append(f"Use is as the runs saw it, the last change at {when(report.use_as_of)}.")
    between = {column for row in _rows(report) for column, cell in enumerate(row) if column and " to " in cell}
    if between - {_SHARE}:
        notes.append("Two figures: the cloud does not state when a count changed; the truth lies between them.")
    elif between:
        notes.append("Two shares: use is known only as the runs saw it; the truth lies between them.")
    if not report.complete:
        notes.append(f"INCOMPLETE: {' and '.join(_missing(report.total))} had no known price and are in no figure.")
    return ["\n".join(notes)] if notes else []


def _missing(total: Line) -> list[str]:
    missing = [f"up to {total.unpriced_instance_hours:,.1f} instance-hours"] if _unpriced(total) else []
    held = total.unpriced_reservations
    return missing + ([f"what is committed for {number(held, 'reservation')}"] if held else [])


def _static(report: Report) -> str:
    static, spent = report.static.cost, report.total.spent
    length = duration(timedelta(hours=float(report.static.hours)))
    held = f"The same peak held all the time, {length}, would have cost {_figure(static, report.total)}"
    saving = "" if _unpriced(report.total) else _saving(static, spent)
    return f"{held}; the broker spent {_figure(spent, report.total)}{saving}."


def _saving(static: Bounds, spent: Bounds) -> str:
    """Only what is certain: the worst case for us against the best case for the fleet."""
    sure = (static.low - spent.high) / static.low if static.low else Decimal(0)
    return f", at least {sure:.0%} less" if sure >= _WORTH_SAYING else ""
