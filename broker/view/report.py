"""The cost report as table, Markdown, CSV and JSON."""

import csv
from decimal import Decimal
from io import StringIO

from broker.report import Bounds, Line, Report, Share
from broker.view.document import document
from broker.view.text import bounds, markdown, money, table, when

_RIGHT = frozenset({1, 2, 3, 4, 5})
_WORTH_SAYING = Decimal("0.01")


def report_text(report: Report) -> str:
    return "\n\n".join([_title(report), table(_header(report), _rows(report), right=_RIGHT), *_closing(report)])


def report_markdown(report: Report) -> str:
    return "\n\n".join([_title(report), markdown(_header(report), _rows(report), right=_RIGHT), *_closing(report)])


def report_json(report: Report) -> str:
    """All amounts in US dollars."""
    return document("report", {"currency": "USD", "report": report})


def report_csv(report: Report) -> str:
    """One line a group; amounts in US dollars, to a millionth."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([report.by.value, *_columns(), *_TAIL])
    writer.writerows(_csv_row(line) for line in report.lines)
    return out.getvalue().rstrip("\n")


_FIGURES = ("spent", "used", "idle")
_TAIL = ["committed_usd", "unpriced_instance_hours", "used_share_low", "used_share_high"]


def _columns() -> list[str]:
    return [f"{name}_usd_{end}" for name in _FIGURES for end in ("low", "high")]


def _csv_row(line: Line) -> list[str]:
    figures = [f"{end:f}" for each in (line.spent, line.used, line.idle) for end in (each.low, each.high)]
    share = [f"{line.used_share.low:f}", f"{line.used_share.high:f}"] if line.used_share else ["", ""]
    return [line.name, *figures, f"{line.committed:f}", f"{line.unpriced_instance_hours:f}", *share]


def _title(report: Report) -> str:
    return f"Cost from {when(report.since)} to {when(report.until)}, US dollars"


def _header(report: Report) -> list[str]:
    return [report.by.value, "spent", "used", "share of use", "idle", "committed"]


def _rows(report: Report) -> list[list[str]]:
    return [_row(line) for line in (*report.lines, report.total)]


def _row(line: Line) -> list[str]:
    figures = [bounds(line.spent), bounds(line.used), _share(line.used_share), bounds(line.idle)]
    return [line.name, *figures, money(line.committed)]


def _share(share: Share | None) -> str:
    if share is None:
        return ""
    low, high = f"{share.low:.0%}", f"{share.high:.0%}"
    return low if low == high else f"{low} to {high}"


def _closing(report: Report) -> list[str]:
    notes = [_static(report)] if report.static.cost.high else []
    if report.use_as_of:
        notes.append(f"Use is as the runs saw it, the last change at {when(report.use_as_of)}.")
    if any(" to " in cell for row in _rows(report) for cell in row[1:]):
        notes.append("Two figures: the cloud does not state when a count changed; the truth lies between them.")
    if not report.complete:
        hours = report.total.unpriced_instance_hours
        notes.append(f"INCOMPLETE: {hours:,.1f} instance-hours had no known price and are in no figure.")
    return ["\n".join(notes)] if notes else []


def _static(report: Report) -> str:
    static, spent = report.static.cost, report.total.spent
    held = f"The same peak held for all of the {_hours(report.static.hours)} would have cost {bounds(static)}"
    return f"{held}; the broker spent {bounds(spent)}{_saving(static, spent)}."


def _hours(hours: Decimal) -> str:
    return f"{hours:,.1f} hours" if hours >= 1 else f"{hours * 60:,.0f} minutes"


def _saving(static: Bounds, spent: Bounds) -> str:
    """Only what is certain: the worst case for us against the best case for the fleet."""
    sure = (static.low - spent.high) / static.low if static.low else Decimal(0)
    return f", at least {sure:.0%} less" if sure >= _WORTH_SAYING else ""
