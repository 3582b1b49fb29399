"""Azure Compute for the contract suite."""

from collections.abc import Callable
from datetime import timedelta

from azure.mgmt.compute import models

from broker.clock import Clock
from broker.model.place import Place, ProviderName, Scope
from providers.azure.adapter import Azure
from providers.azure.client import SandboxCredential, compute_client
from providers.sandbox.local import Sandbox
from providers.settings import AzureSettings, AzureSubscription
from tests.contract.cloud import Cloud

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
EAST = Scope(ProviderName.AZURE, SUBSCRIPTION, "eastus")
WEST = Scope(ProviderName.AZURE, SUBSCRIPTION, "westeurope")


def settings(sandbox: Sandbox, timeout_s: float = 5.0) -> AzureSettings:
    subscription = AzureSubscription(
        subscription=SUBSCRIPTION, regions=(EAST.region, WEST.region), resource_group="capacity"
    )
    return AzureSettings(
        endpoint=sandbox.endpoint, sandbox=True, timeout=timedelta(seconds=timeout_s), subscriptions=(subscription,)
    )


def connect(sandbox: Sandbox, clock: Clock, wait: Callable[[float], None], timeout_s: float) -> Azure:
    return Azure(settings(sandbox, timeout_s), clock, wait=wait)


def foreign(sandbox: Sandbox) -> str:
    client = compute_client(settings(sandbox), SUBSCRIPTION, SandboxCredential())
    group = models.CapacityReservationGroup(location=EAST.region, zones=["2"])
    client.capacity_reservation_groups.create_or_update("by-hand", "pool", group)
    sku = models.Sku(name="Standard_NC24ads_A100_v4", capacity=1)
    made = models.CapacityReservation(location=EAST.region, sku=sku, zones=["2"])
    client.capacity_reservations.begin_create_or_update("by-hand", "pool", "one", made).result()
    return "by-hand/pool/one"


CLOUD = Cloud(
    place=Place(EAST, "1"),
    other=Place(WEST, "1"),
    machine_type="Standard_ND96isr_H100_v5",
    connect=connect,
    buy="capacityReservations.createOrUpdate",
    grow="capacityReservations.update",
    release="capacityReservations.delete",
    list="capacityReservationGroups.listBySubscription",
    state="provisioningState",
    denied=(403, "AuthorizationFailed"),
    quota=("standardNDSH100v5Family", 96),
    shared=(
        ("cores", 96, Place(EAST, "2"), "Standard_NC24ads_A100_v4"),
        ("standardNDSH100v5Family", 96, Place(EAST, "2"), "Standard_ND96isr_H100_v5"),
    ),
    full="AllocationFailed",
    foreign=foreign,
    cannot=frozenset({"end_settable", "states_billing_start", "states_billing_end"}),
)
