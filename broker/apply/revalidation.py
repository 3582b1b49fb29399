"""Whether a saved plan still fits the world: what does not is refused, the rest stays as it was. Pure."""

import msgspec

from broker.model.offer import Offer
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
        return _dearer(action, offers.get(action.offer.id))
    then = action.reservation
    now = held.get((then.place.scope, then.id))
    if now is None or now.state.gone:
        return f"{then.id} is not listed now"
    if now.count != then.count:
        return f"{then.id} has {now.count} instances now, {then.count} when the plan was made"
    return ""


def _dearer(action: Reserve, now: Offer | None) -> str:
    then = action.offer
    if now is None:
        return f"{then.id} is not offered now"
    if now.excluded:
        return f"{then.id} is not to be bought now: {now.excluded}"
    if then.price is None or now.price is None:
        return f"{then.id} has no known price now"
    if now.price.usd_per_hour > then.price.usd_per_hour:
        return f"{then.id} costs ${now.price.usd_per_hour}/h now, ${then.price.usd_per_hour}/h when the plan was made"
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
