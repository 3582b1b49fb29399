"""Buying, resizing, ends and giving back: what the sandbox then holds, and what the adapter says of it."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from broker.model.place import Place, ProviderName
from broker.model.request import ReserveRequest
from broker.model.reservation import Owner, ReservationState
from providers.base import Ambiguous, Conflict, QuotaExceeded, Seen, Unfilled, Unsupported
from providers.gcp.adapter import Gcp
from providers.sandbox.catalogue import Catalogue, MachineType
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule
from tests.providers.gcp.conftest import (
    END,
    LINEAGE,
    MACHINE,
    SCOPE,
    ZONE,
    adapter,
    end_request,
    release_request,
    reserve_request,
    resize_request,
)


def test_what_is_bought_is_found_with_its_owner_and_tags(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())

    assert (bought.id, bought.count, bought.state) == (f"{ZONE}/broker-{LINEAGE}-k1", 2, ReservationState.ACTIVE)
    assert (bought.machine_type, bought.gpu_model, bought.gpus, bought.targeted) == (MACHINE, "h100", 16, True)
    assert bought.owner == Owner(LINEAGE, "k1")
    assert bought.tags == (("team", "vision lab"), ("cost", "a=b"))
    assert gcp.reservations(SCOPE) == (bought,)
    assert [effect.after for effect in sandbox.record.purchases(ProviderName.GCP)] == [2]


def test_an_insert_carries_its_name_and_request_id_and_is_sent_once(gcp: Gcp, sandbox: Sandbox) -> None:
    gcp.reserve(reserve_request())

    (call,) = [call for call in sandbox.record.calls if call.operation == "reservations.insert"]
    assert call.parameters["name"] == f"broker-{LINEAGE}-k1"
    assert len(call.parameters["requestId"]) == 36


def test_the_same_purchase_again_is_the_first_one(gcp: Gcp, sandbox: Sandbox) -> None:
    first = gcp.reserve(reserve_request())
    again = adapter(sandbox).reserve(reserve_request())

    assert again == first
    assert len(sandbox.record.purchases()) == 1


def test_the_same_name_with_another_machine_type_is_a_conflict(gcp: Gcp) -> None:
    gcp.reserve(reserve_request())

    with pytest.raises(Conflict):
        gcp.reserve(reserve_request(machine_type="a2-highgpu-1g"))


def test_the_same_purchase_long_after_is_the_first_one_whatever_its_count(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(count=2))
    gcp.resize(resize_request(bought.id, 2, 3))
    sandbox.advance(timedelta(hours=2))

    assert gcp.reserve(reserve_request(count=2)).count == 3
    assert len(sandbox.record.purchases()) == 2
    with pytest.raises(Conflict):
        gcp.reserve(reserve_request(machine_type="a2-highgpu-1g"))


def test_growth_is_one_resize_and_no_delete(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(count=4))
    grown = gcp.resize(resize_request(bought.id, 4, 6))

    assert (grown.id, grown.count) == (bought.id, 6)
    calls = sandbox.record.operations(ProviderName.GCP)
    assert calls.count("reservations.resize") == 1
    assert "reservations.delete" not in calls
    assert gcp.reservations(SCOPE)[0].count == 6


def test_a_full_zone_is_unfilled_and_names_where_there_is_some(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=0, zone=ZONE))

    with pytest.raises(Unfilled) as refusal:
        gcp.reserve(reserve_request())

    assert refusal.value.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert refusal.value.hints == ("us-central1-b", "us-central1-c")
    assert refusal.value.request_id.startswith("operation-")
    assert gcp.reservations(SCOPE) == ()


def test_refused_growth_leaves_what_there_was(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.market.set_capacity(PoolRule(capacity=2, zone=ZONE))

    with pytest.raises(Unfilled):
        gcp.resize(resize_request(bought.id, 2, 4))

    assert gcp.reservations(SCOPE)[0].count == 2


def test_a_used_up_quota_is_said_as_such(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.GCP, quota="NVIDIA_H100_GPUS", limit=8))

    with pytest.raises(QuotaExceeded) as refusal:
        gcp.reserve(reserve_request())

    assert refusal.value.code == "QUOTA_EXCEEDED"
    assert "NVIDIA_H100_GPUS" in refusal.value.message


def test_counts_that_do_not_exist_are_refused_before_a_call(gcp: Gcp, sandbox: Sandbox) -> None:
    for count in (0, 1001):
        with pytest.raises(Unsupported):
            gcp.resize(resize_request(f"{ZONE}/any", 1, count))
    assert sandbox.record.calls == []


def test_a_machine_type_that_is_not_sold_there_is_unsupported(gcp: Gcp) -> None:
    with pytest.raises(Unsupported):
        gcp.reserve(reserve_request(machine_type="a3-megagpu-8g"))


def test_release_is_repeatable(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())

    assert gcp.release(release_request(bought.id)).state is ReservationState.RELEASED
    assert gcp.release(release_request(bought.id)).state is ReservationState.RELEASED
    assert gcp.reservations(SCOPE) == ()
    assert sandbox.record.operations().count("reservations.delete") == 1


def test_an_end_is_set_at_purchase_and_moved(gcp: Gcp) -> None:
    bought = gcp.reserve(reserve_request(end=END))
    later = END.replace(hour=20)
    moved = gcp.set_end(end_request(bought.id, later, END))

    assert bought.ends == END
    assert moved.ends == later
    assert gcp.reservations(SCOPE)[0].ends == later


def test_no_end_is_set_where_the_operator_has_not_vouched_for_it(sandbox: Sandbox) -> None:
    careful = adapter(sandbox, end_settable=False)

    assert not careful.capabilities().end_settable
    with pytest.raises(Unsupported):
        careful.reserve(reserve_request(end=END))
    with pytest.raises(Unsupported):
        careful.set_end(end_request(f"{ZONE}/any", END))
    assert sandbox.record.calls == []


def test_the_bill_s_start_and_end_are_the_cloud_s_own(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.clock.run(5000)
    bought = gcp.reserve(reserve_request())
    released = gcp.release(release_request(bought.id))

    (line,) = sandbox.market.bill()
    assert (bought.billed_from, released.billed_until) == (line.start, line.end)


def test_a_release_that_is_under_way_is_not_asked_for_again(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.UNKNOWN_ENUM, "reservations.get", field="status", value="DELETING")

    assert gcp.release(release_request(bought.id)).state is ReservationState.CANCELLING
    assert "reservations.delete" not in sandbox.record.operations()


@pytest.mark.parametrize(
    "wrong",
    [
        msgspec.structs.replace(reserve_request(), match=(("accelerators", "nvidia-tesla-t4:many"),)),
        msgspec.structs.replace(reserve_request(), place=Place(SCOPE, "")),
        reserve_request(count=0),
        reserve_request(count=1001),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_a_call(gcp: Gcp, sandbox: Sandbox, wrong: ReserveRequest) -> None:
    with pytest.raises(Unsupported):
        gcp.reserve(wrong)
    assert sandbox.record.calls == []


def test_attached_gpus_and_disks_are_asked_for_and_read_back() -> None:
    match = (("accelerators", "nvidia-tesla-t4:2"), ("local-ssds", "NVME:375,SCSI:375"))
    machine = MachineType(
        provider=ProviderName.GCP,
        region=SCOPE.region,
        name="n1-standard-8",
        gpu="T4 16GB",
        gpus=2,
        vcpus=8,
        memory_gib=Decimal(30),
        quota="NVIDIA_T4_GPUS",
        quota_units=2,
        capacity=4,
        zones=(ZONE,),
        reservable=True,
        usd_per_hour=Decimal(1),
    )
    request = msgspec.structs.replace(reserve_request(machine_type=machine.name), match=match)

    with Sandbox(catalogue=Catalogue((machine,))) as sandbox:
        bought = adapter(sandbox).reserve(request)

    assert bought.match == match
    assert (bought.gpu_model, bought.gpus_per_instance) == ("t4", 2)


def test_a_change_that_is_not_seen_is_not_called_done(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(end=END))
    sandbox.fault(FaultKind.HIDDEN, "reservations.resize", delay_s=120)
    growth = resize_request(bought.id, 2, 4)

    with pytest.raises(Ambiguous):
        gcp.resize(growth)
    assert gcp.look(growth).seen is Seen.NOT_YET
    sandbox.advance(timedelta(minutes=3))
    assert gcp.look(growth).seen is Seen.DONE

    sandbox.fault(FaultKind.HIDDEN, "reservations.update", delay_s=120)
    with pytest.raises(Ambiguous):
        gcp.set_end(end_request(bought.id, END.replace(hour=20)))


def test_counts_under_one_key_are_told_apart(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(count=2))
    for before, after in ((2, 4), (4, 1), (1, 3)):
        assert gcp.resize(resize_request(bought.id, before, after)).count == after
        assert [holding.count for holding in sandbox.market.holdings()] == [after]
