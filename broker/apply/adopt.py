"""Take up what we own in the clouds when the state file is lost."""

from collections.abc import Iterable, Mapping, Sized
from datetime import datetime, timedelta

import msgspec

from broker.errors import StateError
from broker.model.place import Scope
from broker.model.reservation import Reservation
from broker.model.snapshot import ScopeView, Trust
from providers.base import VISIBILITY_WINDOW
from state.entries import Gap
from state.store import Store


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """`unread` are scopes whose content is not known yet: a later run that can list them adopts what is there.

    `doubt`: nothing bears the lineage while something bears another, which may be a slip of the pen; "" otherwise.
    """

    lineage: str
    adopted: tuple[Reservation, ...]
    unread: tuple[Scope, ...]
    quiet_until: datetime
    doubt: str = ""


def lineages(views: Iterable[ScopeView]) -> dict[str, tuple[Reservation, ...]]:
    """Everything that bears a broker's mark, by lineage."""
    found: dict[str, tuple[Reservation, ...]] = {}
    for reservation in (r for view in views for r in view.reservations if r.owner and not r.state.gone):
        assert reservation.owner is not None
        found[reservation.owner.lineage] = (*found.get(reservation.owner.lineage, ()), reservation)
    return found


def choose(views: Iterable[ScopeView], asked: str | None = None) -> str:
    """The lineage to take up. Raises StateError if there is none, or if there are several and none was asked for."""
    found = lineages(views)
    if asked is not None:
        return asked
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise StateError(
            "no cloud shows anything that a broker bought",
            next_step="Check that every account and region is configured; broker init makes a new state",
        )
    raise StateError(
        f"several brokers bought here: {_listed(found)}", next_step="Name one: broker state adopt --lineage LINEAGE"
    )


def _listed(found: Mapping[str, Sized]) -> str:
    return "; ".join(f"{lineage} ({len(held)} reservations)" for lineage, held in sorted(found.items()))


def _doubt(lineage: str, found: Mapping[str, Sized]) -> str:
    """A lineage that was asked for is taken up all the same: what it bought a moment ago may not be visible yet."""
    if not found or lineage in found:
        return ""
    there = f"nothing bears the lineage {lineage}; there is: {_listed(found)}"
    return f"{there}. If one of these was meant, move the state away and adopt again"


def adopt(
    store: Store, views: Iterable[ScopeView], now: datetime, *, window: timedelta = VISIBILITY_WINDOW
) -> Adoption:
    """Record what is found, what cannot be known, and until when nothing may be bought.

    A purchase just before the loss may not be visible yet, so buying waits out the visibility window; what appears
    in it is adopted by the next run. What was held and released before is in no listing: an unknown gap.
    """
    views = tuple(views)
    unread = tuple(view.scope for view in views if view.trust is not Trust.COMPLETE)
    store.be_quiet(now + window)
    store.record_gap(
        Gap(
            scopes=tuple(view.scope for view in views),
            since=None,
            until=now,
            text=f"state adopted at {now:%Y-%m-%d %H:%M} UTC: what was held before and is gone is not known",
        )
    )
    store.witness(views, now, window=window)
    adopted = tuple(r for r in store.reservations() if r.owner and r.owner.lineage == store.lineage)
    doubt = _doubt(store.lineage, lineages(views))
    return Adoption(lineage=store.lineage, adopted=adopted, unread=unread, quiet_until=now + window, doubt=doubt)
