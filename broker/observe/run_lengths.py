"""How long the jobs of those who queue now have run so far, from the history beside the state."""

from collections.abc import Iterable
from math import ceil

from broker.config import Config
from broker.errors import StateError
from broker.model.snapshot import RunLength, SourceView
from state.history.store import History, beside

FEWEST = 20
"""Fewer finished runs than this say nothing."""

LATEST = 200
"""What people ran long ago says little of what they run now."""


def run_lengths(config: Config, sources: Iterable[SourceView]) -> tuple[RunLength, ...]:
    """By user, for the configured part of their last runs. A history that cannot be read says nothing."""
    level = config.policy.purchase.runtime_quantile
    users = {job.user for source in sources for job in source.jobs if job.user and job.state.live}
    path = beside(config.state)
    if not level or not users or not path.exists():
        return ()
    try:
        with History.open(path, read_only=True) as history:
            runs = history.runs(users, LATEST)
    except StateError:
        return ()
    return tuple(
        RunLength(user=user, runs=len(seconds), within_s=_quantile(seconds, level))
        for user, seconds in sorted(runs.items())
        if len(seconds) >= FEWEST
    )


def _quantile(seconds: list[float], level: float) -> int:
    """The shortest length that at least this part of the runs did not exceed, in whole seconds."""
    return ceil(sorted(seconds)[max(ceil(level * len(seconds)) - 1, 0)])
