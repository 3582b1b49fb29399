"""The AWS face, asked with boto3: what it answers, and what it refuses with which code and status."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from broker.model.place import ProviderName
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule

ASKED = {
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "InstanceCount": 2,
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def ec2(sandbox: Sandbox) -> Any:
    return client(sandbox)


def client(sandbox: Sandbox, service: str = "ec2", region: str = "us-east-1", key: str = "sandbox") -> Any:
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=sandbox.endpoint,
        aws_access_key_id=key,
        aws_secret_access_key="sandbox",
        config=Config(retries={"total_max_attempts": 1}),
    )


def create(ec2: Any, **rest: Any) -> Any:
    return ec2.create_capacity_reservation(**ASKED | rest)["CapacityReservation"]


def refused(call: Callable[..., Any], **parameters: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as raised:
        call(**parameters)
    response = raised.value.response
    assert response["ResponseMetadata"]["RequestId"]
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_the_same_token_again_is_the_same_reservation(sandbox: Sandbox, ec2: Any) -> None:
    first = create(ec2, ClientToken="t")
    ec2.modify_capacity_reservation(CapacityReservationId=first["CapacityReservationId"], InstanceCount=3)

    again = create(ec2, ClientToken="t")

    assert (again["CapacityReservationId"], again["TotalInstanceCount"]) == (first["CapacityReservationId"], 3)
    assert len(sandbox.record.purchases()) == 2  # the creation and the growth
    assert refused(create, ec2=ec2, ClientToken="t", InstanceCount=4) == ("IdempotentParameterMismatch", 400)


def test_a_token_that_is_too_old_buys_again(sandbox: Sandbox, ec2: Any) -> None:
    create(ec2, ClientToken="t")
    sandbox.advance(timedelta(hours=25))
    create(ec2, ClientToken="t")

    assert len(sandbox.record.purchases()) == 2


def test_a_token_is_its_accounts_and_its_regions(sandbox: Sandbox, ec2: Any) -> None:
    asked = {"ClientToken": "t", "InstanceType": "g6.xlarge"}
    first = create(ec2, **asked)
    west = create(client(sandbox, region="us-west-2"), **asked | {"AvailabilityZone": "us-west-2a"})
    theirs = create(client(sandbox, key="AKIA210987654321"), **asked)

    ids = {made["CapacityReservationId"] for made in (first, west, theirs)}
    assert len(ids) == 3
    assert theirs["OwnerId"] == "210987654321"


def test_without_a_token_every_call_buys(sandbox: Sandbox, ec2: Any) -> None:
    create(ec2)
    create(ec2)
    assert len(sandbox.record.purchases()) == 2


def test_no_capacity_is_a_server_error(sandbox: Sandbox, ec2: Any) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=1))
    assert refused(create, ec2=ec2) == ("InsufficientInstanceCapacity", 500)


def test_a_quota_is_a_clients_error(sandbox: Sandbox, ec2: Any) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.AWS, quota="L-417A185B", limit=192))
    assert refused(create, ec2=ec2) == ("InstanceLimitExceeded", 400)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"InstanceType": "p5.96xlarge"}, "InvalidParameterValue"),
        ({"AvailabilityZone": "us-east-1z"}, "InvalidParameterValue"),
        ({"AvailabilityZone": "us-east-1f"}, "Unsupported"),
        ({"AvailabilityZoneId": "use1-az1"}, "InvalidParameterCombination"),
        ({"InstanceCount": 1001}, "InvalidParameterValue"),
        ({"InstancePlatform": "BeOS"}, "InvalidParameterValue"),
        ({"EndDateType": "limited"}, "InvalidParameterCombination"),
        ({"EndDateType": "limited", "EndDate": "2020-01-01T00:00:00Z"}, "InvalidParameterValue"),
        ({"DryRun": True}, "DryRunOperation"),
        ({"ClientToken": "x" * 65}, "InvalidClientToken"),
        ({"CommitmentDuration": 1209600}, "UnsupportedOperation"),
    ],
)
def test_what_cannot_be_is_refused(sandbox: Sandbox, ec2: Any, changed: dict[str, Any], code: str) -> None:
    assert refused(create, ec2=ec2, **changed)[0] == code
    assert sandbox.record.effects == []


def test_what_is_not_there_is_not_found(ec2: Any) -> None:
    for call in (ec2.modify_capacity_reservation, ec2.cancel_capacity_reservation, ec2.get_capacity_reservation_usage):
        assert refused(call, CapacityReservationId="cr-0")[0] == "InvalidCapacityReservationId.NotFound"
    describe = ec2.describe_capacity_reservations
    assert refused(describe, CapacityReservationIds=["cr-0"]) == ("InvalidCapacityReservationId.NotFound", 400)
    assert refused(describe, CapacityReservationIds=["x"])[0] == "InvalidCapacityReservationId.NotFound"


def test_filters_and_pages_join(sandbox: Sandbox, ec2: Any) -> None:
    made = [create(ec2, InstanceCount=1, AvailabilityZone=f"us-east-1{z}")["AvailabilityZone"] for z in "abcab"]
    pages = ec2.get_paginator("describe_capacity_reservations").paginate(
        Filters=[{"Name": "availability-zone", "Values": ["us-east-1a", "us-east-1b"]}],
        PaginationConfig={"PageSize": 2},
    )
    counts = [len(page["CapacityReservations"]) for page in pages]
    assert (len(made), counts) == (5, [2, 2])
    assert refused(ec2.describe_capacity_reservations, NextToken="?")[0] == "InvalidParameterValue"
    unknown = [{"Name": "colour", "Values": ["red"]}]
    assert refused(ec2.describe_capacity_reservations, Filters=unknown)[0] == "InvalidParameterValue"


def test_zone_names_are_an_accounts_own_and_ids_are_everybodys(sandbox: Sandbox, ec2: Any) -> None:
    def zones(of: Any) -> dict[str, str]:
        return {z["ZoneName"]: z["ZoneId"] for z in of.describe_availability_zones()["AvailabilityZones"]}

    ours, theirs = zones(ec2), zones(client(sandbox, key="AKIA210987654321"))
    assert ours != theirs
    assert set(ours.values()) == set(theirs.values())
    there = next(name for name, id in theirs.items() if id == "use1-az1")
    made = create(client(sandbox, key="AKIA210987654321"), AvailabilityZone=there)
    assert (made["AvailabilityZone"], made["AvailabilityZoneId"]) == (there, "use1-az1")


def launch(ec2: Any, count: int = 1, **specification: Any) -> Any:
    wish = {"CapacityReservationSpecification": specification} if specification else {}
    return ec2.run_instances(ImageId="ami-1", InstanceType="p5.48xlarge", MinCount=count, MaxCount=count, **wish)[
        "Instances"
    ]


def test_instances_consume_the_reservation_that_they_target(ec2: Any) -> None:
    id = create(ec2, InstanceMatchCriteria="targeted")["CapacityReservationId"]
    target = {"CapacityReservationTarget": {"CapacityReservationId": id}}

    assert [i["CapacityReservationId"] for i in launch(ec2, 2, **target)] == [id, id]
    assert refused(launch, ec2=ec2, **target) == ("ReservationCapacityExceeded", 400)
    usage = ec2.get_capacity_reservation_usage(CapacityReservationId=id)
    assert (usage["AvailableInstanceCount"], usage["InstanceUsages"][0]["UsedInstanceCount"]) == (0, 2)
    assert refused(ec2.modify_capacity_reservation, CapacityReservationId=id, InstanceCount=1)[0]


def test_an_untargeted_launch_uses_open_reservations_only(ec2: Any) -> None:
    create(ec2, InstanceMatchCriteria="targeted")
    assert launch(ec2)[0].get("CapacityReservationId") is None
    open_id = create(ec2, InstanceMatchCriteria="open", InstanceCount=1)["CapacityReservationId"]
    assert launch(ec2)[0]["CapacityReservationId"] == open_id
    assert launch(ec2)[0].get("CapacityReservationId") is None
    assert launch(ec2, CapacityReservationPreference="none")[0].get("CapacityReservationId") is None


def test_a_dedicated_reservation_does_not_take_a_default_launch(ec2: Any) -> None:
    id = create(ec2, Tenancy="dedicated")["CapacityReservationId"]
    assert launch(ec2)[0].get("CapacityReservationId") is None
    assert refused(launch, ec2=ec2, CapacityReservationTarget={"CapacityReservationId": id})[0] == (
        "InvalidParameterValue"
    )


def test_as_many_instances_as_asked_or_none(sandbox: Sandbox, ec2: Any) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=0))
    sandbox.market.set_capacity(PoolRule(capacity=2, zone="use1-az1"))
    assert refused(launch, ec2=ec2, count=3) == ("InsufficientInstanceCapacity", 500)
    running = [i for i in sandbox.market.instances() if i.ended is None]
    assert running == []
    assert len(launch(ec2, 2)) == 2


def test_instances_outlive_a_cancelled_reservation(ec2: Any) -> None:
    id = create(ec2)["CapacityReservationId"]
    (instance,) = launch(ec2, CapacityReservationTarget={"CapacityReservationId": id})
    ec2.cancel_capacity_reservation(CapacityReservationId=id)

    (row,) = ec2.describe_instances(InstanceIds=[instance["InstanceId"]])["Reservations"]
    assert row["Instances"][0]["State"]["Name"] == "running"
    assert "CapacityReservationId" not in row["Instances"][0]
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    ended = ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["terminated"]}])
    assert len(ended["Reservations"]) == 1


def test_tags_are_written_read_and_taken_away(ec2: Any) -> None:
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "a", "Value": "1"}]}]
    id = create(ec2, TagSpecifications=tags)["CapacityReservationId"]
    ec2.create_tags(Resources=[id], Tags=[{"Key": "b", "Value": "2"}])
    ec2.delete_tags(Resources=[id], Tags=[{"Key": "a"}])

    found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
    assert [(tag["Key"], tag["Value"], tag["ResourceType"]) for tag in found] == [("b", "2", "capacity-reservation")]
    assert refused(ec2.create_tags, Resources=[id], Tags=[{"Key": "aws:x", "Value": ""}])[0] == "InvalidParameterValue"


def test_an_end_is_reached_and_can_be_moved_before(sandbox: Sandbox, ec2: Any) -> None:
    end = sandbox.clock.now() + timedelta(hours=1)
    id = create(ec2, EndDateType="limited", EndDate=end)["CapacityReservationId"]
    ec2.modify_capacity_reservation(CapacityReservationId=id, EndDateType="limited", EndDate=end + timedelta(hours=1))
    sandbox.advance(timedelta(hours=1, minutes=1))
    assert states(ec2) == ["active"]
    sandbox.advance(timedelta(hours=1))
    assert states(ec2) == ["expired"]
    assert refused(ec2.modify_capacity_reservation, CapacityReservationId=id, InstanceCount=1)[0] == "IncorrectState"
    sandbox.advance(timedelta(days=2))
    assert states(ec2) == []


def states(ec2: Any) -> list[str]:
    return [found["State"] for found in ec2.describe_capacity_reservations()["CapacityReservations"]]


def test_a_reservation_that_fails_later_is_pending_then_failed_then_gone(sandbox: Sandbox, ec2: Any) -> None:
    sandbox.fault(FaultKind.FAILS_LATER, "CreateCapacityReservation", delay_s=60, code="x")
    assert create(ec2)["State"] == "pending"
    sandbox.advance(timedelta(minutes=1))
    assert states(ec2) == ["failed"]
    assert sandbox.market.bill() == []
    sandbox.advance(timedelta(minutes=61))
    assert states(ec2) == []


def test_a_role_leads_to_its_account(sandbox: Sandbox) -> None:
    sts = client(sandbox, "sts")
    assert sts.get_caller_identity()["Account"] == "123456789012"
    role = sts.assume_role(RoleArn="arn:aws:iam::210987654321:role/broker", RoleSessionName="test")
    inside = client(sandbox, "sts", key=role["Credentials"]["AccessKeyId"])
    assert inside.get_caller_identity()["Account"] == "210987654321"


def test_quotas_are_listed_and_got(sandbox: Sandbox) -> None:
    quotas = client(sandbox, "service-quotas")
    codes = {quota["QuotaCode"] for quota in quotas.list_service_quotas(ServiceCode="ec2")["Quotas"]}
    assert codes == {"L-417A185B", "L-DB2E81BA"}
    assert refused(quotas.get_service_quota, ServiceCode="ec2", QuotaCode="L-0")[0] == "NoSuchResourceException"


def test_what_it_does_not_know_it_says_so(sandbox: Sandbox, ec2: Any) -> None:
    assert refused(ec2.describe_volumes) == ("InvalidAction", 400)
    assert refused(client(sandbox, region="eu-west-9").describe_regions)[0] == "UnsupportedOperation"
