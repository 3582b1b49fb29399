"""EC2 for the contract suite."""

from collections.abc import Callable
from datetime import timedelta

import boto3

from broker.clock import Clock
from broker.model.place import Place, ProviderName, Scope
from providers.aws.adapter import Aws
from providers.aws.wire import Wire
from providers.sandbox.local import Sandbox
from providers.settings import AwsAccount, AwsSettings
from tests.contract.cloud import Cloud

EAST = Scope(ProviderName.AWS, "main", "us-east-1")
WEST = Scope(ProviderName.AWS, "main", "us-west-2")


def connect(sandbox: Sandbox, clock: Clock, wait: Callable[[float], None], timeout_s: float) -> Aws:
    account = AwsAccount(name="main", regions=(EAST.region, WEST.region))
    settings = AwsSettings(
        endpoint=sandbox.endpoint, sandbox=True, timeout=timedelta(seconds=timeout_s), accounts=(account,)
    )
    return Aws(settings, clock, Wire(settings, clock, sleep=wait))


def foreign(sandbox: Sandbox) -> str:
    ec2 = boto3.client(
        "ec2",
        region_name=EAST.region,
        endpoint_url=sandbox.endpoint,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    made = ec2.create_capacity_reservation(
        InstanceType="g6.xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b", InstanceCount=1
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


CLOUD = Cloud(
    place=Place(EAST, "us-east-1a", "use1-az1"),
    other=Place(WEST, "us-west-2a", "usw2-az1"),
    machine_type="p5.48xlarge",
    connect=connect,
    buy="CreateCapacityReservation",
    grow="ModifyCapacityReservation",
    release="CancelCapacityReservation",
    list="DescribeCapacityReservations",
    state="state",
    denied=(403, "UnauthorizedOperation"),
    quota=("L-417A185B", 192),
    shared=(("L-417A185B", 192, Place(EAST, "us-east-1b", "use1-az2"), "p4d.24xlarge"),),
    full="InsufficientInstanceCapacity",
    foreign=foreign,
    cannot=frozenset({"parks_at_zero", "states_billing_end"}),
)
