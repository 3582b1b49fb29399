"""Measures and their bars: each is printed as it is taken, and all of them are summed up in one line at the end."""

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Measure(NamedTuple):
    what: str
    value: float
    bar: float
    unit: str
    least: bool
    """Whether the bar is the least that is wanted; else the most that is allowed."""

    @property
    def share(self) -> float:
        """Of the bar: beyond 1 it is missed."""
        worse, better = (self.bar, self.value) if self.least else (self.value, self.bar)
        return worse / better if better else float("inf") if worse else 0.0

    def __str__(self) -> str:
        bar = f"{'at least' if self.least else 'at most'} {_readable(self.bar)}"
        return f"{self.what}: {_readable(self.value)} {self.unit}, {bar} ({self.share:.0%} of the bar)"


Take = Callable[..., None]
_TAKEN = pytest.StashKey[list[Measure]]()


def taker(config: pytest.Config) -> Take:
    """`take(what, value, bar, unit)` prints the measure, and fails where it misses its bar; `least`: falls short of."""
    taken = config.stash.setdefault(_TAKEN, [])

    def take(what: str, value: float, bar: float, unit: str, *, least: bool = False) -> None:
        measure = Measure(what, float(value), float(bar), unit, least)
        taken.append(measure)
        print(f"\n{measure}")  # noqa: T201 - the measure
        assert measure.share <= 1, str(measure)

    return take


def summary(config: pytest.Config) -> str:
    """One line; empty where nothing was measured."""
    taken = config.stash.get(_TAKEN, [])
    if not taken:
        return ""
    missed = [measure for measure in taken if not measure.share <= 1]
    if missed:
        return f"bench: {len(taken)} measures, {len(missed)} miss their bars: {'; '.join(map(str, missed))}"
    nearest = max(taken, key=lambda measure: measure.share)
    return f"bench: {len(taken)} measures, all within their bars; nearest to its bar: {nearest}"


def _readable(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
