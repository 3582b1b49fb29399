"""Whether a saved plan still fits the world: what does not is refused, the rest stays as it was. Pure."""

import msgspec

from broker.model.offer import Offer
from broker.model.place import Scope
from broker.model.plan import Action, Keep, Plan, Reason, Refusal, Reserve
from broker.model.reservation import Reservation
from broker.model.snapshot import Snapshot, Trust

STALE = "stale"


def revalidated(saved: Plan, snapshot: Snapshot) -> Plan:
    """A purchase must cost no more than planned; what is changed or released must be as it was."""
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
        objection = _objection(action, offers, held)
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
