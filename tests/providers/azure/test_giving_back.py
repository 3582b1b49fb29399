"""What is given back costs nothing at once, leaves nothing behind, and was ours."""

from datetime import timedelta

import msgspec
import pytest

from broker.model.reservation import ReservationState
from providers.azure.adapter import Azure
from providers.base import Ambiguous, Conflict, Seen
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.providers.azure.conftest import (
    LINEAGE,
    NAME,
    PUT,
    REGION,
    RESOURCE_GROUP,
    SCOPE,
    called,
    client,
    fault,
    launch,
    release_request,
    reserve_request,
)


def test_giving_back_leaves_neither_reservation_nor_group(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())

    gone = azure.release(release_request())

    assert (gone.state, gone.count) == (ReservationState.RELEASED, 0)
    assert azure.reservations(SCOPE) == ()
    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []
    assert azure.look(release_request()).seen is Seen.DONE


def test_giving_back_twice_is_success(azure: Azure) -> None:
    azure.reserve(reserve_request())
    azure.release(release_request())

    assert azure.release(release_request()).state is ReservationState.RELEASED


def test_what_is_in_use_costs_nothing_at_once_and_goes_when_it_is_free(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    launch(sandbox, "vm-1")
    launch(sandbox, "vm-2")

    parked = azure.release(release_request())

    assert (parked.state, parked.count, parked.associated) == (ReservationState.CANCELLING, 0, 2)
    assert azure.look(release_request()).seen is Seen.NOT_YET
    (listed,) = azure.reservations(SCOPE)
    assert (listed.state, listed.count, listed.over) == (ReservationState.CANCELLING, 0, 2)
    for name in ("vm-1", "vm-2"):
        client(sandbox).virtual_machines.begin_delete(RESOURCE_GROUP, name).result()
    assert azure.release(release_request()).state is ReservationState.RELEASED


def test_what_azure_will_not_delete_is_set_to_cost_nothing(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR, "capacityReservations.delete", code="OperationNotAllowed", message="in use")

    parked = azure.release(release_request())

    assert (parked.state, parked.count) == (ReservationState.CANCELLING, 0)
    assert azure.release(release_request()).state is ReservationState.RELEASED


def test_a_deletion_that_fails_later_is_no_release(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.FAILS_LATER, "capacityReservations.delete", delay_s=60, code="InternalExecutionError")

    still = azure.release(release_request())

    assert (still.state, still.count) == (ReservationState.CANCELLING, 2)
    assert azure.look(release_request()).seen is Seen.NOT_YET
    sandbox.advance(timedelta(minutes=1))
    assert azure.release(release_request()).state is ReservationState.RELEASED


def test_use_counts_up_to_what_is_reserved(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    for name in ("vm-1", "vm-2", "vm-3"):
        launch(sandbox, name)

    (held,) = azure.reservations(SCOPE)

    assert (held.count, held.used, held.over, held.associated) == (2, 2, 1, 3)


def test_a_group_that_will_not_go_yet_is_asked_again(azure: Azure, sandbox: Sandbox, waits: list[float]) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR, "capacityReservationGroups.delete", times=2, code="CannotDeleteResource")

    assert azure.release(release_request()).state is ReservationState.RELEASED
    assert called(sandbox, "capacityReservationGroups.delete") == 3
    assert len(waits) == 2
    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []


def test_a_group_that_will_not_go_for_long_is_no_failed_release_and_goes_later(azure: Azure, sandbox: Sandbox) -> None:
    """The reservation is gone and costs nothing; an empty group costs nothing either."""
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR, "capacityReservationGroups.delete", times=None, code="CannotDeleteResource")

    assert azure.release(release_request()).state is ReservationState.RELEASED
    assert [group.name for group in client(sandbox).capacity_reservation_groups.list_by_subscription()] == [NAME]
    assert azure.reservations(SCOPE) == ()
    sandbox.world.faults.clear()
    azure.release(release_request())
    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []


def test_a_group_left_by_a_purchase_that_was_cut_off_is_swept_up(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.RESET_BEFORE, PUT)
    with pytest.raises(Ambiguous):
        azure.reserve(reserve_request("cutoff"))
    assert azure.look(reserve_request("cutoff")).seen is Seen.NOT_YET
    assert azure.reservations(SCOPE) == ()
    azure.reserve(reserve_request())

    azure.release(release_request())

    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []


def test_a_creation_that_failed_later_is_swept_up_once_it_was_listed(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.FAILS_LATER, delay_s=60, code="AllocationFailed")
    azure.reserve(reserve_request("later"))
    azure.reserve(reserve_request())
    sandbox.advance(timedelta(minutes=1))
    assert len(azure.reservations(SCOPE)) == 2

    azure.release(release_request())

    assert azure.reservations(SCOPE) == ()
    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []


def test_groups_of_others_are_never_swept_up(azure: Azure, sandbox: Sandbox) -> None:
    others = {"theirs", "broker-ba9876543210-k1", f"broker-{LINEAGE}-shared"}
    for name in others:
        client(sandbox).capacity_reservation_groups.create_or_update(RESOURCE_GROUP, name, {"location": REGION})
    azure.reserve(reserve_request())

    azure.release(release_request())

    names = {group.name for group in client(sandbox).capacity_reservation_groups.list_by_subscription()}
    assert names == others


def test_what_bears_another_lineage_is_not_given_back(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())

    with pytest.raises(Conflict):
        azure.release(msgspec.structs.replace(release_request(), lineage="ba9876543210"))
    assert azure.reservations(SCOPE)[0].count == 2
