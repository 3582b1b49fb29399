"""What a saved plan would do and cost, as table, Markdown, CSV and JSON."""

from decimal import Decimal

import msgspec

from broker.counted import number
from broker.outlook import Outlook, PlanReport
from broker.view.document import document
from broker.view.plan import saved_text
from broker.view.text import Paint, as_csv, least, markdown, money, plain, rate, table, when

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
    return as_csv([report.by.value, *_COLUMNS], map(_csv_row, report.lines))


def outlook_json(report: PlanReport) -> str:
    """All amounts in US dollars, rates in dollars an hour; null where a part of it has no price."""
    lines, total = [_honest(line) for line in report.lines], _honest(report.total)
    fields = msgspec.structs.asdict(report) | {"lines": lines, "total": total, "complete": report.complete}
    return document("plan-report", {"currency": "USD", **fields})


_MONEY = ("usd_per_hour_added", "usd_per_hour_saved", "usd_idle_at_worst")


def _honest(line: Outlook) -> dict[str, object]:
    plain = msgspec.structs.asdict(line)
    at_least = {f"{name}_at_least": plain[name] for name in _MONEY}
    return plain | (dict.fromkeys(_MONEY) | at_least if line.unpriced else {})


_COLUMNS = ["gpus", "usd_per_hour_added", "usd_per_hour_saved", "usd_idle_at_worst", "unpriced_changes"]


def _csv_row(line: Outlook) -> list[str]:
    figures = ["" if line.unpriced else f"{getattr(line, name):f}" for name in _MONEY]
    return [line.name, f"{line.gpus:f}", *figures, str(line.unpriced)]


def _header(report: PlanReport) -> list[str]:
    return [report.by.value, "GPUs", "rate added", "rate saved", "change", "idle at worst"]


def _rows(report: PlanReport) -> list[list[str]]:
    return [_row(line) for line in (*report.lines, report.total)]


def _row(line: Outlook) -> list[str]:
    unpriced = line.unpriced > 0
    rates = [
        least(rate(line.usd_per_hour_added, signed=False), unpriced=unpriced),
        least(rate(line.usd_per_hour_saved, signed=False), unpriced=unpriced),
        rate(None if unpriced else line.rate_change),
    ]
    return [line.name, _change(line.gpus), *rates, least(money(line.usd_idle_at_worst), unpriced=unpriced)]


def _change(gpus: Decimal) -> str:
    """`+24`, `-5.33`: a part of a GPU is a tenant's share."""
    return f"{gpus.quantize(Decimal('0.01')).normalize():+,f}" if gpus else "0"


def _gap(report: PlanReport) -> str:
    if report.complete:
        return ""
    return f"INCOMPLETE: {number(report.total.unpriced, 'change')} had no known price and is in no figure of money."


def _joined(blocks: list[str]) -> str:
    return "\n\n".join(block for block in blocks if block)
