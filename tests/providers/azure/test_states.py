"""One table of states: every kind of reservation that a subscription can hold, and states that nobody knows yet."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.model.reservation import Reservation, ReservationState
from providers.azure import states
from providers.azure.consume import consumption
from providers.azure.names import Spot, own_name, owner_of
from providers.azure.wire import GroupBody, ReservationBody, parsed
from providers.base import NotFound
from tests.providers.azure.conftest import LINEAGE, SCOPE, SIZE

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SPOT = Spot("rg", "shared", "h100")


@pytest.mark.parametrize(
    ("provisioning", "expected"),
    [
        ("Succeeded", ReservationState.ACTIVE),
        ("Creating", ReservationState.PENDING),
        ("Updating", ReservationState.ACTIVE),
        ("Deleting", ReservationState.CANCELLING),
        ("Failed", ReservationState.ACTIVE),
        ("Canceled", ReservationState.ACTIVE),
        ("SomethingNew", ReservationState.UNKNOWN),
        (None, ReservationState.UNKNOWN),
    ],
)
def test_provisioning_states(provisioning: str | None, expected: ReservationState) -> None:
    assert _read(provisioning, current=4).state is expected


@pytest.mark.parametrize(
    ("future", "expected"),
    [
        ("Pending", ReservationState.SCHEDULED),
        ("Approved", ReservationState.SCHEDULED),
        ("Committed", ReservationState.SCHEDULED),
        ("Live", ReservationState.ACTIVE),
        ("PartiallyFulfilled", ReservationState.ACTIVE),
        ("Declined", ReservationState.FAILED),
        ("FulfillmentFailed", ReservationState.FAILED),
        ("SomethingNew", ReservationState.UNKNOWN),
    ],
)
def test_future_dated_states(future: str, expected: ReservationState) -> None:
    held = _read("Succeeded", current=4, future=future)

    assert (held.state, held.raw_state) == (expected, future)
    assert held.state.supplies is (expected is not ReservationState.FAILED)


def test_a_block_supplies_within_its_window_only() -> None:
    schedule = {"start": "2026-12-10T12:00:00Z", "end": "2026-12-12T11:30:00Z"}
    opens, ends = datetime(2026, 12, 10, 12, tzinfo=UTC), datetime(2026, 12, 12, 11, 30, tzinfo=UTC)

    held = _read("Succeeded", current=4, schedule=schedule)

    assert (held.usable_from, held.usable_until, held.ends) == (opens, ends, ends)
    assert held.state is ReservationState.SCHEDULED
    assert _read("Succeeded", current=4, schedule=schedule, now=opens).state is ReservationState.ACTIVE
    assert _read("Succeeded", current=4, schedule=schedule, now=ends).state is ReservationState.EXPIRED
    assert _read("Succeeded", current=4, schedule={"start": "2026-12-10", "end": "soon"}).usable_until is None
    told = dict(consumption(held))
    assert (told["not before"], told["not after"]) == (opens.isoformat(), ends.isoformat())


def test_use_beyond_the_count_is_no_use_of_it() -> None:
    held = _read("Succeeded", current=4, allocated=6)

    assert (held.count, held.used, held.over, held.associated) == (4, 4, 2, 6)


def test_what_is_billed_is_the_count_unless_it_is_only_being_made() -> None:
    assert _read("Updating", asked=6, current=4).count == 4
    assert _read("Failed", asked=6, current=4).count == 4
    assert _read("Creating", asked=6, current=0).count == 6
    assert _read("Succeeded", asked=6, current=None).count == 6


def test_a_failed_creation_holds_nothing_and_a_failed_growth_does() -> None:
    husk = _body("Failed", asked=4, current=0)
    grown = _body("Failed", asked=6, current=4)

    assert states.is_husk(husk)
    assert not states.is_husk(grown)
    assert states.is_husk(_body("Failed", asked=4, current=None))
    assert not states.is_husk(_body("Failed", asked=4, current=None, provisioned="2026-12-01T00:00:00Z"))
    assert _read("Failed", asked=4, current=0).state is ReservationState.FAILED
    unclear = _read("Failed", asked=4, current=None, provisioned="2026-12-01T00:00:00Z")
    assert (unclear.state, unclear.count) == (ReservationState.UNKNOWN, 4)


def test_open_reservations_may_be_used_by_any_vm() -> None:
    group = parsed("get", {"properties": {"reservationType": "Open"}}, GroupBody)

    assert states.reservation(_body("Succeeded"), SPOT, SCOPE, group, NOW).targeted is False


@pytest.mark.parametrize(
    "id",
    [
        "RG/Shared/h100",
        "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute"
        "/capacityReservationGroups/Shared/capacityReservations/H100",
        "/subscriptions/s/resourcegroups/RG/providers/Microsoft.Compute"
        "/CAPACITYRESERVATIONGROUPS/Shared/capacityreservations/H100",
    ],
)
def test_one_reservation_has_one_id(id: str) -> None:
    assert Spot.from_id(id).id == "rg/shared/h100"


@pytest.mark.parametrize("id", ["", "cr-123", "a/b/c/d", "//"])
def test_another_clouds_id_is_not_found(id: str) -> None:
    with pytest.raises(NotFound):
        Spot.from_id(id)


def test_names_say_whose_it_is() -> None:
    name = own_name(LINEAGE, "abc123" * 4)
    owner = owner_of(name.upper(), {})

    assert owner is not None
    assert (owner.lineage, owner.key) == (LINEAGE, "abc123" * 4)
    assert owner_of("broker-test", {}) is None
    assert owner_of(own_name(LINEAGE, "shared"), {}) is None, "somebody else's, beside ours"
    assert owner_of("anything", {"broker:lineage": LINEAGE}) is None


def test_why_a_change_was_refused_is_read_from_the_status_lines() -> None:
    status = {"code": "ProvisioningState/failed/AllocationFailed", "message": "no room"}
    body = _body("Failed", statuses=[{"code": "Other/thing"}, status])

    error = states.failure("get", body)

    assert (error.kind, error.code, error.message) == ("unfilled", "AllocationFailed", "no room")
    assert "Failed" in states.failure("get", _body("Failed")).message


def _read(provisioning: str | None, *, now: datetime = NOW, allocated: int = 0, **rest: Any) -> Reservation:
    body = _body(provisioning, allocated=allocated, **rest)
    return states.reservation(body, SPOT, SCOPE, GroupBody(), now + timedelta(0))


def _body(
    provisioning: str | None,
    *,
    asked: int = 4,
    current: int | None = 4,
    allocated: int = 0,
    future: str | None = None,
    schedule: dict[str, str] | None = None,
    provisioned: str | None = None,
    statuses: list[dict[str, str]] | None = None,
) -> ReservationBody:
    machines = [{"id": f"/vm/{number}"} for number in range(allocated)]
    raw = {
        "location": "eastus",
        "sku": {"name": SIZE, "capacity": asked},
        "properties": {
            "provisioningState": provisioning,
            "provisioningTime": provisioned,
            "scheduleProfile": schedule,
            "virtualMachinesAssociated": machines,
            "instanceView": {
                "utilizationInfo": {"currentCapacity": current, "virtualMachinesAllocated": machines},
                "reservationStateInfo": {"reservationState": future} if future else None,
                "statuses": statuses,
            },
        },
    }
    return parsed("get", raw, ReservationBody)
