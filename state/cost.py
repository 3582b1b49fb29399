"""What a count over time cost: two bounds that contain the truth, one figure where every edge is exact. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise

import msgspec

from broker.model.ledger import CountStep

_US_PER_HOUR = 3_600_000_000


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Micro-dollars. `unpriced` counts steps without a known price: they are in neither bound."""

    low: int = 0
    high: int = 0
    unpriced: int = 0

    def __add__(self, other: "Bounds") -> "Bounds":
        return Bounds(low=self.low + other.low, high=self.high + other.high, unpriced=self.unpriced + other.unpriced)


def by_reservation(steps: Iterable[CountStep]) -> list[list[CountStep]]:
    """One list a reservation, in the order given."""
    return [list(group) for _, group in groupby(steps, key=lambda step: (step.scope, step.reservation_id))]


def cost(steps: Sequence[CountStep], since: datetime, until: datetime) -> Bounds:
    """Of one reservation between two instants.

    At every instant the count is one of the steps that may hold then: the cheapest of them bounds the cost from
    below, the dearest from above. Before the first step nothing is held.
    """
    edges = sorted({since, until, *(_clip(edge, since, until) for s in steps for edge in (s.earliest, s.latest))})
    low = high = 0
    for start, end in pairwise(edges):
        rates = [_rate(steps[which]) if which >= 0 else 0 for which in _possible(steps, start)]
        span = (end - start).total_seconds() * 1_000_000
        low += round(min(rates) * span / _US_PER_HOUR)
        high += round(max(rates) * span / _US_PER_HOUR)
    unpriced = sum(step.count > 0 and step.usd_per_hour_micro is None for step in steps)
    return Bounds(low=low, high=high, unpriced=unpriced)


def by_key(steps: Sequence[CountStep], since: datetime, until: datetime) -> Mapping[str, int]:
    """The upper bound shared out to the action that set the step which may have cost it."""
    shares: dict[str, int] = {}
    edges = sorted({since, until, *(_clip(edge, since, until) for s in steps for edge in (s.earliest, s.latest))})
    for start, end in pairwise(edges):
        which = max(_possible(steps, start), key=lambda index: _rate(steps[index]) if index >= 0 else 0)
        if which >= 0:
            span = (end - start).total_seconds() * 1_000_000
            key = steps[which].key
            shares[key] = shares.get(key, 0) + round(_rate(steps[which]) * span / _US_PER_HOUR)
    return shares


def _possible(steps: Sequence[CountStep], at: datetime) -> list[int]:
    """Indices of the steps that may hold at `at`; -1 is before the first."""
    begun = [-1] + [index for index, step in enumerate(steps) if step.earliest <= at]
    certain = max((index for index, step in enumerate(steps) if step.latest <= at), default=-1)
    return [index for index in begun if index >= certain]


def _rate(step: CountStep) -> int:
    return step.count * (step.usd_per_hour_micro or 0)


def _clip(edge: datetime, since: datetime, until: datetime) -> datetime:
    return min(max(edge, since), until)
