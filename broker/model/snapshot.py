"""What was seen of the world at one instant: all that deciding may look at."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.model.intent import Intent
from broker.model.job import Job
from broker.model.offer import Offer
from broker.model.place import Scope
from broker.model.reservation import Reservation


class Trust(StrEnum):
    """Unknown is never empty: no release follows from it."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """One job source as read. rows = kept + merged + dropped + quarantined.

    `as_of` is the source's own freshness. `problems` are one line each, with where and what to do. `read_as` is the
    format, and why it was taken for that. `dropped_why` counts what was dropped by reason, before other sources count.
    """

    source: str
    trust: Trust
    as_of: datetime | None
    jobs: tuple[Job, ...] = ()
    rows: int = 0
    kept: int = 0
    merged: int = 0
    dropped: int = 0
    dropped_why: tuple[tuple[str, int], ...] = ()
    quarantined: int = 0
    pools: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    read_as: str = ""


class EntitlementView(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs by tenant that one source promises in one pool. `problem`: why that is not known, "" where it is.

    `source` is what messages call it: the name of the file or of the program.
    """

    source: str
    pool: str
    gpus: tuple[tuple[str, int], ...] = ()
    problem: str = ""


class ScopeView(msgspec.Struct, frozen=True, kw_only=True):
    """One scope as listed. With `trust` other than complete, what is listed exists and what is not listed may.

    `reservations_at` is the instant before the listing call was sent. Offers may be known when reservations are not.
    """

    scope: Scope
    trust: Trust
    reservations_at: datetime | None
    reservations: tuple[Reservation, ...] = ()
    offers: tuple[Offer, ...] = ()
    offers_known: bool = True
    problems: tuple[str, ...] = ()


class Cooling(msgspec.Struct, frozen=True):
    """An offer that could not be filled, and until when it is not tried again; `hints` are zones named instead."""

    offer_id: str
    until: datetime
    code: str
    hints: tuple[str, ...] = ()


class Idle(msgspec.Struct, frozen=True):
    """Since when at most `used` instances of a reservation of ours have been in use, as far as the runs have seen.

    0 is "nothing has used it". A reservation may have one for each level of use below the present count.
    """

    reservation_id: str
    scope: Scope
    since: datetime
    used: int = 0


class RunLength(msgspec.Struct, frozen=True, kw_only=True):
    """So long, or shorter, was the part of a user's last `runs` finished jobs that the policy asks for."""

    user: str
    runs: int
    within_s: int


class Spend(msgspec.Struct, frozen=True, kw_only=True):
    """Upper bounds of what has been spent in the current calendar month (UTC), in US dollars.

    `unpriced` reservations of the month have no known price: they are in no figure, so each is only the least.
    """

    month_usd: Decimal
    by_tenant: tuple[tuple[str, Decimal], ...] = ()
    unpriced: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`serial` is the ledger's; `intents` are the open ones and those whose reservation still lives.

    `lineage` is the state's: only what bears it is ours to change.
    """

    now: datetime
    lineage: str
    serial: int
    sources: tuple[SourceView, ...]
    scopes: tuple[ScopeView, ...]
    intents: tuple[Intent, ...] = ()
    cooling: tuple[Cooling, ...] = ()
    idle: tuple[Idle, ...] = ()
    spend: Spend = Spend(month_usd=Decimal(0))
    frozen_by: str = ""
    run_lengths: tuple[RunLength, ...] = ()
