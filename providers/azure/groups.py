"""Capacity reservation groups: made for a purchase, listed with all that is in them, cleared away when empty."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from broker.model.place import Scope
from broker.model.reservation import Reservation
from providers.azure import states
from providers.azure.calls import Calls
from providers.azure.names import Spot, owner_of, region_of
from providers.azure.wire import GroupBody, ReservationBody, parsed
from providers.base import BrokenReply, Conflict, NotFound, ProviderError

PUT = "capacityReservationGroups.createOrUpdate"
GET = "capacityReservationGroups.get"
LIST = "capacityReservationGroups.listBySubscription"
DELETE = "capacityReservationGroups.delete"
MEMBERS = "capacityReservations.listByCapacityReservationGroup"

WORKERS = 8
"""Groups that are read at a time: each takes two calls."""


class Member(msgspec.Struct, frozen=True):
    """A group's place in the subscription, and the group."""

    spot: Spot
    group: GroupBody


def make(calls: Calls, spot: Spot, region: str, zone: str, tags: dict[str, str]) -> None:
    """Repeatable, and costs nothing: whatever fails here, nothing was bought."""
    body = {
        "location": region,
        "tags": tags,
        "properties": {"reservationType": "Targeted"},
        **({"zones": [zone]} if zone else {}),
    }
    try:
        calls.read(PUT, lambda c: c.capacity_reservation_groups.create_or_update(spot.resource_group, spot.group, body))
    except ProviderError as error:
        if not error.may_have_acted:
            raise
        raise Conflict(PUT, code=error.code, message=error.message, request_id=error.request_id) from error


def every(calls: Calls, scope: Scope) -> tuple[Member, ...]:
    """All groups of the region, all pages, whoever owns them. Azure lists every region at once."""
    bodies = calls.listed(LIST, lambda c, options: c.capacity_reservation_groups.list_by_subscription(**options))
    members = (_member(parsed(LIST, body, GroupBody)) for body in bodies)
    return tuple(m for m in members if region_of(m.group.location) == scope.region)


def reservations(calls: Calls, scope: Scope, now: datetime) -> tuple[Reservation, ...]:
    """Everything in every group of the region, as it is used now. Raises rather than return part of it."""
    members = every(calls, scope)
    with ThreadPoolExecutor(WORKERS) as pool:
        contents = pool.map(lambda member: tuple(_contents(calls, member, scope, now)), members)
        return tuple(found for content in contents for found in content)


def drop(calls: Calls, spot: Spot) -> bool:
    """Delete an empty group; False while Azure will not let it go. One that is gone already is success."""

    def begin(client: Any, polling: Any) -> Any:
        return client.capacity_reservation_groups.begin_delete(spot.resource_group, spot.group, polling=polling)

    try:
        calls.past_conflicts(lambda: calls.operate_again(DELETE, begin))
    except NotFound:
        return True
    except Conflict:
        return False
    return True


def sweep(calls: Calls, scope: Scope, lineage: str) -> None:
    """Delete what this state's interrupted purchases and releases left: groups that are listed as empty.

    Safe at any time, because Azure refuses to delete a group that holds a reservation, listed or not; a purchase on
    its way into one that is gone fails. What cannot be deleted waits for the next sweep.
    """
    with suppress(ProviderError):
        for member in every(calls, scope):
            owner = owner_of(member.spot.group, member.group.tags or {})
            if owner and owner.lineage == lineage and not member.group.properties.capacity_reservations:
                drop(calls, member.spot)


def _contents(calls: Calls, member: Member, scope: Scope, now: datetime) -> Iterator[Reservation]:
    """Nothing for a group that went while we were looking."""
    spot = member.spot
    with suppress(NotFound):
        bodies = calls.listed(MEMBERS, lambda c, options: _members(c, spot, options))
        group = calls.read(GET, lambda c: _viewed(c, spot)) if bodies else None
        views = _views(parsed(GET, group, GroupBody)) if group else {}
        for raw in bodies:
            body = parsed(MEMBERS, raw, ReservationBody)
            name = name_in(MEMBERS, body)
            seen = _whole(states.with_view(body, views.get(name.lower())))
            at = Spot(spot.resource_group, spot.group, name)
            yield states.reservation(seen, at, scope, member.group, now)


def _members(client: Any, spot: Spot, options: dict[str, Any]) -> Any:
    group = (spot.resource_group, spot.group)
    return client.capacity_reservations.list_by_capacity_reservation_group(*group, **options)


def _whole(body: ReservationBody) -> ReservationBody:
    """Without its size and count it would count as nothing, and be bought again."""
    if not body.sku.name or (states.current_capacity(body) is None and body.sku.capacity is None):
        raise BrokenReply(MEMBERS, message="a capacity reservation without its size or count")
    return body


def _viewed(client: Any, spot: Spot) -> Any:
    return client.capacity_reservation_groups.get(spot.resource_group, spot.group, expand="instanceView").as_dict()


def _views(group: GroupBody) -> dict[str, Any]:
    view = group.properties.instance_view
    return {(v.name or "").lower(): v for v in (view.capacity_reservations if view else None) or ()}


def _member(group: GroupBody) -> Member:
    if not group.id or not group.location:
        raise BrokenReply(LIST, message="a capacity reservation group without an id or a location")
    return Member(Spot.from_id(group.id), group)


def name_in(operation: str, body: ReservationBody) -> str:
    """The reservation's name, from whichever field has it."""
    name = body.name or (Spot.from_id(body.id).name if body.id else "")
    if not name:
        raise BrokenReply(operation, message="a capacity reservation without a name")
    return name
