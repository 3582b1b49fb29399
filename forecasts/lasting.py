"""Durations as a history of jobs tells them, learned in one go and kept as data: the same past, the same bytes."""

from collections.abc import Sequence

import msgspec
import numpy as np

from forecasts import durations
from forecasts.durations import DurationModel
from forecasts.expected import Expected, teach
from forecasts.history import Alike, Arrival, Submitted, follow
from forecasts.quantiles import LEVELS, Array

VERSION = 1
TAUGHT_JOBS = 30_000
"""The latest jobs that are learned from."""
COMPETING_JOBS = 10_000
"""Over the last of those the experts compete; the model that takes part was trained on what lay before them."""


class Lasting(msgspec.Struct, frozen=True, kw_only=True):
    """`groups` numbers the users (or tenants). Times in seconds since 1970: first and last submit that taught, and the
    moment up to which ends were known.
    """

    version: int = VERSION
    seed: int
    first_s: float
    last_s: float
    until_s: float
    jobs: int
    groups: dict[str, int]
    alike: Alike
    expected: Expected
    model: DurationModel | None

    def say(self, jobs: Sequence[Arrival]) -> Array:
        """Quantiles in seconds (n, levels), NaN where nothing is known; jobs in order of submit, which goes on from
        the history: those that came lately tell of the next.
        """
        rows = np.array([self.alike.submit(job) for job in jobs])
        columns = np.array([(job.group, job.gpus) for job in jobs], dtype=float)
        return self.expected.quantiles(columns[:, 0], columns[:, 1], _said(self.model, rows))

    def number(self, group: str) -> int:
        """Of a group that was never seen: one that is like nobody."""
        return self.groups.get(group, -1)


def learn(jobs: Submitted, groups: dict[str, int], until_s: float, seed: int) -> Lasting | None:
    """`jobs` in order of submit, with seconds since 1970; None where there are none."""
    jobs = _latest(jobs, TAUGHT_JOBS)
    count = len(jobs.submit_s)
    if count == 0:
        return None
    known, alike = follow(jobs, until_s)
    recipe = msgspec.structs.replace(durations.RECIPE, seed=seed)
    cut = max(count - COMPETING_JOBS, count // 2)
    before = durations.train(jobs, known, float(jobs.submit_s[cut]), recipe)
    expected = Expected()
    teach(expected, _latest(jobs, count - cut), _said(before, known[cut:]))
    return Lasting(
        seed=seed,
        first_s=float(jobs.submit_s[0]),
        last_s=float(jobs.submit_s[-1]),
        until_s=until_s,
        jobs=count,
        groups=groups,
        alike=alike,
        expected=_settled(expected),
        model=durations.train(jobs, known, until_s, recipe),
    )


def _latest(jobs: Submitted, count: int) -> Submitted:
    return Submitted(**{name: getattr(jobs, name)[-count:] for name in Submitted.__struct_fields__})


def _said(model: DurationModel | None, rows: Array) -> Array:
    return model.predict(rows) if model else np.full((len(rows), len(LEVELS)), np.nan)


def _settled(expected: Expected) -> Expected:
    """Without the jobs that still run: they are told anew next time."""
    return msgspec.structs.replace(expected, live={}, due=[])
