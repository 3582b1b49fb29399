"""ARM's bodies -> reservations: one table of states, and what the counts mean."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from broker.model.place import Place, ProviderName, Scope
from broker.model.reservation import Reservation, ReservationState
from providers.azure.errors import typed
from providers.azure.names import RELEASING_TAG, Spot, owner_of
from providers.azure.wire import GroupBody, InstanceView, ReservationBody
from providers.base import ProviderError
from providers.prices.shapes import shape_of

PROVISIONING = {
    "creating": ReservationState.PENDING,
    "updating": ReservationState.ACTIVE,
    "succeeded": ReservationState.ACTIVE,
    "deleting": ReservationState.CANCELLING,
}
"""By `provisioningState`, in lower case. "failed" and "canceled" are of the last change, not of the reservation: what
it holds all the same is billed, and can be given back."""

FUTURE = {
    "pending": ReservationState.SCHEDULED,
    "approved": ReservationState.SCHEDULED,
    "committed": ReservationState.SCHEDULED,
    "live": ReservationState.ACTIVE,
    "partiallyfulfilled": ReservationState.ACTIVE,
    "declined": ReservationState.FAILED,
    "fulfillmentfailed": ReservationState.FAILED,
}
"""By `reservationState`, which only future-dated reservations have."""

ENDED_BADLY = ("failed", "canceled")


def reservation(body: ReservationBody, spot: Spot, scope: Scope, group: GroupBody, now: datetime) -> Reservation:
    """`count` is what is billed where the instance view says so, else what was asked for."""
    tags = {name: value for name, value in (body.tags or {}).items() if isinstance(value, str)}
    count, allocated = held(body), _allocated(body)
    shape = shape_of(ProviderName.AZURE, body.sku.name or "")
    opens, ends = _window(body)
    state = _state(body, tags, opens, ends, now)
    return Reservation(
        id=spot.id,
        place=Place(scope, (body.zones or [""])[0]),
        machine_type=body.sku.name or "",
        count=count,
        state=state,
        raw_state=_raw_state(body),
        gpu_model=shape.gpu_model if shape else None,
        gpus_per_instance=shape.gpus if shape else 0,
        used=min(allocated, count),
        over=max(allocated - count, 0),
        associated=len(body.properties.virtual_machines_associated or ()),
        usable_from=opens,
        usable_until=ends,
        ends=ends,
        targeted=(group.properties.reservation_type or "Targeted") != "Open",
        owner=owner_of(spot.name, tags),
        tags=tuple(sorted(tags.items())),
        notes=_notes(body, state),
    )


def held(body: ReservationBody) -> int:
    """Instances that are reserved and billed; of a new one those that will be."""
    current = None if provisioning(body) == "creating" else current_capacity(body)
    return current if current is not None else body.sku.capacity or 0


def current_capacity(body: ReservationBody) -> int | None:
    view = body.properties.instance_view
    return view.utilization_info.current_capacity if view and view.utilization_info else None


def provisioning(body: ReservationBody) -> str:
    return (body.properties.provisioning_state or "").lower()


def ended_badly(body: ReservationBody) -> bool:
    """Whether the last change of it was refused."""
    return provisioning(body) in ENDED_BADLY


def is_husk(body: ReservationBody) -> bool:
    """Whether it is what a refused creation leaves: it never held anything.

    `provisioningTime` is taken to be set only once something was provisioned.
    """
    current = current_capacity(body)
    return ended_badly(body) and not (current if current is not None else body.properties.provisioning_time)


def failure(operation: str, body: ReservationBody) -> ProviderError:
    """Why its last change was refused, as far as its status lines say."""
    for status in _view(body).statuses or ():
        kind, _, rest = (status.code or "").partition("/")
        outcome, _, code = rest.partition("/")
        if kind.lower() == "provisioningstate" and outcome.lower() in ENDED_BADLY:
            return typed(operation, code, status.message or "", 200)
    return typed(operation, "", f"provisioningState is {body.properties.provisioning_state}", 200)


def with_view(body: ReservationBody, view: InstanceView | None) -> ReservationBody:
    """The reservation with what its group's instance view says of it."""
    properties = msgspec.structs.replace(body.properties, instance_view=view or body.properties.instance_view)
    return msgspec.structs.replace(body, properties=properties)


def _state(
    body: ReservationBody, tags: Mapping[str, Any], opens: datetime | None, ends: datetime | None, now: datetime
) -> ReservationState:
    if is_husk(body):
        return ReservationState.FAILED
    if RELEASING_TAG in tags:
        return ReservationState.CANCELLING
    future = _view(body).reservation_state_info
    if future and future.reservation_state:
        return FUTURE.get(future.reservation_state.lower(), ReservationState.UNKNOWN)
    return _by_time(_provisioned(body), opens, ends, now)


def _provisioned(body: ReservationBody) -> ReservationState:
    if ended_badly(body) and current_capacity(body) is not None:
        return ReservationState.ACTIVE
    return PROVISIONING.get(provisioning(body), ReservationState.UNKNOWN)


def _by_time(state: ReservationState, opens: datetime | None, ends: datetime | None, now: datetime) -> ReservationState:
    if ends is not None and ends <= now:
        return ReservationState.EXPIRED
    if opens is not None and opens > now and state is ReservationState.ACTIVE:
        return ReservationState.SCHEDULED
    return state


def _raw_state(body: ReservationBody) -> str:
    future = _view(body).reservation_state_info
    return (future.reservation_state if future else None) or body.properties.provisioning_state or ""


def _view(body: ReservationBody) -> InstanceView:
    return body.properties.instance_view or InstanceView()


def _allocated(body: ReservationBody) -> int:
    utilization = _view(body).utilization_info
    return len((utilization.virtual_machines_allocated if utilization else None) or ())


def _window(body: ReservationBody) -> tuple[datetime | None, datetime | None]:
    schedule = body.properties.schedule_profile
    return (_instant(schedule.start), _instant(schedule.end)) if schedule else (None, None)


def _instant(text: str | None) -> datetime | None:
    """Block schedules are set as days and read back as instants; a bare day says nothing exact."""
    try:
        at = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return at if at and at.tzinfo else None


def _notes(body: ReservationBody, state: ReservationState) -> tuple[str, ...]:
    if state is ReservationState.CANCELLING and body.properties.virtual_machines_associated:
        return (f"goes when its {len(body.properties.virtual_machines_associated)} VMs are disassociated",)
    if ended_badly(body) and not is_husk(body):
        asked = body.sku.capacity
        return (f"the last change, to {asked}, was refused: it cannot be used until its count is set to {held(body)}",)
    return ()
