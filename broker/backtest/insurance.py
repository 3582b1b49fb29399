"""What a reservation is worth as insurance, and for how long it has to be kept."""

from collections import deque
from dataclasses import dataclass, field

from broker.backtest.hourly import CapacityRule, Hour
from broker.errors import UsageError


def quantile_to_hold(failure: float, missed: float, lent: float) -> float:
    """The quantile of demand up to which an hour's capacity pays for itself, where it can be switched freely.

    A GPU-hour reserved costs its price, 1. `failure` is the probability that an unreserved launch fails, `missed` the
    cost of an owed GPU-hour that is not served, `lent` the value of one that is lent (at most 1). Level n is worth
    holding iff Pr(demand >= n) > (1 - lent) / ((1 - lent) + failure (missed - 1)), which is to hold up to the quantile
    at one less that threshold.
    """
    if not (0.0 <= failure <= 1.0 and 1.0 <= missed < float("inf") and 0.0 <= lent <= 1.0):
        raise UsageError(
            f"insurance of failure {failure:g}, missed {missed:g}, lent {lent:g}",
            next_step="Give failure and lent from 0 to 1, and missed from 1 on, the price of a GPU-hour",
        )
    spared, at_risk = failure * (missed - 1.0), 1.0 - lent
    return 1.0 if at_risk == 0.0 else spared / (at_risk + spared)


@dataclass(slots=True, kw_only=True)
class MinimumTerm:
    """What has arrived is kept for at least `term_s` from the decision at which it is seen.

    What was held at first has no term. Terms that end first are given back first.
    """

    rule: CapacityRule
    term_s: float
    blocks: deque[tuple[float, int]] = field(default_factory=deque)
    left: int | None = None  # what was held after the last decision

    def goal(self, hour: Hour) -> int:
        """At least what cannot be given back yet."""
        arrived = 0 if self.left is None else hour.capacity - self.left
        if arrived > 0:
            self.blocks.append((hour.at + self.term_s, arrived))
        while self.blocks and self.blocks[0][0] <= hour.at:
            self.blocks.popleft()
        wanted = max(self.rule.goal(hour), sum(gpus for _, gpus in self.blocks))
        self.left = min(hour.capacity, wanted)
        return wanted
