"""Each measure is printed with its bar as it is taken, and all of them in one line at the end."""

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Measure(NamedTuple):
    what: str
    value: float
    bar: float
    unit: str

    @property
    def share(self) -> float:
        return self.value / self.bar

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.2f} {self.unit} of {self.bar:g} allowed ({self.share:.0%})"


_TAKEN = pytest.StashKey[list[Measure]]()

Take = Callable[[str, float, float, str], None]


@pytest.fixture
def take(request: pytest.FixtureRequest) -> Take:
    """`take(what, value, bar, unit)`: print the measure, and fail where it is over its bar."""
    taken = request.config.stash.setdefault(_TAKEN, [])

    def measured(what: str, value: float, bar: float, unit: str) -> None:
        measure = Measure(what, value, bar, unit)
        taken.append(measure)
        print(f"\n{measure}")  # noqa: T201 - the measure
        assert measure.value <= measure.bar, str(measure)

    return measured


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    taken = config.stash.get(_TAKEN, [])
    if not taken:
        return
    over = [measure for measure in taken if measure.share > 1]
    nearest = max(taken, key=lambda measure: measure.share)
    verdict = f"{len(over)} over their bars" if over else "all within their bars"
    terminalreporter.write_line(f"bench: {len(taken)} measures, {verdict}; nearest to its bar: {nearest}")
