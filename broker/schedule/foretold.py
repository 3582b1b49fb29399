"""What is foretold to the schedule, by whoever has learned it: durations of jobs, and what owed starts will want."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.model.job import Job


class Foretold(NamedTuple):
    """Seconds: the 10% quantile and the median. `known`: of jobs of the same user, not of everybody's."""

    quick_s: float
    typical_s: float
    known: bool


Foretell = Callable[[Sequence[Job]], Sequence[Foretold | None]]
"""One each; None where nothing can be said."""


class HourOver(NamedTuple):
    """An hour of a pool: the most GPUs that owed starts wanted at once, and figures of the pool at its end.

    `hour` is the number of the next one since 1970. A share `alpha` of the reclaim times, of which `windows` make an
    hour, may want more than is foretold.
    """

    pool: str
    wanted: float
    known: list[float]
    hour: int
    alpha: float
    windows: int


Expect = Callable[[HourOver], float | None]
"""What owed starts will want in the next hour, in GPUs; None where nothing can be said. Asked once an hour."""


def nothing(jobs: Sequence[Job]) -> Sequence[Foretold | None]:
    """Nothing was learned."""
    return [None] * len(jobs)


def silence(_: HourOver) -> float | None:
    """Nothing can be said."""
    return None


class Experts(NamedTuple):
    durations: Foretell = nothing
    starts: Expect = silence
