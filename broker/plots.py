"""Line plots in SVG, without a library: a page that holds them needs nothing else. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 60, 40
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b7791f", "#555555", "#d35f9c")
_TICKS = 6

Line = tuple[str, Sequence[float], Sequence[float]]
"""Its name, and its points along both axes."""
Points = Sequence[tuple[float, float]]


def _figure(value: float) -> str:
    return f"{value:.4g}"


@dataclass(frozen=True)
class Axis:
    """`text` is how a value at a tick is written; `from_zero`: the axis begins there, however small the range."""

    log: bool = False
    from_zero: bool = False
    text: Callable[[float], str] = _figure


def plot(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """A heading and the plot; nothing where there is no line."""
    if not lines:
        return ""
    across = _Scale([value for line in lines for value in line[1]], _LEFT, _WIDTH - 10, x)
    up = _Scale([value for line in lines for value in line[2]], _HEIGHT - _BOTTOM, 10, y)
    drawn = [_drawn(line, across, up, _COLOURS[k % len(_COLOURS)], k) for k, line in enumerate(lines)]
    ticks = [f"<text x='{pixel:.0f}' y='{_HEIGHT - 20}'>{text}</text>" for pixel, text in across.ticks()]
    ticks += [f"<text x='5' y='{pixel + 4:.0f}'>{text}</text>" for pixel, text in up.ticks()]
    size = f"width='{_WIDTH + 220}' height='{_HEIGHT}' role='img' aria-label='{escape(title)}'"
    return f"<h2>{escape(title)}</h2><svg {size} font-size='11'>{''.join([*ticks, *drawn])}</svg>"


def steps(at: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The corners of what holds each value from its instant to the next; the last value has no length."""
    corners = [(at[0], values[0])] if at else []
    for (_, before), (instant, value) in pairwise(zip(at, values, strict=True)):
        corners += [(instant, before), (instant, value)]
    corners = corners[:-1] if len(corners) > 1 else corners
    return [corner[0] for corner in corners], [corner[1] for corner in corners]


class _Scale:
    """Data to pixels."""

    def __init__(self, data: Sequence[float], begin: float, end: float, axis: Axis) -> None:
        self._begin, self._end, self._axis = begin, end, axis
        values = [self._of(value) for value in data] + ([0.0] if axis.from_zero else [])
        self._low, self._high = min(values), max(values)

    def __call__(self, value: float) -> float:
        return self._at(self._of(value))

    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten on a logarithmic axis, else evenly spread; an axis of one value has one."""
        if self._axis.log:
            marks: list[float] = list(range(ceil(self._low), floor(self._high) + 1))
        elif self._high == self._low:
            marks = [self._low]
        else:
            marks = [self._low + (self._high - self._low) * k / (_TICKS - 1) for k in range(_TICKS)]
        values = [10.0**mark if self._axis.log else mark for mark in marks]
        return [(self._at(mark), escape(self._axis.text(value))) for mark, value in zip(marks, values, strict=True)]

    def _of(self, value: float) -> float:
        return log10(max(value, 1e-9)) if self._axis.log else float(value)

    def _at(self, value: float) -> float:
        share = (value - self._low) / max(self._high - self._low, 1e-12)
        return self._begin + share * (self._end - self._begin)


def _drawn(line: Line, across: _Scale, up: _Scale, colour: str, row: int) -> str:
    name, x, y = line
    pixels = [(across(a), up(b)) for a, b in zip(x, y, strict=True)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pixels)
    mark = (
        f"<circle cx='{pixels[0][0]:.1f}' cy='{pixels[0][1]:.1f}' r='4' fill='{colour}'/>" if len(pixels) == 1 else ""
    )
    text = f"<text x='{_WIDTH + 5}' y='{15 + 14 * row}' fill='{colour}'>{escape(name)}</text>"
    return f"<polyline fill='none' stroke='{colour}' points='{points}'/>{mark}{text}"
