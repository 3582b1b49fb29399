"""The calls that change one reservation, and how it is read back."""

from contextlib import suppress
from typing import Any

import msgspec

from broker.model.request import ReserveRequest
from providers.azure import states
from providers.azure.calls import Calls
from providers.azure.names import RELEASING_TAG, Spot, own_tags
from providers.azure.wire import ReservationBody, Sku, parsed
from providers.base import Ambiguous, Conflict, NotFound, ProviderError

PUT = "capacityReservations.createOrUpdate"
PATCH = "capacityReservations.update"
GET = "capacityReservations.get"
DELETE = "capacityReservations.delete"


def find(calls: Calls, spot: Spot) -> ReservationBody | None:
    """With its instance view; None where there is none."""
    try:
        body = calls.read(
            GET,
            lambda c: c.capacity_reservations.get(
                spot.resource_group, spot.group, spot.name, expand="instanceView"
            ).as_dict(),
        )
    except NotFound:
        return None
    return parsed(GET, body, ReservationBody)


def buy(calls: Calls, spot: Spot, request: ReserveRequest) -> ReservationBody:
    """The purchase: sent once. Comes back as Azure left it, or as pending while Azure is at it."""
    body = {
        "location": request.place.scope.region,
        "sku": {"name": request.machine_type, "capacity": request.count},
        "tags": own_tags(request.lineage, request.key, request.tags),
        **({"zones": [request.place.zone]} if request.place.zone else {}),
    }

    def begin(client: Any, polling: Any) -> Any:
        return client.capacity_reservations.begin_create_or_update(
            spot.resource_group, spot.group, spot.name, body, polling=polling
        )

    left = calls.operate(PUT, begin)
    made = parsed(PUT, left if left is not None else {"properties": {"provisioningState": "Creating"}}, ReservationBody)
    return _filled_in(made, body)


def with_view(calls: Calls, spot: Spot, made: ReservationBody) -> ReservationBody:
    """What was made, with how much of it is there: the answer to a PUT does not say. It is made, read or not."""
    if states.provisioning(made) != "succeeded" or states.current_capacity(made) is not None:
        return made
    with suppress(ProviderError):
        read = find(calls, spot)
        if read is not None and states.provisioning(read) == "succeeded":
            return states.with_view(made, read.properties.instance_view)
    return made


def set_count(calls: Calls, spot: Spot, count: int) -> ReservationBody:
    """Sent once. Raises Ambiguous while Azure is still at it."""
    return _patched(calls, spot, {"sku": {"capacity": count}}, again=False)


def shrink(calls: Calls, spot: Spot, count: int) -> ReservationBody:
    """The same for what buys nothing: repeated where the trouble is passing."""
    return _patched(calls, spot, {"sku": {"capacity": count}}, again=True)


def give_back(calls: Calls, spot: Spot, body: ReservationBody) -> bool:
    """Delete it; False while it is still there. What VMs are associated with cannot go, and those are not ours to
    touch: it is set to cost nothing until they are gone.
    """
    if not body.properties.virtual_machines_associated:
        with suppress(Conflict):
            return delete(calls, spot)
    if states.held(body):
        with suppress(Conflict):
            _park(calls, spot, body)
    return False


def delete(calls: Calls, spot: Spot) -> bool:
    """Repeatable; False while Azure is still at it. Raises Conflict while something is associated with it."""

    def begin(client: Any, polling: Any) -> Any:
        return client.capacity_reservations.begin_delete(
            spot.resource_group, spot.group, spot.name, polling=polling, cls=lambda *_: "deleted"
        )

    with suppress(NotFound):
        return calls.operate_again(DELETE, begin) is not None
    return True


def set_back(calls: Calls, spot: Spot, from_count: int) -> ReservationBody | None:
    """After a refused growth: a reservation that it left Failed is of no use until its count is what it holds.

    Never asks for more than is held. What was found, or None where it cannot be read: then, and where setting it back
    fails too, it is shown as it is, with what to do, and the next change puts it right.
    """
    with suppress(ProviderError):
        body = find(calls, spot)
        if body is not None and states.ended_badly(body):
            set_count(calls, spot, min(states.held(body), from_count))
        return body
    return None


def _park(calls: Calls, spot: Spot, body: ReservationBody) -> None:
    """Nothing is reserved any more, and it is marked as about to go."""
    tags = {**(body.tags or {}), RELEASING_TAG: "yes"}
    _patched(calls, spot, {"sku": {"capacity": 0}, "tags": tags}, again=True)


def _patched(calls: Calls, spot: Spot, patch: dict[str, Any], *, again: bool) -> ReservationBody:
    def begin(client: Any, polling: Any) -> Any:
        return client.capacity_reservations.begin_update(
            spot.resource_group, spot.group, spot.name, patch, polling=polling
        )

    left = (calls.operate_again if again else calls.operate)(PATCH, begin)
    if left is None:
        raise Ambiguous(PATCH, message="Azure is still changing the reservation")
    body = parsed(PATCH, left, ReservationBody)
    if states.ended_badly(body):
        raise states.failure(PATCH, body)
    return _filled_in(body, patch)


def _filled_in(body: ReservationBody, asked: dict[str, Any]) -> ReservationBody:
    """What an answer leaves out is as it was asked for: a purchase is never lost to a missing field."""
    sku = Sku(
        name=body.sku.name or asked["sku"].get("name"),
        capacity=body.sku.capacity if body.sku.capacity is not None else asked["sku"]["capacity"],
    )
    return msgspec.structs.replace(
        body, sku=sku, zones=body.zones or asked.get("zones"), tags=body.tags or asked.get("tags")
    )
