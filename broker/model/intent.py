"""The ledger's record of one request and what became of it."""

from datetime import datetime
from enum import StrEnum

import msgspec

from broker.model.request import Request

NEVER_APPEARED = "never-appeared"
"""The code of a request of which a complete look after the visibility window showed nothing."""


class IntentStatus(StrEnum):
    """`planned` is committed before the call. `unknown` is any ending that we did not see.

    planned -> done | unfilled | refused | failed | unknown ; unknown -> done | failed ; a `planned` intent that a
    later run finds was cut off and is settled as `unknown`.
    """

    PLANNED = "planned"
    DONE = "done"
    UNFILLED = "unfilled"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def open(self) -> bool:
        """Whether its effect is not known yet."""
        return self in (IntentStatus.PLANNED, IntentStatus.UNKNOWN)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended, with the provider's own code, message and request id where there are any.

    `hints` are zones that the provider named instead of a full one.
    """

    status: IntentStatus
    at: datetime
    reservation_id: str | None = None
    code: str = ""
    message: str = ""
    request_id: str = ""
    hints: tuple[str, ...] = ()


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """`sent` is when the intent was committed, just before the call: the effect cannot be older.

    The price is per instance-hour, frozen as decided with its source; `offer_id` is what is not tried again for a
    while when a purchase was refused.
    """

    key: str
    plan_id: str
    run_id: str
    request: Request
    sent: datetime
    outcome: Outcome | None = None
    usd_per_hour_micro: int | None = None
    price_source: str = ""
    offer_id: str = ""
    pool: str = ""
    tenants: tuple[tuple[str, float], ...] = ()
    jobs: tuple[str, ...] = ()

    @property
    def status(self) -> IntentStatus:
        return self.outcome.status if self.outcome else IntentStatus.PLANNED
