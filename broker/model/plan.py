"""A plan is inert data: what would be done, why, at what cost. Apply does exactly it."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.model.offer import Offer
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation


class Reversibility(StrEnum):
    FREE = "free"
    COMMITTED = "committed"
    IRREVERSIBLE = "irreversible"


class Reason(msgspec.Struct, frozen=True):
    """One line for a person, and the numbers in it for a program (name -> value, units in the name)."""

    text: str
    numbers: tuple[tuple[str, str], ...] = ()


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    """What every action says.

    `usd_per_hour` is the change of the rate (negative for a release). `usd_idle_at_worst` is what is paid if nothing
    ever uses it, over `hours`, the shortest time after which it could be given back or ends by itself.
    """

    pool: str
    reasons: tuple[Reason, ...]
    usd_per_hour: Decimal | None
    usd_idle_at_worst: Decimal = Decimal(0)
    hours: Decimal = Decimal(0)
    reversibility: Reversibility = Reversibility.FREE
    committed_until: datetime | None = None
    tenants: tuple[tuple[str, float], ...] = ()
    jobs: tuple[str, ...] = ()


class Reserve(_Action, frozen=True, kw_only=True, tag="reserve"):
    request: ReserveRequest
    offer: Offer


class Resize(_Action, frozen=True, kw_only=True, tag="resize"):
    request: ResizeRequest
    reservation: Reservation


class Extend(_Action, frozen=True, kw_only=True, tag="extend"):
    """Renewal of an end date: costs nothing by itself, and keeps the rate going until the new end."""

    request: EndRequest
    reservation: Reservation


class Release(_Action, frozen=True, kw_only=True, tag="release"):
    request: ReleaseRequest
    reservation: Reservation


class Keep(_Action, frozen=True, kw_only=True, tag="keep"):
    reservation: Reservation


Action = Reserve | Resize | Extend | Release | Keep


class NotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that was weighed and not bought, and the rule or number that decided it."""

    pool: str
    offer_id: str
    reason: Reason


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A guard's no to what `request` asks for (by its key too; "" and None for the whole plan)."""

    guard: str
    key: str
    reason: Reason
    forceable: bool = False
    request: Request | None = None


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """Demand that no action of the plan serves, and why."""

    pool: str
    gpus: int
    jobs: tuple[str, ...]
    reason: Reason


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`serial` is the ledger's at observation; apply refuses a plan whose state has moved on.

    `id` is a digest of what was seen and decided: same snapshot, same plan, same keys.
    """

    id: str
    lineage: str
    serial: int
    made: datetime
    expires: datetime
    snapshot_digest: str
    policy_digest: str
    actions: tuple[Action, ...]
    not_taken: tuple[NotTaken, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    notes: tuple[str, ...] = ()
    format_version: int = 1

    @property
    def changes(self) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if not isinstance(action, Keep))
