"""A plan that gives back what a person names, or everything that is ours. Pure."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from broker.errors import UsageError
from broker.model.intent import Intent
from broker.model.money import from_micro
from broker.model.plan import Plan, Reason, Release
from broker.model.policy import Policy
from broker.model.request import ReleaseRequest
from broker.model.reservation import Reservation
from broker.model.snapshot import Snapshot
from broker.purchase.identity import digest, with_keys

_LIFETIME = timedelta(minutes=30)


def wind_down(snapshot: Snapshot, policy: Policy, ids: Sequence[str], *, all_ours: bool) -> Plan:
    """Raises UsageError for an id that is not ours, or is in no listing."""
    ours = _ours(snapshot)
    chosen = tuple(ours) if all_ours else tuple(_named(each, ours, snapshot) for each in dict.fromkeys(ids))
    plan_id = digest(("release", snapshot.lineage, snapshot.serial, [each.id for each in chosen]))
    actions = tuple(_release(each, snapshot) for each in chosen)
    return Plan(
        id=plan_id,
        lineage=snapshot.lineage,
        serial=snapshot.serial,
        made=snapshot.now,
        expires=snapshot.now + _LIFETIME,
        snapshot_digest=digest(snapshot),
        policy_digest=digest(policy),
        actions=with_keys(actions, snapshot.lineage, plan_id),
    )


def _ours(snapshot: Snapshot) -> list[Reservation]:
    return [
        each
        for view in snapshot.scopes
        for each in view.reservations
        if each.owner and each.owner.lineage == snapshot.lineage and not each.state.gone
    ]


def _named(reservation_id: str, ours: Sequence[Reservation], snapshot: Snapshot) -> Reservation:
    found = [each for each in ours if each.id == reservation_id]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        where = ", ".join(str(each.place) for each in found)
        raise UsageError(f"{reservation_id} is in several places: {where}", next_step="Release them in their clouds")
    what = _why_not(reservation_id, snapshot)
    raise UsageError(f"{reservation_id} {what}; nothing was done", next_step="See the ids: broker status")


def _why_not(reservation_id: str, snapshot: Snapshot) -> str:
    """Clouds go on listing what was given back for a while."""
    listed = [each for view in snapshot.scopes for each in view.reservations if each.id == reservation_id]
    if not listed:
        return "is in no listing of the configured clouds"
    ours = [each for each in listed if each.owner and each.owner.lineage == snapshot.lineage]
    return f"is given back already ({ours[0].state})" if ours else "is not this state's: another buyer owns it"


def _release(reservation: Reservation, snapshot: Snapshot) -> Release:
    request = ReleaseRequest(key="", lineage=snapshot.lineage, place=reservation.place, reservation_id=reservation.id)
    intent = next((each for each in snapshot.intents if reservation.owner and each.key == reservation.owner.key), None)
    return Release(
        pool=intent.pool if intent else "",
        reasons=(Reason(f"asked for; {reservation.used} of {reservation.count} instances are in use"),),
        usd_per_hour=_freed(reservation, intent),
        request=request,
        reservation=reservation,
    )


def _freed(reservation: Reservation, intent: Intent | None) -> Decimal | None:
    """The change of the rate: what it was bought at, else what is known of it."""
    if intent and intent.usd_per_hour_micro is not None:
        return -from_micro(intent.usd_per_hour_micro) * reservation.count
    return -reservation.usd_per_hour * reservation.count if reservation.usd_per_hour is not None else None
