"""Since when how much of a reservation has been unused, from its history of use. Pure."""

from collections.abc import Iterable, Iterator

from broker.model.ledger import UseStep
from broker.model.snapshot import Idle

LOOK_BACK = 50
"""Steps of use that are looked at. A shorter history only makes a level look younger, and so kept for longer."""


def levels(newest_first: Iterable[UseStep], count: int) -> Iterator[Idle]:
    """For each level of use below `count`, the longest time up to now in which use was at most that."""
    level: UseStep | None = None
    for step in newest_first:
        if level is not None and step.used > level.used:
            yield Idle(level.reservation_id, level.scope, level.at, level.used)
        used = max(step.used, level.used) if level else step.used
        if used >= count:
            return
        level = UseStep(reservation_id=step.reservation_id, scope=step.scope, at=step.at, used=used)
    if level is not None:
        yield Idle(level.reservation_id, level.scope, level.at, level.used)
