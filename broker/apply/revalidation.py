"""Whether a saved plan still fits the world: what does not is refused, the rest stays as it was. Pure."""

from decimal import Decimal

import msgspec

from broker.model.money import to_micro
from broker.model.offer import Offer, offer_id
from broker.model.place import Scope
from broker.model.plan import Action, Keep, Plan, Reason, Refusal, Release, Reserve, Resize
from broker.model.policy import Policy
from broker.model.reservation import Reservation
from broker.model.snapshot import Snapshot, Trust
from broker.purchase.pools import by_name
from broker.purchase.trust import doubts

STALE = "stale"


def revalidated(saved: Plan, snapshot: Snapshot, policy: Policy) -> Plan:
    """A purchase must cost no more than planned; what is changed or released must be as it was.

    What is given back must be idle still, and the queue and the clouds be known as when it was planned.
    """
    offers = {offer.id: offer for view in snapshot.scopes for offer in view.offers}
    held = {
        (view.scope, each.id): each
        for view in snapshot.scopes
        if view.trust is Trust.COMPLETE
        for each in view.reservations
    }
    kept: list[Action] = []
    refusals: list[Refusal] = []
    for action in saved.actions:
        objection = _objection(action, offers, held) or _still_needed(action, held, snapshot, policy)
        if objection and not isinstance(action, Keep):
            refusals.append(Refusal(guard=STALE, key=action.request.key, reason=Reason(objection)))
        else:
            kept.append(action)
    return msgspec.structs.replace(saved, actions=tuple(kept), refusals=(*saved.refusals, *refusals))


def _objection(action: Action, offers: dict[str, Offer], held: dict[tuple[Scope, str], Reservation]) -> str:
    if isinstance(action, Keep):
        return ""
    if isinstance(action, Reserve):
        then, planned = action.offer.id, action.offer.price
        return _dearer(then, planned.usd_per_hour if planned else None, offers.get(then))
    return _changed(action.reservation, held) or _dearer_growth(action, offers)


def _changed(then: Reservation, held: dict[tuple[Scope, str], Reservation]) -> str:
    now = held.get((then.place.scope, then.id))
    if now is None or now.state.gone:
        return f"{then.id} is not listed now"
    if now.count != then.count:
        return f"{then.id} has {now.count} instances now, {then.count} when the plan was made"
    return ""


def _dearer_growth(action: Action, offers: dict[str, Offer]) -> str:
    """Growth is a purchase of what is offered in the same place."""
    if not isinstance(action, Resize) or not action.request.grows:
        return ""
    grown, held = action.request.to_count - action.request.from_count, action.reservation
    then = offer_id(held.place, held.machine_type, held.kind)
    return _dearer(then, None if action.usd_per_hour is None else action.usd_per_hour / grown, offers.get(then))


def _dearer(then: str, planned: Decimal | None, now: Offer | None) -> str:
    """`planned` is dollars per instance-hour when the plan was made."""
    if now is None:
        return f"{then} is not offered now"
    if now.excluded:
        return f"{then} is not to be bought now: {now.excluded}"
    if planned is None or now.price is None:
        return f"{then} has no known price now"
    if to_micro(now.price.usd_per_hour) > to_micro(planned):
        return f"{then} costs ${now.price.usd_per_hour}/h now, ${planned}/h when the plan was made"
    return ""


def _still_needed(
    action: Action, held: dict[tuple[Scope, str], Reservation], snapshot: Snapshot, policy: Policy
) -> str:
    """Why what was to be given back is kept: it is in use by now, or nobody can say any more that it is not wanted."""
    if isinstance(action, Release):
        left = 0
    elif isinstance(action, Resize) and not action.request.grows:
        left = action.request.to_count
    else:
        return ""
    now = held[action.reservation.place.scope, action.reservation.id]
    used = max(now.used, now.associated)
    if used > left:
        return f"{used} instances of {now.id} are in use now, {left} would be left"
    doubt = doubts(by_name(policy, action.pool), now.place.scope, snapshot, policy)
    return f"{now.id} is kept because {doubt}" if doubt else ""
