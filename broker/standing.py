"""Where we stand by the ledger alone: what is held, what is not settled, and what a person should look at. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from broker.model.intent import Intent, IntentStatus
from broker.model.ledger import Heartbeat
from broker.model.money import from_micro
from broker.model.place import Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import Idle

ENDING_SOON = timedelta(hours=6)


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of ours with what the ledger knows beside it. `usd_per_hour` is for all of its instances.

    `room` is how many instances could start in it now, as far as is known; `no_room`: why none, "" where some could.
    """

    reservation: Reservation
    pool: str
    tenants: tuple[tuple[str, float], ...]
    jobs: tuple[str, ...]
    usd_per_hour: Decimal | None
    idle_since: datetime | None
    room: int = 0
    no_room: str = ""


class Unsettled(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose outcome nobody knows yet."""

    key: str
    what: str
    where: str
    sent: datetime
    status: str
    reservation_id: str | None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    lineage: str
    serial: int
    heartbeat: Heartbeat | None
    held: tuple[Held, ...]
    others: tuple[Reservation, ...]
    unsettled: tuple[Unsettled, ...]
    warnings: tuple[str, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger holds. `others` are reservations in our clouds that another buyer owns.

    `quiet_until`: nothing is bought before then, because this state was put back from a copy or adopted.
    """

    now: datetime
    lineage: str
    serial: int
    heartbeat: Heartbeat | None
    reservations: Sequence[Reservation]
    others: Sequence[Reservation]
    intents: Sequence[Intent]
    idle: Sequence[Idle]
    quiet_until: datetime | None = None


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What all of it costs: None where a price is not known, and then `usd_per_hour_at_least` is without it."""

    usd_per_hour: Decimal | None
    usd_per_hour_at_least: Decimal
    unpriced: int


def rate_of(held: Sequence[Held]) -> Rate:
    known = [each.usd_per_hour for each in held if each.usd_per_hour is not None]
    total, unpriced = sum(known, Decimal(0)), len(held) - len(known)
    return Rate(usd_per_hour=None if unpriced else total, usd_per_hour_at_least=total, unpriced=unpriced)


def standing(known: Known) -> Standing:
    by_key = {intent.key: intent for intent in known.intents}
    idle = {(each.reservation_id, each.scope): each for each in known.idle if each.used == 0}
    held = tuple(_held(each, by_key, idle, known.now) for each in known.reservations if not each.state.gone)
    unsettled = tuple(_unsettled(intent) for intent in known.intents if intent.status.open)
    return Standing(
        now=known.now,
        lineage=known.lineage,
        serial=known.serial,
        heartbeat=known.heartbeat,
        held=held,
        others=tuple(each for each in known.others if not each.state.gone),
        unsettled=unsettled,
        warnings=tuple(_warnings(known, held, unsettled)),
    )


def _held(
    reservation: Reservation, by_key: dict[str, Intent], idle: dict[tuple[str, Scope], Idle], now: datetime
) -> Held:
    intent = by_key.get(reservation.owner.key) if reservation.owner else None
    since = idle.get((reservation.id, reservation.place.scope))
    no_room = _no_room(reservation, now)
    return Held(
        reservation=reservation,
        pool=intent.pool if intent else "",
        tenants=intent.tenants if intent else (),
        jobs=intent.jobs if intent else (),
        usd_per_hour=_rate(reservation, intent),
        idle_since=since.since if since else None,
        room=0 if no_room else reservation.count - reservation.missing - reservation.used,
        no_room=no_room,
    )


def _no_room(reservation: Reservation, now: datetime) -> str:
    """Why an instance that names it could not start in it now."""
    opens, closes = reservation.usable_from, reservation.usable_until
    if reservation.state is not ReservationState.ACTIVE:
        return f"it is {reservation.state}, not active"
    if opens is not None and now < opens:
        return f"it is not usable before {opens:%Y-%m-%d %H:%M} UTC"
    if closes is not None and now >= closes:
        return f"it is not usable since {closes:%Y-%m-%d %H:%M} UTC"
    if reservation.used >= reservation.count - reservation.missing:
        return "all of it is in use" if reservation.used else "none of its instances is there"
    return ""


def _rate(reservation: Reservation, intent: Intent | None) -> Decimal | None:
    if intent and intent.usd_per_hour_micro is not None:
        return from_micro(intent.usd_per_hour_micro) * reservation.count
    return reservation.usd_per_hour * reservation.count if reservation.usd_per_hour is not None else None


def _unsettled(intent: Intent) -> Unsettled:
    return Unsettled(
        key=intent.key,
        what=_what(intent.request),
        where=str(intent.request.place),
        sent=intent.sent,
        status=intent.status.value,
        reservation_id=getattr(intent.request, "reservation_id", None),
    )


def _what(request: Request) -> str:
    match request:
        case ReserveRequest():
            return f"reserve {request.count} x {request.machine_type}"
        case ResizeRequest():
            return f"resize {request.reservation_id} from {request.from_count} to {request.to_count}"
        case EndRequest():
            return f"end {request.reservation_id} at {request.to_end:%Y-%m-%d %H:%M} UTC"
        case ReleaseRequest():
            return f"release {request.reservation_id}"


def _warnings(known: Known, held: Sequence[Held], unsettled: Sequence[Unsettled]) -> Iterator[str]:
    yield from (note for each in held for note in _notes(each))
    yield from (note for each in held if (note := _short(each.reservation, known.intents)))
    if known.heartbeat:
        as_of = f"as of {known.heartbeat.at:%Y-%m-%d %H:%M} UTC"
        yield from (f"{note} ({as_of})" for note in known.heartbeat.idle)
    if known.quiet_until and known.now < known.quiet_until:
        yield (
            f"nothing is bought before {known.quiet_until:%Y-%m-%d %H:%M} UTC: this state was put back or adopted, and "
            "waits until every configured cloud was listed (broker check says which cannot be)"
        )
    yield from _ending(known, held)
    endless = [each.reservation for each in held if each.reservation.ends is None]
    if endless:
        clouds = ", ".join(sorted({each.place.scope.provider.value for each in endless}))
        yield f"nothing but a release of ours ends {len(endless)} of {len(held)} reservations ({clouds})"
    if unsettled:
        yield f"{len(unsettled)} not settled: they count as supply until the next `broker run` finds out"


def _notes(held: Held) -> Iterator[str]:
    reservation = held.reservation
    yield from (f"{reservation.id}: {note}" for note in reservation.notes)
    if reservation.over:
        yield f"{reservation.id}: {reservation.over} instances run beyond the reserved number, without a guarantee"


def _short(reservation: Reservation, intents: Sequence[Intent]) -> str:
    """Less than the newest request of ours that was done made it: a cloud may take an order, and deliver a part."""
    asked = _asked(reservation, intents)
    if reservation.state is not ReservationState.ACTIVE or asked is None or reservation.count >= asked:
        return ""
    held = f"{reservation.count} of {asked} instances that were bought are held"
    return f"{reservation.id}: {held}; only those count as supply, and only those are paid for"


def _asked(reservation: Reservation, intents: Sequence[Intent]) -> int | None:
    """The count that we set last, None where that is not known."""
    key = reservation.owner.key if reservation.owner else ""
    ours = [intent for intent in intents if intent.status is IntentStatus.DONE and _is_about(intent, reservation, key)]
    newest = max(ours, key=lambda intent: intent.sent, default=None)
    match newest.request if newest else None:
        case ReserveRequest(count=count) | ResizeRequest(to_count=count):
            return count
    return None


def _is_about(intent: Intent, reservation: Reservation, key: str) -> bool:
    match intent.request:
        case ReserveRequest():
            return intent.key == key
        case ResizeRequest():
            same = intent.request.reservation_id == reservation.id
            return same and intent.request.place.scope == reservation.place.scope
    return False


def _ending(known: Known, held: Sequence[Held]) -> Iterator[str]:
    """An end that comes near means that no run has renewed it."""
    for each in held:
        ends = each.reservation.ends
        if ends is not None and ends - known.now < ENDING_SOON:
            last = f"the last run was {known.heartbeat.at:%Y-%m-%d %H:%M} UTC" if known.heartbeat else "no run yet"
            yield f"{each.reservation.id} ends at {ends:%Y-%m-%d %H:%M} UTC unless a run renews it ({last})"
