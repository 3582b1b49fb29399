"""Buying, resizing and giving back: what the sandbox then holds, and what the adapter says of it."""

from datetime import timedelta

import msgspec
import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.request import EndRequest
from broker.model.reservation import Owner, ReservationState
from providers.azure.adapter import Azure
from providers.base import Ambiguous, Conflict, QuotaExceeded, Seen, Unfilled, Unsupported
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule
from tests.providers.azure.conftest import (
    ID,
    LINEAGE,
    NAME,
    OTHER,
    PATCH,
    PLACE,
    PUT,
    RESOURCE_GROUP,
    SCOPE,
    SIZE,
    SUBSCRIPTION,
    adapter,
    bought,
    called,
    client,
    fault,
    reserve_request,
    resize_request,
)


def test_what_is_bought_is_found_with_its_owner_and_tags(azure: Azure, sandbox: Sandbox) -> None:
    made = azure.reserve(reserve_request())

    assert (made.id, made.place, made.count, made.state) == (ID, PLACE, 2, ReservationState.ACTIVE)
    assert (made.machine_type, made.gpu_model, made.gpus, made.targeted) == (SIZE, "h100", 16, True)
    assert made.owner == Owner(LINEAGE, "k1")
    assert ("team", "vision lab") in made.tags
    assert azure.reservations(SCOPE) == (made,)
    assert bought(sandbox) == [(0, 2)]
    assert called(sandbox, PUT) == 1


def test_group_and_reservation_have_one_name_and_the_same_tags(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())

    (group,) = client(sandbox).capacity_reservation_groups.list_by_subscription()
    (made,) = client(sandbox).capacity_reservations.list_by_capacity_reservation_group(RESOURCE_GROUP, NAME)
    assert group.name == made.name == NAME
    assert (
        dict(group.tags)
        == dict(made.tags)
        == {
            "team": "vision lab",
            "broker:lineage": LINEAGE,
            "broker:key": "k1",
        }
    )


def test_the_owner_is_known_by_the_name_when_the_tags_were_taken_off(azure: Azure, sandbox: Sandbox) -> None:
    key = "ab" * 12
    name = f"broker-{LINEAGE}-{key}"
    azure.reserve(reserve_request(key))
    client(sandbox).capacity_reservations.begin_update(RESOURCE_GROUP, name, name, {"tags": {}}).result()

    assert azure.reservations(SCOPE)[0].owner == Owner(LINEAGE, key)


def test_a_region_without_zones_is_reserved_as_a_whole(azure: Azure) -> None:
    assert azure.reserve(reserve_request(zone="")).place == Place(SCOPE, "")


def test_the_same_purchase_again_buys_nothing(azure: Azure, sandbox: Sandbox) -> None:
    first = azure.reserve(reserve_request())

    assert azure.reserve(reserve_request()) == first
    assert bought(sandbox) == [(0, 2)]


def test_a_taken_name_with_other_properties_is_left_alone(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())

    with pytest.raises(Conflict):
        azure.reserve(reserve_request(count=3))
    assert bought(sandbox) == [(0, 2)]


def test_a_full_zone_is_unfilled_and_leaves_nothing(azure: Azure, sandbox: Sandbox) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=1, provider=ProviderName.AZURE))

    with pytest.raises(Unfilled) as caught:
        azure.reserve(reserve_request())

    assert caught.value.code == "ZonalAllocationFailed"
    assert "sufficient capacity" in caught.value.message
    assert caught.value.request_id.startswith("req-")
    assert azure.reservations(SCOPE) == ()
    assert list(client(sandbox).capacity_reservation_groups.list_by_subscription()) == []


def test_a_quota_is_told_from_a_full_zone(azure: Azure, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.AZURE, quota="standardNDSH100v5Family", limit=96))

    with pytest.raises(QuotaExceeded) as caught:
        azure.reserve(reserve_request())
    assert caught.value.code == "OperationNotAllowed"


def test_a_size_that_cannot_be_reserved_is_unsupported(azure: Azure) -> None:
    with pytest.raises(Unsupported) as caught:
        azure.reserve(reserve_request(size="Standard_NC6s_v3"))
    assert caught.value.code == "NotSupported"


def test_a_purchase_that_takes_time_is_pending_then_active(azure: Azure, sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.AZURE, timedelta(minutes=3))

    made = azure.reserve(reserve_request())

    assert (made.state, made.count) == (ReservationState.PENDING, 2)
    assert azure.reservations(SCOPE)[0].count == 2
    assert azure.look(reserve_request()).seen is Seen.DONE
    sandbox.advance(timedelta(minutes=3))
    assert azure.reservations(SCOPE)[0].state is ReservationState.ACTIVE


def test_a_purchase_that_fails_later_is_refused_by_the_clouds_own_record(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.FAILS_LATER, delay_s=60, code="AllocationFailed", message="no room")
    assert azure.reserve(reserve_request()).state is ReservationState.PENDING

    sandbox.advance(timedelta(minutes=1))
    sighting = azure.look(reserve_request())

    assert sighting.seen is Seen.REFUSED
    assert isinstance(sighting.error, Unfilled)
    assert (sighting.error.code, sighting.error.message) == ("AllocationFailed", "no room")
    assert azure.reservations(SCOPE)[0].state is ReservationState.FAILED


def test_growing_and_shrinking_in_place(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())

    assert azure.resize(resize_request(2, 5)).count == 5
    assert azure.look(resize_request(2, 5)).seen is Seen.DONE
    assert azure.resize(resize_request(5, 1)).count == 1
    assert azure.resize(resize_request(1, 0)).count == 0
    assert bought(sandbox) == [(0, 2), (2, 5)]
    assert called(sandbox, "capacityReservations.delete") == 0


