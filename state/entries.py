"""What the ledger's entries say. Each is complete in itself: replaying them gives every projection."""

from datetime import datetime
from enum import StrEnum

import msgspec

from broker.model.intent import Intent, Outcome
from broker.model.ledger import CountStep, UseStep
from broker.model.place import Scope
from broker.model.reservation import Reservation


class Kind(StrEnum):
    """`moves` entries change what a plan may rest on: they advance the serial."""

    INTENT = "intent"
    OUTCOME = "outcome"
    SEEN = "seen"
    ADOPTED = "adopted"
    GONE = "gone"
    GAP = "gap"
    USE = "use"
    APPLIED = "applied"

    @property
    def moves(self) -> bool:
        """An outcome ends a decision that was counted already; use and applied plans change no supply."""
        return self in (Kind.INTENT, Kind.SEEN, Kind.ADOPTED, Kind.GONE, Kind.GAP)


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of ours as last known, and its whole count over time as known from now on.

    `confirmed` is the start of the latest look that showed it so, or the end of the call that made it so;
    `changed` is the end of our own latest call that changed it: listings may lag behind it for a while.
    """

    reservation: Reservation
    steps: tuple[CountStep, ...]
    confirmed: datetime
    changed: datetime


class Intended(msgspec.Struct, frozen=True, kw_only=True, tag="intent"):
    intent: Intent


class Concluded(msgspec.Struct, frozen=True, kw_only=True, tag="outcome"):
    key: str
    outcome: Outcome
    holding: Holding | None = None


class Witnessed(msgspec.Struct, frozen=True, kw_only=True, tag="seen"):
    """A change that nobody here asked for, or a purchase of ours that the ledger did not know (kind `adopted`)."""

    holding: Holding


class Used(msgspec.Struct, frozen=True, kw_only=True, tag="use"):
    step: UseStep
    holding: Holding


class Gap(msgspec.Struct, frozen=True, kw_only=True, tag="gap"):
    """A stretch of time of which this ledger cannot account: what was held then and is gone now is not known."""

    scopes: tuple[Scope, ...]
    since: datetime | None
    until: datetime
    text: str


class Applied(msgspec.Struct, frozen=True, kw_only=True, tag="applied"):
    plan_id: str
    serial: int
    actions: int


Body = Intended | Concluded | Witnessed | Used | Gap | Applied


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the ledger, as `state list` and `state show` give it."""

    seq: int
    at: datetime
    kind: Kind
    body: Body
    run_id: str = ""
    key: str | None = None
    scope: str | None = None
    reservation_id: str | None = None
