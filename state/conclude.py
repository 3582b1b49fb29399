"""What an outcome makes of the reservation that the request was about. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from broker.model.intent import NEVER_APPEARED, Intent, IntentStatus, Outcome
from broker.model.ledger import CountStep
from broker.model.request import ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from state.entries import Holding
from state.steps import moved, opened, vanished, widened
from state.witness import first_holding, price_of

LISTED_WHEN_GONE = timedelta(minutes=30)
"""So long clouds that list what is gone do it at least; the others may not do it at all."""


def allowed(before: IntentStatus, after: IntentStatus) -> bool:
    """Done is final. An open intent may end in any way; a failed one may still turn out done, when it shows up late."""
    return before.open or (before is not IntentStatus.DONE and after is IntentStatus.DONE)


def tells_more(intent: Intent, outcome: Outcome) -> bool:
    """Whether the outcome is news: an unknown that stays unknown for the same cause is not."""
    before = intent.outcome
    return before is None or (before.status, before.code) != (outcome.status, outcome.code)


def holding_after(
    intent: Intent,
    outcome: Outcome,
    reservation: Reservation | None,
    known: Holding | None,
    others: Iterable[Intent] = (),
) -> Holding | None:
    """`others` are open intents: what they ask of the same reservation may have held until this."""
    if reservation is None:
        return _perhaps_held(intent, outcome)
    if known:
        reservation = _used_as(known.reservation, reservation)
    if isinstance(intent.request, ReserveRequest):
        bought = first_holding(reservation, intent, began=intent.sent, now=outcome.at)
        return msgspec.structs.replace(bought, confirmed=outcome.at, changed=outcome.at)
    before = known or first_holding(reservation, None, began=intent.sent, now=outcome.at)
    reservation = _as_known(before.reservation, reservation)
    price = price_of(intent) if isinstance(intent.request, ResizeRequest) and intent.request.grows else None
    steps = moved(before.steps, reservation, earliest=intent.sent, latest=outcome.at, price=price)
    if len(steps) > len(before.steps):
        steps = (*steps[:-1], *_doubts(before, intent, others, steps[-1].latest), steps[-1])
    return Holding(
        reservation=reservation,
        steps=steps if reservation.billed_until or outcome.status.open else widened(steps, intent.sent),
        confirmed=outcome.at,
        changed=outcome.at,
    )


def _perhaps_held(intent: Intent, outcome: Outcome) -> Holding | None:
    """A purchase that nobody looked for until clouds no longer list what is gone may have been there meanwhile.

    It may have cost nothing or all until it ended: the report says both. It has no id but its key.
    """
    request = intent.request
    if outcome.code != NEVER_APPEARED or not isinstance(request, ReserveRequest):
        return None
    if outcome.at - intent.sent <= LISTED_WHEN_GONE:
        return None
    until = min(request.end or outcome.at, outcome.at)
    held = Reservation(
        id=request.key,
        place=request.place,
        machine_type=request.machine_type,
        count=request.count,
        state=ReservationState.EXPIRED,
        raw_state="never seen",
        owner=Owner(request.lineage, request.key),
    )
    begun = opened(held, earliest=intent.sent, latest=until, price=price_of(intent))
    steps = vanished((begun,), earliest=intent.sent, latest=until)
    return Holding(reservation=held, steps=steps, confirmed=intent.sent, changed=intent.sent)


def _doubts(before: Holding, intent: Intent, others: Iterable[Intent], latest: datetime) -> list[CountStep]:
    """Counts that may have held: set by a request whose effect was not seen before the next change."""
    last = before.steps[-1]
    return [
        msgspec.structs.replace(last, count=request.to_count, earliest=max(other.sent, last.earliest), latest=latest)
        for other in others
        if other.key != intent.key and isinstance(request := other.request, ResizeRequest)
        if request.reservation_id == before.reservation.id and request.place.scope == before.reservation.place.scope
    ]


def _used_as(before: Reservation, after: Reservation) -> Reservation:
    """Use is what looks see: taken over from an outcome, the next look would find nothing new, and note no change."""
    used = min(before.used, after.count)
    return msgspec.structs.replace(after, used=used, over=before.over, associated=before.associated)


def _as_known(before: Reservation, after: Reservation) -> Reservation:
    """A reservation that is gone keeps what was known of it: the cloud may say no more than that it is gone."""
    if not after.state.gone:
        return after
    return msgspec.structs.replace(
        before,
        state=after.state,
        raw_state=after.raw_state,
        billed_from=after.billed_from or before.billed_from,
        billed_until=after.billed_until,
        used=0,
        over=0,
        associated=0,
    )
