"""How long a job will run: conditional quantiles, honest about jobs that have not finished.

Only finished jobs show a duration, and among those submitted lately the finished ones are the short ones. Each is
weighted by one over the chance that a job so long had finished by now, which is known exactly: it is the share of
the jobs submitted at least that long ago. Source: inverse probability of censoring weighting, Robins and Rotnitzky
(1992).
"""

import msgspec
import numpy as np

from forecasts.boosting import Boosted, Recipe, fit
from forecasts.history import GROUP_COLUMN, Submitted
from forecasts.quantiles import Array, given_longer_than
from forecasts.scores import tail_index

RECIPE = Recipe(rounds=80, leaves=7, learning_rate=0.08, rows_per_leaf=100)
MOST_ROWS = 30_000
"""The latest finished jobs that a model is fitted on."""
MOST_WEIGHT = 20.0
FEWEST_ROWS = 200


class DurationModel(msgspec.Struct, frozen=True, kw_only=True):
    """`tail_index` is the durations' Hill estimate, for jobs that outlive what the levels state."""

    boosted: Boosted
    tail_index: float

    def predict(self, rows: Array) -> Array:
        """Seconds: (n, columns) -> (n, levels)."""
        seconds: Array = np.maximum(np.expm1(self.boosted.predict(rows)), 0.0)
        return seconds

    def remaining(self, quantiles: Array, elapsed_s: float) -> Array:
        """Seconds still to run, given that a job with these quantiles (levels,) has run for `elapsed_s`."""
        return given_longer_than(quantiles, elapsed_s, self.tail_index) - elapsed_s


def train(jobs: Submitted, rows: Array, now_s: float, recipe: Recipe = RECIPE) -> DurationModel | None:
    """From the jobs that had finished by `now_s`; None where they are too few. `rows` as `history.rows` gives."""
    finished = np.flatnonzero(jobs.end_s <= now_s)[-MOST_ROWS:]
    if len(finished) < FEWEST_ROWS:
        return None
    durations = (jobs.end_s - jobs.start_s)[finished]
    first = jobs.start_s[finished[0]]
    ages = now_s - jobs.start_s[(jobs.start_s >= first) & (jobs.start_s <= now_s)]
    boosted = fit(
        rows[finished],
        np.log1p(durations),
        recipe=recipe,
        weight=finished_weight(durations, ages),
        categories=(GROUP_COLUMN,),
    )
    return DurationModel(boosted=boosted, tail_index=max(tail_index(durations), 0.2))


def finished_weight(durations: Array, ages: Array) -> Array:
    """One over the share of `ages` (time since the start, of all jobs) that are at least each duration."""
    old_enough = 1.0 - np.searchsorted(np.sort(ages), durations, side="left") / len(ages)
    weight: Array = np.minimum(1.0 / np.maximum(old_enough, 1e-9), MOST_WEIGHT)
    return weight
