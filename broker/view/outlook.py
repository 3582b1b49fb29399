"""What a saved plan would do and cost, as table, Markdown, CSV and JSON."""

import csv
from decimal import Decimal
from io import StringIO

import msgspec

from broker.outlook import Outlook, PlanReport
from broker.view.document import document
from broker.view.plan import saved_text
from broker.view.text import Paint, markdown, money, number, plain, rate, table, when

_RIGHT = frozenset({1, 2, 3, 4, 5})


def outlook_text(report: PlanReport, *, paint: Paint = plain) -> str:
    marked = "\n".join(f"  {paint('!', 'yellow')} {line}" for line in report.warnings)
    return _joined([saved_text(report.plan), marked, table(_header(report), _rows(report), right=_RIGHT), _gap(report)])


def outlook_markdown(report: PlanReport) -> str:
    title = f"**Plan {report.plan.id} of {when(report.plan.made)}**"
    marked = "\n".join(f"- {line}" for line in report.warnings)
    return _joined([title, marked, markdown(_header(report), _rows(report), right=_RIGHT), _gap(report)])


def outlook_csv(report: PlanReport) -> str:
    """One line a group; US dollars, to a millionth."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([report.by.value, *_COLUMNS])
    writer.writerows(_csv_row(line) for line in report.lines)
    return out.getvalue().rstrip("\n")


def outlook_json(report: PlanReport) -> str:
    """All amounts in US dollars, rates in dollars an hour."""
    return document("plan-report", {"currency": "USD", **msgspec.structs.asdict(report), "complete": report.complete})


_COLUMNS = ["gpus", "usd_per_hour_added", "usd_per_hour_saved", "usd_idle_at_worst", "unpriced_changes"]


def _csv_row(line: Outlook) -> list[str]:
    figures = (line.gpus, line.usd_per_hour_added, line.usd_per_hour_saved, line.usd_idle_at_worst)
    return [line.name, *(f"{figure:f}" for figure in figures), str(line.unpriced)]


def _header(report: PlanReport) -> list[str]:
    return [report.by.value, "GPUs", "rate added", "rate saved", "change", "idle at worst"]


def _rows(report: PlanReport) -> list[list[str]]:
    return [_row(line) for line in (*report.lines, report.total)]


def _row(line: Outlook) -> list[str]:
    rates = [
        rate(line.usd_per_hour_added, signed=False),
        rate(line.usd_per_hour_saved, signed=False),
        rate(line.rate_change),
    ]
    return [line.name, _change(line.gpus), *rates, money(line.usd_idle_at_worst)]


def _change(gpus: Decimal) -> str:
    """`+24`, `-5.33`: a part of a GPU is a tenant's share."""
    return f"{gpus.quantize(Decimal('0.01')).normalize():+,f}" if gpus else "0"


def _gap(report: PlanReport) -> str:
    if report.complete:
        return ""
    return f"INCOMPLETE: {number(report.total.unpriced, 'change')} had no known price and is in no figure of money."


def _joined(blocks: list[str]) -> str:
    return "\n\n".join(block for block in blocks if block)
