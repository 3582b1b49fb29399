"""Quantiles of demand with a plot in text, and how good they would have been."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.commands.forecasting import Forecast, PoolForecast, Row
from broker.counted import number
from broker.view.document import document
from broker.view.text import table

if TYPE_CHECKING:
    from forecasts.accuracy import Accuracy, Part

_WIDTH = 40
_SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def forecast_text(found: Forecast) -> str:
    blocks = ["\n".join(f"! {line}" for line in found.problems)] if found.problems else []
    blocks += [block for pool in found.pools for block in _pool(pool)]
    return "\n\n".join(blocks)


def _pool(pool: PoolForecast) -> list[str]:
    if not pool.jobs:
        return [f"pool {pool.pool}: {'; '.join(pool.notes)}"]
    head = (
        f"pool {pool.pool}: {pool.gpus_now} GPUs wanted at {pool.as_of:%Y-%m-%d %H:%M} UTC; "
        f"from {number(pool.jobs, 'job')} over {pool.history_h} h"
    )
    blocks = ["\n".join([head, *(f"  note: {note}" for note in pool.notes)])]
    if pool.rows:
        blocks.append(_table(pool.rows))
    return [*blocks, *(_accuracy(each) for each in pool.accuracy)]


def _table(rows: Sequence[Row]) -> str:
    """GPUs; the plot has `-` from 5% to 95%, `=` from 25% to 75%, `|` at 50%."""
    top = max(_at(row, 0.95) for row in rows)
    header = ["ahead", "at (UTC)", *(f"{level:.0%}" for level in _SHOWN), f"0 .. {top} GPUs"]
    lines = [
        [f"{row.ahead_h} h", f"{row.at:%m-%d %H:%M}", *(str(_at(row, level)) for level in _SHOWN), _plot(row, top)]
        for row in rows
    ]
    return table(header, lines, right=frozenset(range(2, 2 + len(_SHOWN))) | {0})


def _at(row: Row, level: float) -> int:
    return next(each.gpus for each in row.quantiles if each.level == level)


def _plot(row: Row, top: int) -> str:
    low, quarter, middle, three, high = (_place(_at(row, level), top) for level in (0.05, 0.25, 0.5, 0.75, 0.95))
    cells = [" "] * (_WIDTH + 1)
    cells[low : high + 1] = "-" * (high + 1 - low)
    cells[quarter : three + 1] = "=" * (three + 1 - quarter)
    cells[middle] = "|"
    return "".join(cells).rstrip()


def _place(gpus: int, top: int) -> int:
    return round(_WIDTH * gpus / top) if top else 0


def _accuracy(found: "Accuracy") -> str:
    """Every forecaster on the same cases; the errors' shape; coverage of the 90% band where it is worst."""
    header = [f"{found.figure} ({found.scores[0].unit})", "cases", "pinball", "CRPS", "90% band holds"]
    rows = [
        [each.by, f"{each.count:,}", f"{each.pinball:.3f}", f"{each.crps:.3f}", f"{each.coverage_90:.1%}"]
        for each in found.scores
    ]
    lines = [table(header, rows, right=frozenset({1, 2, 3, 4}))]
    lines.append(
        f"  errors: autocorrelation {found.error_autocorrelation:.2f}, tail index {found.error_tail_index:.2f}"
        + (" (below 2: their variance is infinite)" if found.error_tail_index < 2 else "")
    )
    for split in dict.fromkeys(part.split for part in found.parts):
        lines.append(f"  band by {split}: {_coverage([part for part in found.parts if part.split == split])}")
    return "\n".join(lines)


def _coverage(parts: "Sequence[Part]") -> str:
    return ", ".join(f"{part.part} {part.coverage_90:.0%}" for part in parts)


def forecast_json(found: Forecast) -> str:
    return document("forecast", {"forecast": found})
