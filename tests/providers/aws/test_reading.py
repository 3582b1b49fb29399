"""What AWS says, read without losing a reservation to a field that is missing, new or strange."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from botocore.session import get_session
from hypothesis import given
from hypothesis import strategies as st

from broker.model.offer import Shape, instances_left
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.aws import quotas, reading
from providers.aws.changes import as_asked
from providers.aws.consumption import consumption
from providers.base import BrokenReply, Quota
from tests.providers.aws.conftest import PLACE, SCOPE, reserve_request

START = datetime(2026, 12, 10, 11, 30, tzinfo=UTC)
REQUESTED = "aws:ec2capacityreservation:incrementalRequestedQuantity"
BLOCK = {
    "CapacityReservationId": "cr-2",
    "InstanceType": "p5.48xlarge",
    "State": "scheduled",
    "TotalInstanceCount": 0,
    "AvailableInstanceCount": 0,
    "StartDate": START,
    "EndDate": START + timedelta(days=1),
    "ReservationType": "capacity-block",
    "Tags": [{"Key": REQUESTED, "Value": "4"}],
}
ACTIVE = {
    "CapacityReservationId": "cr-1",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-east-1a",
    "AvailabilityZoneId": "use1-az1",
    "State": "active",
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 1,
}


def read(**raw: Any) -> Reservation:
    return reading.reservation("DescribeCapacityReservations", raw, SCOPE)


def test_every_state_of_the_sdk_is_translated() -> None:
    model = get_session().get_service_model("ec2").shape_for("CapacityReservationState")
    unavailable = {"unavailable"}
    assert set(model.enum) - set(reading.STATES) == unavailable
    assert read(**ACTIVE | {"State": "unavailable"}).state is ReservationState.UNKNOWN


@pytest.mark.parametrize("state", ["brand-new", "", "ACTIVE"])
def test_a_state_that_is_new_is_supply_and_says_so(state: str) -> None:
    found = read(**ACTIVE | {"State": state})
    assert (found.state, found.raw_state, found.count) == (ReservationState.UNKNOWN, state, 2)
    assert found.state.supplies
    assert found.notes


def test_use_is_what_is_not_available_and_full_where_that_is_not_said() -> None:
    assert read(**ACTIVE).used == 1
    silent = {name: value for name, value in ACTIVE.items() if name != "AvailableInstanceCount"}
    assert read(**silent).used == 2
    assert "how much" in read(**silent).notes[0]
    assert read(**ACTIVE | {"AvailableInstanceCount": 5}).used == 0
    assert read(**ACTIVE | {"State": "pending"}).used == 0


def test_a_block_that_has_not_begun_counts_with_what_it_will_have() -> None:
    block = read(**BLOCK)
    assert (block.count, block.state, block.usable_from) == (4, ReservationState.SCHEDULED, START)
    assert (block.committed_count, block.committed_until) == (4, block.ends)


@pytest.mark.parametrize(("machine_type", "minutes"), [("p5.48xlarge", 30), ("p6e-gb200.36xlarge", 60)])
def test_a_block_is_not_usable_while_it_is_reclaimed(machine_type: str, minutes: int) -> None:
    block = read(**BLOCK | {"InstanceType": machine_type, "State": "active", "TotalInstanceCount": 4})
    assert block.usable_until == START + timedelta(days=1) - timedelta(minutes=minutes)
    assert read(**ACTIVE | {"EndDate": START}).usable_until == START


def test_the_type_of_reservation_may_be_missing_or_in_a_tag() -> None:
    plain = read(**ACTIVE)
    assert (plain.committed_count, plain.committed_until) == (0, None)
    tag = {"Key": "aws:ec2capacityreservation:capacityReservationType", "Value": "capacity-block"}
    assert read(**ACTIVE | {"Tags": [tag], "EndDate": START}).committed_until == START


def test_a_commitment_is_a_floor() -> None:
    info = {"CommittedInstanceCount": 2, "CommitmentEndDate": START}
    found = read(**ACTIVE | {"CommitmentInfo": info})
    assert (found.committed_count, found.committed_until) == (2, START)


def test_what_must_match_is_part_of_it() -> None:
    raw = ACTIVE | {"Tenancy": "dedicated", "InstancePlatform": "Linux/UNIX", "PlacementGroupArn": "arn:x/pg"}
    assert read(**raw).match == (("placement_group", "arn:x/pg"), ("platform", "Linux/UNIX"), ("tenancy", "dedicated"))
    assert read(**ACTIVE | {"Interruptible": True}).interruptible
    assert not read(**ACTIVE | {"InstanceMatchCriteria": "open"}).targeted


def test_times_are_in_utc_whatever_this_machine_is_in() -> None:
    local = START.astimezone(timezone(timedelta(hours=9)))
    found = read(**ACTIVE | {"StartDate": local, "EndDate": local})
    assert found.billed_from is not None
    assert (found.billed_from, found.billed_from.tzinfo) == (START, UTC)


def test_only_our_tags_make_an_owner() -> None:
    assert read(**ACTIVE).owner is None
    tags = [{"Key": "broker:lineage", "Value": "l"}, {"Key": "broker:key", "Value": "k"}, {"Key": "a", "Value": "b"}]
    found = read(**ACTIVE | {"Tags": tags})
    assert (found.owner, found.tags) == (Owner("l", "k"), (("a", "b"),))


@given(st.sets(st.sampled_from(sorted(ACTIVE.keys() - {"CapacityReservationId"}))))
def test_a_purchase_survives_any_missing_field_of_its_reply(missing: set[str]) -> None:
    request = reserve_request()
    raw = {name: value for name, value in ACTIVE.items() if name not in missing} | {"BrandNewField": {"x": 1}}

    bought = reading.reservation("CreateCapacityReservation", raw, SCOPE, as_asked(request))

    assert (bought.id, bought.count, bought.machine_type) == ("cr-1", 2, request.machine_type)
    assert (bought.place.scope, bought.place.zone, bought.owner) == (SCOPE, PLACE.zone, Owner(request.lineage, "k1"))
    assert bought.state in (ReservationState.ACTIVE, ReservationState.UNKNOWN)
    assert msgspec.json.decode(msgspec.json.encode(bought), type=Reservation) == bought


def test_a_reservation_without_an_id_is_a_broken_reply() -> None:
    with pytest.raises(BrokenReply):
        read(State="active")


# -- offers


def type_info(name: str, **rest: Any) -> dict[str, Any]:
    gpu = {"Name": "H100", "Count": 8, "MemoryInfo": {"SizeInMiB": 81920}}
    return {"InstanceType": name, "GpuInfo": {"Gpus": [gpu]}, "VCpuInfo": {"DefaultVCpus": 192}, **rest}


def offers(*types: dict[str, Any], left: quotas.Left | None = None) -> list[Any]:
    sold = {"us-east-1a": {raw["InstanceType"] for raw in types}}
    return reading.offers([PLACE], sold, types, left or {})


def test_a_type_that_our_table_does_not_know_is_read_from_what_aws_says() -> None:
    (offer,) = offers(type_info("p99.48xlarge", MemoryInfo={"SizeInMiB": 2048}))
    assert offer.shape == Shape("p99.48xlarge", "h100", 8, 192, offer.shape.memory_gib)
    assert offer.shape.memory_gib == 2


def test_what_is_not_sold_on_demand_or_not_whole_is_shown_and_excluded() -> None:
    (block_only,) = offers(type_info("p99.48xlarge", SupportedUsageClasses=["capacity-block"]))
    (fraction,) = offers(type_info("g6f.large"))
    assert block_only.excluded == "not sold on demand"
    assert fraction.excluded == "less than one whole GPU"


def test_a_type_without_gpus_or_not_sold_in_the_zone_is_no_offer() -> None:
    assert offers({"InstanceType": "g99.large"}) == []
    assert reading.offers([PLACE], {"us-east-1b": {"p5.48xlarge"}}, [type_info("p5.48xlarge")], {}) == []


def test_what_the_quota_leaves_is_in_instances() -> None:
    limits = (
        Quota(scope=SCOPE, name="L-417A185B", unit="vcpus", limit=400, used=100),
        Quota(scope=SCOPE, name="L-DB2E81BA", unit="vcpus", limit=None, used=0),
    )
    vcpus = {"p5.48xlarge": 192, "p5.4xlarge": 16, "g6.xlarge": 4}
    left = quotas.left(limits, vcpus)
    assert {name: instances_left(allowances) for name, allowances in left.items()} == {
        "p5.48xlarge": 1,
        "p5.4xlarge": 18,
    }
    assert {one.quota for allowances in left.values() for one in allowances} == {f"{SCOPE}/L-417A185B"}


# -- how to use it


def test_how_to_consume_it_is_exact() -> None:
    raw = ACTIVE | {"InstanceMatchCriteria": "targeted", "Tenancy": "dedicated", "InstancePlatform": "Linux/UNIX"}
    lines = dict(consumption(read(**raw)))
    assert '"CapacityReservationId": "cr-1"' in lines["CapacityReservationSpecification"]
    assert "AvailabilityZone=us-east-1a,Tenancy=dedicated" in lines["aws"]
    assert "GroupName" not in lines["aws"]
    assert lines["placement group"] == "no placement group"
    assert "MarketType" not in lines["aws"]


def test_a_block_is_consumed_as_a_block_and_a_group_by_its_name() -> None:
    assert "MarketType=capacity-block" in dict(consumption(read(**BLOCK)))["aws"]
    grouped = read(**ACTIVE | {"PlacementGroupArn": "arn:aws:ec2:us-east-1:1:placement-group/mine"})
    assert "GroupName=mine" in dict(consumption(grouped))["aws"]


def test_an_open_reservation_is_not_targeted() -> None:
    lines = dict(consumption(read(**ACTIVE | {"InstanceMatchCriteria": "open"})))
    assert lines["CapacityReservationSpecification"] == '{"CapacityReservationPreference": "open"}'
