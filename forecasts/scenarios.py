"""Sample paths of demand: whole days of the past set end to end from today's level, the worst of them never left out.

A day-block bootstrap keeps what a day's hours have to do with each other and needs no model of the errors. A given
share of the paths is built from the worst blocks alone, so that rare bursts are in every set of scenarios, however
few the paths. Source: moving-block bootstrap, Kuensch, Ann. Stat. 17 (1989).
"""

import numpy as np

from forecasts.quantiles import Array

DAY_H = 24


def paths(
    level: Array,
    *,
    hours: int,
    count: int,
    seed: int,
    hour_of_day: int,
    worst_share: float = 0.05,
    worst_blocks: int = 3,
) -> Array:
    """Demand at the next `hours` whole hours: (count, hours), never below 0.

    `level` (n,) is hourly demand up to now, which is `hour_of_day`; a block is what demand did in the 24 hours from
    the same hour of day on. Fewer than two days of past give paths that stay where they are.
    """
    blocks = _blocks(level)
    if len(blocks) == 0:
        return np.full((count, hours), level[-1] if len(level) else 0.0)
    generator = np.random.Generator(np.random.PCG64([seed, hour_of_day, len(level)]))
    days = -(-hours // DAY_H)
    picked = generator.integers(0, len(blocks), size=(count, days))
    worst = np.argsort(blocks.max(axis=1), kind="stable")[::-1][:worst_blocks]
    stressed = int(np.ceil(worst_share * count)) if worst_share > 0 else 0
    picked[:stressed] = worst[generator.integers(0, len(worst), size=(stressed, days))]
    return _walk(blocks[picked], float(level[-1]))[:, :hours]


def _blocks(level: Array) -> Array:
    """What demand did in each of the past's whole days, counted back from now: changes since its start (days, 24)."""
    days = (len(level) - 1) // DAY_H
    if days < 2:
        return np.empty((0, DAY_H))
    kept = level[len(level) - 1 - days * DAY_H :]
    starts: Array = kept[: days * DAY_H : DAY_H]
    return kept[1:].reshape(days, DAY_H) - starts[:, None]


def _walk(changes: Array, start: float) -> Array:
    """Set blocks (count, days, 24) end to end; demand cannot fall below 0, so each day starts from what is left."""
    count, days, _ = changes.shape
    found = np.empty((count, days * DAY_H))
    at = np.full(count, start)
    for day in range(days):
        today = np.maximum(at[:, None] + changes[:, day], 0.0)
        found[:, day * DAY_H : (day + 1) * DAY_H] = today
        at = today[:, -1]
    return found
