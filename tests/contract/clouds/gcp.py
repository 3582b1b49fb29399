"""Compute Engine for the contract suite."""

from collections.abc import Callable
from datetime import timedelta

from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

from broker.clock import Clock
from broker.model.place import Place, ProviderName, Scope
from providers.gcp.adapter import Gcp
from providers.gcp.wire import Wire
from providers.sandbox.local import Sandbox
from providers.settings import GcpProject, GcpSettings
from tests.contract.cloud import Cloud

PROJECT = "research"
CENTRAL = Scope(ProviderName.GCP, PROJECT, "us-central1")
EUROPE = Scope(ProviderName.GCP, PROJECT, "europe-west4")


def connect(sandbox: Sandbox, _clock: Clock, wait: Callable[[float], None], timeout_s: float) -> Gcp:
    project = GcpProject(project=PROJECT, regions=(CENTRAL.region, EUROPE.region))
    settings = GcpSettings(
        endpoint=sandbox.endpoint, sandbox=True, timeout=timedelta(seconds=timeout_s), projects=(project,)
    )
    return Gcp(settings, Wire(settings, sleep=wait))


def foreign(sandbox: Sandbox) -> str:
    client = compute_v1.ReservationsClient(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": sandbox.endpoint}
    )
    properties = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(machine_type="g2-standard-4")
    allocation = compute_v1.AllocationSpecificSKUReservation(count=1, instance_properties=properties)
    made = compute_v1.Reservation(name="by-hand", specific_reservation=allocation)
    client.insert_unary(project=PROJECT, zone="us-central1-b", reservation_resource=made)
    return "us-central1-b/by-hand"


CLOUD = Cloud(
    place=Place(CENTRAL, "us-central1-a"),
    other=Place(EUROPE, "europe-west4-a"),
    machine_type="a3-highgpu-8g",
    connect=connect,
    buy="reservations.insert",
    grow="reservations.resize",
    release="reservations.delete",
    list="reservations.aggregatedList",
    state="status",
    denied=(403, "forbidden"),
    quota=("NVIDIA_H100_GPUS", 8),
    shared=(("GPUS_ALL_REGIONS", 8, Place(EUROPE, "europe-west4-b"), "g2-standard-24"),),
    full="ZONE_RESOURCE_POOL_EXHAUSTED",
    foreign=foreign,
    cannot=frozenset({"end_settable", "tags", "parks_at_zero", "states_billing_end"}),
)
