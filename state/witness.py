"""What a listing means to the ledger: what changed without us, what is ours and was not known, what is gone. Pure.

A listing may lag behind our own calls, so within the visibility window after one it proves neither an old count nor
an absence.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.ledger import CountStep, UseStep
from broker.model.request import ReserveRequest
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import ScopeView, Trust
from state.entries import Body, Concluded, Holding, Kind, Used, Witnessed
from state.steps import Price, moved, opened, vanished

Change = tuple[Kind, Body]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One scope's listing: begun at `began`, known at `now`; `window` is how long the cloud may lag."""

    began: datetime
    now: datetime
    window: timedelta
    complete: bool

    @classmethod
    def of(cls, view: ScopeView, now: datetime, window: timedelta) -> "Look | None":
        if view.reservations_at is None or view.trust is Trust.UNKNOWN:
            return None
        return cls(began=view.reservations_at, now=now, window=window, complete=view.trust is Trust.COMPLETE)

    def lags(self, holding: Holding) -> bool:
        return self.began <= holding.changed + self.window


def price_of(intent: Intent | None) -> Price:
    if intent is None:
        return Price()
    return Price(usd_per_hour_micro=intent.usd_per_hour_micro, source=intent.price_source, key=intent.key)


def ours(view: ScopeView, lineage: str) -> tuple[Reservation, ...]:
    return tuple(r for r in view.reservations if r.owner is not None and r.owner.lineage == lineage)


def changes(
    listed: tuple[Reservation, ...], known: Mapping[str, Holding], intents: Mapping[str, Intent], look: Look
) -> Iterator[Change]:
    """What the ledger must learn from a listing of ours; nothing when it knows it all."""
    for reservation in listed:
        holding = known.get(reservation.id)
        if holding is None:
            yield from _unknown(reservation, intents, look)
        elif not (holding.reservation.state.gone and reservation.state.gone):
            yield from _known(reservation, holding, look)
    yield from (_gone(holding, look) for holding in missing(listed, known, look) if not look.lags(holding))


def confirms(listed: tuple[Reservation, ...], known: Mapping[str, Holding], look: Look) -> bool:
    """Whether all that is held there was really seen as it is: nothing missing, nothing that may be lagging."""
    lagging = any(look.lags(holding) for holding in known.values())
    return look.complete and not lagging and not missing(listed, known, look)


def missing(listed: tuple[Reservation, ...], known: Mapping[str, Holding], look: Look) -> list[Holding]:
    """Held as far as we knew, and not in a complete listing."""
    if not look.complete:
        return []
    shown = {reservation.id for reservation in listed}
    return [h for which, h in known.items() if which not in shown and not h.reservation.state.gone]


def _unknown(reservation: Reservation, intents: Mapping[str, Intent], look: Look) -> Iterator[Change]:
    """A purchase of ours that the ledger does not hold. One that failed was never held: settling deals with it."""
    if reservation.state is ReservationState.FAILED or reservation.owner is None:
        return
    intent = intents.get(reservation.owner.key)
    holding = first_holding(reservation, intent, began=look.began, now=look.now)
    yield _found(intent, holding, look.now)
    yield Kind.USE, Used(step=use_of(reservation, look.now), holding=holding)


def first_holding(reservation: Reservation, intent: Intent | None, *, began: datetime, now: datetime) -> Holding:
    earliest = intent.sent if intent else None
    held = _as_asked(reservation, intent)
    steps: tuple[CountStep, ...] = (opened(held, earliest=earliest, latest=now, price=price_of(intent)),)
    if reservation.state.gone:
        until = min(reservation.ends or now, now)
        steps = moved(steps, reservation, earliest=steps[0].earliest, latest=until)
    return Holding(reservation=reservation, steps=steps, confirmed=began, changed=steps[0].earliest)


def _as_asked(reservation: Reservation, intent: Intent | None) -> Reservation:
    """Of one first seen when it is gone a cloud may state no count any more: it was at most what was asked for."""
    stated = reservation.count or not reservation.state.gone or reservation.state is ReservationState.FAILED
    if stated or intent is None or not isinstance(intent.request, ReserveRequest):
        return reservation
    return msgspec.structs.replace(reservation, count=intent.request.count)


def _found(intent: Intent | None, holding: Holding, now: datetime) -> Change:
    if intent is None or intent.status is IntentStatus.DONE or not isinstance(intent.request, ReserveRequest):
        return Kind.ADOPTED, Witnessed(holding=holding)
    outcome = Outcome(status=IntentStatus.DONE, at=now, reservation_id=holding.reservation.id)
    return Kind.ADOPTED, Concluded(key=intent.key, outcome=outcome, holding=holding)


def _known(reservation: Reservation, holding: Holding, look: Look) -> Iterator[Change]:
    before = holding.reservation
    if look.lags(holding) and (reservation.count != before.count or before.state.gone):
        return
    seen = Holding(
        reservation=reservation,
        steps=_moved(holding, reservation, look),
        confirmed=look.began,
        changed=holding.changed,
    )
    if _without_use(reservation) != _without_use(before):
        yield Kind.SEEN, Witnessed(holding=seen)
    if (reservation.used, reservation.over, reservation.associated) != (before.used, before.over, before.associated):
        yield Kind.USE, Used(step=use_of(reservation, look.now), holding=seen)


def _moved(holding: Holding, reservation: Reservation, look: Look) -> tuple[CountStep, ...]:
    return moved(holding.steps, reservation, earliest=holding.confirmed, latest=look.now)


def _without_use(reservation: Reservation) -> Reservation:
    return msgspec.structs.replace(reservation, used=0, over=0, associated=0)


def use_of(reservation: Reservation, at: datetime) -> UseStep:
    return UseStep(
        reservation_id=reservation.id,
        scope=reservation.place.scope,
        at=at,
        used=min(reservation.used, reservation.count),
    )


def _gone(holding: Holding, look: Look) -> Change:
    ends = holding.reservation.ends
    by_itself = ends is not None and ends <= look.now
    state = ReservationState.EXPIRED if by_itself else ReservationState.RELEASED
    return Kind.GONE, Witnessed(
        holding=Holding(
            reservation=msgspec.structs.replace(holding.reservation, state=state, raw_state="not listed", used=0),
            steps=vanished(holding.steps, earliest=holding.confirmed, latest=look.now),
            confirmed=look.began,
            changed=holding.changed,
        )
    )
