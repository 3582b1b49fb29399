"""ARM's bodies, as far as they are read: unknown fields are passed over, any field may be missing or null."""

from typing import Any, TypeVar

import msgspec

from providers.base import BrokenReply

T = TypeVar("T")


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Ref(_Body, frozen=True, kw_only=True):
    id: str = ""


class Sku(_Body, frozen=True, kw_only=True):
    name: str | None = None
    capacity: int | None = None


class Status(_Body, frozen=True, kw_only=True):
    """`code` is "ProvisioningState/failed/<error code>" where something failed."""

    code: str | None = None
    level: str | None = None
    message: str | None = None


class Utilization(_Body, frozen=True, kw_only=True):
    """`current_capacity` is what was reserved successfully and is billed."""

    current_capacity: int | None = None
    virtual_machines_allocated: list[Ref] | None = None


class StateInfo(_Body, frozen=True, kw_only=True):
    reservation_state: str | None = None


class InstanceView(_Body, frozen=True, kw_only=True):
    name: str | None = None
    utilization_info: Utilization | None = None
    statuses: list[Status] | None = None
    reservation_state_info: StateInfo | None = None


class Schedule(_Body, frozen=True, kw_only=True):
    start: str | None = None
    end: str | None = None


class ReservationProperties(_Body, frozen=True, kw_only=True):
    provisioning_state: str | None = None
    provisioning_time: str | None = None
    virtual_machines_associated: list[Ref] | None = None
    instance_view: InstanceView | None = None
    schedule_profile: Schedule | None = None


class ReservationBody(_Body, frozen=True, kw_only=True):
    id: str | None = None
    name: str | None = None
    location: str | None = None
    zones: list[str] | None = None
    tags: dict[str, Any] | None = None
    sku: Sku = Sku()
    properties: ReservationProperties = ReservationProperties()


class GroupView(_Body, frozen=True, kw_only=True):
    capacity_reservations: list[InstanceView] | None = None


class GroupProperties(_Body, frozen=True, kw_only=True):
    reservation_type: str | None = None
    capacity_reservations: list[Ref] | None = None
    instance_view: GroupView | None = None


class GroupBody(_Body, frozen=True, kw_only=True):
    id: str | None = None
    name: str | None = None
    location: str | None = None
    zones: list[str] | None = None
    tags: dict[str, Any] | None = None
    properties: GroupProperties = GroupProperties()


class Capability(_Body, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class LocationInfo(_Body, frozen=True, kw_only=True):
    location: str = ""
    zones: list[str] | None = None


class RestrictionInfo(_Body, frozen=True, kw_only=True):
    locations: list[str] | None = None
    zones: list[str] | None = None


class Restriction(_Body, frozen=True, kw_only=True):
    type: str | None = None
    reason_code: str | None = None
    restriction_info: RestrictionInfo | None = None


class SkuBody(_Body, frozen=True, kw_only=True):
    """One line of the resource SKU list. `family` names the vCPU quota that it counts against."""

    resource_type: str | None = None
    name: str = ""
    family: str | None = None
    location_info: list[LocationInfo] | None = None
    capabilities: list[Capability] | None = None
    restrictions: list[Restriction] | None = None


class UsageName(_Body, frozen=True, kw_only=True):
    value: str = ""


class UsageBody(_Body, frozen=True, kw_only=True):
    """`limit` and `current_value` come as numbers or as digits in a string."""

    name: UsageName = UsageName()
    limit: int | None = None
    current_value: int | None = None


def parsed(operation: str, body: Any, type: type[T]) -> T:
    """The SDK's model (a mapping with the wire's names) as one of the types above. Raises BrokenReply."""
    raw = body.as_dict() if hasattr(body, "as_dict") else body
    try:
        return msgspec.convert(raw, type, strict=False)
    except msgspec.ValidationError as error:
        raise BrokenReply(operation, message=f"the answer cannot be read: {error}") from error
