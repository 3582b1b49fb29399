"""What the ledger knows of money over time: step functions with honest edges.

A count changes at an instant that the cloud may or may not state. Where it does, `earliest == latest`; where it does
not, the change lies between the intent and the moment at which its effect was first seen. Cost is then a pair of
bounds that contains the truth, and one figure where every edge is exact.
"""

from datetime import datetime

import msgspec

from broker.model.place import Scope


class CountStep(msgspec.Struct, frozen=True, kw_only=True):
    """From this edge on, `count` instances of the reservation are billed at `usd_per_hour_micro` each.

    The price is frozen from when it was decided, with its source; None is unknown, never zero.
    """

    reservation_id: str
    scope: Scope
    count: int
    earliest: datetime
    latest: datetime
    usd_per_hour_micro: int | None = None
    price_source: str = ""
    key: str = ""


class UseStep(msgspec.Struct, frozen=True, kw_only=True):
    """From `at` on, as far as the runs have seen, `used` instances of the reservation were in use."""

    reservation_id: str
    scope: Scope
    at: datetime
    used: int


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The last run that observed: overwritten, never appended. `idle`: what it saw idle while jobs ran beside it."""

    at: datetime
    run_id: str
    command: str
    summary: str = ""
    idle: tuple[str, ...] = ()
