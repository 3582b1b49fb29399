"""What is foretold of a job's duration before it runs, by whoever has learned it."""

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


def nothing(jobs: Sequence[Job]) -> Sequence[Foretold | None]:
    """Nothing was learned."""
    return [None] * len(jobs)
