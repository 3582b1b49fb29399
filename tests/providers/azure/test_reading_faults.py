"""What goes wrong while we look: a shorter answer is never taken for less, nor no answer for nothing."""

import socket

import msgspec
import pytest

from broker.model.reservation import ReservationState
from providers.azure.adapter import Azure
from providers.base import (
    BrokenReply,
    Denied,
    ProviderError,
    Seen,
    Throttled,
    Unreachable,
)
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.providers.azure.conftest import (
    SCOPE,
    called,
    fault,
    release_request,
    reserve_request,
    resize_request,
    settings,
)

GROUP_LIST = "capacityReservationGroups.listBySubscription"
MEMBERS = "capacityReservations.listByCapacityReservationGroup"


def test_a_throttled_read_waits_as_long_as_azure_asks(azure: Azure, sandbox: Sandbox, waits: list[float]) -> None:
    fault(sandbox, FaultKind.THROTTLE, GROUP_LIST, times=2, retry_after_s=7)

    assert azure.reservations(SCOPE) == ()
    assert waits == [7.0, 7.0]


def test_a_read_is_not_repeated_for_ever_nor_after_a_long_wait(
    azure: Azure, sandbox: Sandbox, waits: list[float]
) -> None:
    fault(sandbox, FaultKind.THROTTLE, GROUP_LIST, times=4)
    with pytest.raises(Throttled):
        azure.reservations(SCOPE)
    assert called(sandbox, GROUP_LIST) == 4

    waits.clear()
    fault(sandbox, FaultKind.THROTTLE, GROUP_LIST, retry_after_s=600)
    with pytest.raises(Throttled):
        azure.reservations(SCOPE)
    assert waits == []


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.MALFORMED])
@pytest.mark.parametrize("operation", [GROUP_LIST, MEMBERS, "capacityReservationGroups.get"])
def test_a_listing_that_fails_in_part_fails_whole(
    operation: str, kind: FaultKind, azure: Azure, sandbox: Sandbox
) -> None:
    azure.reserve(reserve_request("k1"))
    azure.reserve(reserve_request("k2"))
    fault(sandbox, kind, operation, times=None)

    with pytest.raises(ProviderError):
        azure.reservations(SCOPE)


@pytest.mark.parametrize(
    ("operation", "field"), [(GROUP_LIST, "value"), (GROUP_LIST, "location"), (MEMBERS, "value"), (MEMBERS, "sku")]
)
def test_a_listing_with_something_missing_is_not_a_shorter_one(
    operation: str, field: str, azure: Azure, sandbox: Sandbox
) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.MISSING_FIELD, operation, times=None, field=field)

    with pytest.raises(BrokenReply):
        azure.reservations(SCOPE)


def test_a_listing_without_permission_is_denied_and_not_empty(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR, GROUP_LIST, code="AuthorizationFailed")

    with pytest.raises(Denied) as caught:
        azure.reservations(SCOPE)
    assert caught.value.request_id


@pytest.mark.parametrize("field", ["provisioningState", "code", "level"])
def test_a_state_that_is_new_to_us_counts_as_supply(field: str, azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.UNKNOWN_ENUM, "*", times=None, field=field, value="SomethingNew")

    (held,) = azure.reservations(SCOPE)

    assert held.count == 2
    assert held.state.supplies
    if field == "provisioningState":
        assert (held.state, held.raw_state) == (ReservationState.UNKNOWN, "SomethingNew")
        assert azure.look(reserve_request()).seen is Seen.DONE


def test_new_fields_change_nothing(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.UNKNOWN_FIELD, "*", times=None)

    made = azure.reserve(reserve_request())

    assert (made.count, made.state) == (2, ReservationState.ACTIVE)
    assert azure.reservations(SCOPE) == (made,)
    assert azure.offers(SCOPE, ["h100"])
    assert azure.quotas(SCOPE)


@pytest.mark.parametrize("field", ["id", "name", "sku", "capacity", "tags", "zones", "location", "properties"])
def test_a_purchase_is_not_lost_to_a_missing_field(field: str, azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.MISSING_FIELD, "capacityReservations.*", times=None, field=field)

    made = azure.reserve(reserve_request())

    assert (made.count, made.machine_type) == (2, reserve_request().machine_type)
    assert made.state.supplies
    assert made.owner is not None


@pytest.mark.parametrize("code", ["SubscriptionNotFound", "NeverSeenBefore"])
def test_what_cannot_be_seen_is_not_taken_for_gone(code: str, azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR, "*", times=None, code=code, status=404)

    for see in (
        lambda: azure.look(reserve_request()),
        lambda: azure.look(release_request()),
        lambda: azure.look(resize_request(2, 3)),
        lambda: azure.release(release_request()),
        lambda: azure.reservations(SCOPE),
    ):
        with pytest.raises(ProviderError) as caught:
            see()
        assert caught.value.code == code


def test_a_broken_answer_to_a_look_is_no_look(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.MALFORMED, "capacityReservations.get", times=None)

    with pytest.raises(BrokenReply):
        azure.look(reserve_request())


def test_nobody_there_is_told_from_no_answer(sandbox: Sandbox) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{probe.getsockname()[1]}"
    azure = Azure(msgspec.structs.replace(settings(sandbox), endpoint=nowhere), sandbox.clock, wait=lambda s: None)

    with pytest.raises(Unreachable) as caught:
        azure.reserve(reserve_request())
    assert not caught.value.may_have_acted
