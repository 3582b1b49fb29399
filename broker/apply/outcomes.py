"""From what a provider said to what the ledger keeps. Pure."""

from datetime import datetime
from types import MappingProxyType

from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.money import to_micro
from broker.model.offer import offer_id
from broker.model.plan import Action, Keep, Reserve, Resize
from broker.model.request import ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation, ReservationState
from providers.base import ProviderError, Unfilled

CANCELLING = "cancelling"
"""The code of a release that the cloud has accepted and something still hinders: it is called again in later runs."""

NOT_SHOWN = "not-shown"
"""The code of a change that the cloud has accepted and does not show yet."""

PARTLY = "partly"
"""The code of a purchase that is done, and of which the cloud says itself that it delivered less than was asked for."""

_STATUS = MappingProxyType(
    {
        "unfilled": IntentStatus.UNFILLED,
        "quota": IntentStatus.REFUSED,
        "unsupported": IntentStatus.REFUSED,
        "denied": IntentStatus.REFUSED,
        "conflict": IntentStatus.REFUSED,
        "not-found": IntentStatus.REFUSED,
    }
)


def after_yes(request: Request, reservation: Reservation, at: datetime) -> Outcome:
    """The cloud agreed; it is done when the reservation shows it."""
    hindrance = _not_shown(request, reservation)
    if hindrance:
        message = "; ".join(reservation.notes) or hindrance
        code = CANCELLING if reservation.state is ReservationState.CANCELLING else NOT_SHOWN
        return Outcome(status=IntentStatus.UNKNOWN, at=at, reservation_id=reservation.id, code=code, message=message)
    code, message = _short_by(request, reservation)
    return Outcome(status=IntentStatus.DONE, at=at, reservation_id=reservation.id, code=code, message=message)


def _short_by(request: Request, reservation: Reservation) -> tuple[str, str]:
    """Code and message of a purchase that came to less; one that is still pending may yet become whole."""
    asked = _bought(request)
    delivered = reservation.count - reservation.missing
    if reservation.state is not ReservationState.ACTIVE or delivered >= asked:
        return "", ""
    return PARTLY, f"{delivered} of {asked} instances were delivered; only those count as supply"


def _bought(request: Request) -> int:
    """Instances that the reservation is to hold after a purchase; 0 for what buys nothing."""
    match request:
        case ReserveRequest(count=count):
            return count
        case ResizeRequest(to_count=count) if request.grows:
            return count
    return 0


def _not_shown(request: Request, reservation: Reservation) -> str:
    if isinstance(request, ReleaseRequest) and not reservation.state.gone:
        return "accepted, not gone yet"
    if isinstance(request, ResizeRequest) and reservation.count != request.to_count:
        return f"accepted, still shown with {reservation.count}"
    return ""


def after_error(error: Exception, at: datetime) -> Outcome:
    """What may have acted is unknown, and so is an error that no adapter should let through."""
    if not isinstance(error, ProviderError):
        return Outcome(status=IntentStatus.UNKNOWN, at=at, code=type(error).__name__, message=str(error))
    status = IntentStatus.UNKNOWN if error.may_have_acted else _STATUS.get(error.kind, IntentStatus.FAILED)
    return Outcome(
        status=status,
        at=at,
        code=error.code or error.kind,
        message=error.message,
        request_id=error.request_id,
        hints=error.hints if isinstance(error, Unfilled) else (),
    )


def intent_of(action: Action, plan_id: str, run_id: str, sent: datetime) -> Intent:
    """What is committed before the call."""
    assert not isinstance(action, Keep)
    micro, source = _price(action)
    return Intent(
        key=action.request.key,
        plan_id=plan_id,
        run_id=run_id,
        request=action.request,
        sent=sent,
        usd_per_hour_micro=micro,
        price_source=source,
        offer_id=_offer_id(action),
        pool=action.pool,
        tenants=action.tenants,
        jobs=action.jobs,
    )


def _price(action: Action) -> tuple[int | None, str]:
    """Micro-dollars per instance-hour."""
    if isinstance(action, Reserve) and action.offer.price:
        return to_micro(action.offer.price.usd_per_hour), action.offer.price.source
    if isinstance(action, Resize) and action.usd_per_hour is not None:
        grown = action.request.to_count - action.request.from_count
        return (to_micro(action.usd_per_hour / grown), "plan") if grown else (None, "")
    return None, ""


def _offer_id(action: Action) -> str:
    if isinstance(action, Reserve):
        return action.offer.id
    if isinstance(action, Resize):
        held = action.reservation
        return offer_id(held.place, held.machine_type, held.kind)
    return ""