def test_a_refused_growth_is_set_back_to_what_is_held(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    sandbox.market.set_capacity(PoolRule(capacity=3, provider=ProviderName.AZURE))

    with pytest.raises(Unfilled):
        azure.resize(resize_request(2, 6))

    (held,) = azure.reservations(SCOPE)
    assert (held.count, held.state, held.raw_state) == (2, ReservationState.ACTIVE, "Succeeded")
    assert called(sandbox, PATCH) == 2
    assert called(sandbox, "capacityReservations.delete") == 0
    assert bought(sandbox) == [(0, 2)]


def test_setting_back_buys_nothing_where_less_is_held_than_was_thought(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    azure.resize(resize_request(2, 1))
    sandbox.market.set_capacity(PoolRule(capacity=3, provider=ProviderName.AZURE))

    with pytest.raises(Unfilled):
        azure.resize(resize_request(2, 6))

    (held,) = azure.reservations(SCOPE)
    assert (held.count, held.raw_state) == (1, "Succeeded")
    assert bought(sandbox) == [(0, 2)]


def test_a_refused_growth_that_was_not_set_back_says_so_and_is_put_right_later(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    azure.reserve(reserve_request("other", 1))
    sandbox.market.set_capacity(PoolRule(capacity=4, provider=ProviderName.AZURE))
    fault(sandbox, FaultKind.ERROR, PATCH, nth=2, code="ServiceUnavailable")
    with pytest.raises(Unfilled):
        azure.resize(resize_request(2, 6))

    (held, _) = azure.reservations(SCOPE)

    assert (held.count, held.state, held.raw_state) == (2, ReservationState.ACTIVE, "Failed")
    assert "set to 2" in held.notes[0]
    sighting = azure.look(resize_request(2, 6))
    assert sighting.seen is Seen.REFUSED
    assert isinstance(sighting.error, Unfilled)
    assert (sighting.reservation, bought(sandbox)) == (held, [(0, 2), (0, 1)])
    azure.resize(resize_request(1, 0, f"capacity/broker-{LINEAGE}-other"))
    assert [(r.count, r.raw_state, r.notes) for r in azure.reservations(SCOPE)] == [
        (2, "Succeeded", ()),
        (0, "Succeeded", ()),
    ]


def test_what_a_refusal_left_of_another_state_is_not_touched(azure: Azure, sandbox: Sandbox) -> None:
    theirs = "ba9876543210"
    azure.reserve(reserve_request())
    sandbox.market.set_capacity(PoolRule(capacity=3, provider=ProviderName.AZURE))
    fault(sandbox, FaultKind.ERROR, PATCH, nth=2, code="ServiceUnavailable")
    with pytest.raises(Unfilled):
        azure.resize(resize_request(2, 6))
    assert azure.reservations(SCOPE)[0].raw_state == "Failed"

    azure.reserve(msgspec.structs.replace(reserve_request("theirs", 1), lineage=theirs))

    assert {r.owner.lineage: r.raw_state for r in azure.reservations(SCOPE) if r.owner} == {
        LINEAGE: "Failed",
        theirs: "Succeeded",
    }


def test_a_growth_that_is_there_was_not_refused_whatever_is_said(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR_AFTER, PATCH, code="Conflict")

    assert azure.resize(resize_request(2, 3)).count == 3


def test_a_purchase_that_is_there_was_not_refused_whatever_is_said(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR_AFTER, PUT, code="Conflict")

    assert azure.reserve(reserve_request()).count == 2
    assert bought(sandbox) == [(0, 2)]


def test_a_growth_that_is_still_running_is_neither_done_nor_refused(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, FaultKind.FAILS_LATER, PATCH, delay_s=60, code="AllocationFailed")

    with pytest.raises(Ambiguous):
        azure.resize(resize_request(2, 4))
    with pytest.raises(Ambiguous):
        azure.look(resize_request(2, 4))
    assert azure.reservations(SCOPE)[0].count == 2
    sandbox.advance(timedelta(minutes=1))
    assert azure.look(resize_request(2, 4)).seen is Seen.REFUSED
    assert azure.resize(resize_request(2, 2)).raw_state == "Succeeded"


def test_there_are_no_ends(azure: Azure, sandbox: Sandbox) -> None:
    now = sandbox.clock.now()
    request = EndRequest(key="k4", lineage=LINEAGE, place=PLACE, reservation_id=ID, from_end=None, to_end=now)

    assert azure.capabilities().end_settable is False
    with pytest.raises(Unsupported):
        azure.set_end(request)
    with pytest.raises(Unsupported):
        azure.look(request)


def test_each_subscription_and_region_is_a_scope_of_its_own(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    there = Place(Scope(ProviderName.AZURE, OTHER, "westeurope"), "1")
    azure.reserve(msgspec.structs.replace(reserve_request("k9"), place=there))

    listed = {str(scope): [r.owner.key for r in azure.reservations(scope) if r.owner] for scope in azure.scopes()}

    assert listed == {
        f"azure/{SUBSCRIPTION}/eastus": ["k1"],
        f"azure/{SUBSCRIPTION}/westeurope": [],
        f"azure/{OTHER}/eastus": [],
        f"azure/{OTHER}/westeurope": ["k9"],
    }


def test_a_purchase_is_found_after_the_resource_group_was_changed(azure: Azure, sandbox: Sandbox) -> None:
    azure.reserve(reserve_request())
    moved = adapter(sandbox)
    moved._settings = msgspec.structs.replace(
        moved._settings,
        subscriptions=tuple(
            msgspec.structs.replace(s, resource_group="elsewhere") for s in moved._settings.subscriptions
        ),
    )

    sighting = moved.look(reserve_request())

    assert sighting.seen is Seen.DONE
    assert sighting.reservation is not None
    assert sighting.reservation.id == ID
