"""A sandbox and the real adapter on it, over the wire."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReleaseRequest, ReserveRequest, ResizeRequest
from providers.azure.adapter import Azure
from providers.azure.client import SandboxCredential, compute_client
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.settings import AzureSettings, AzureSubscription

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
OTHER = "00000000-0000-0000-0000-000000000002"
RESOURCE_GROUP = "Capacity"
REGION = "eastus"
LINEAGE = "0123456789ab"
SCOPE = Scope(ProviderName.AZURE, SUBSCRIPTION, REGION)
PLACE = Place(SCOPE, "1")
SIZE = "Standard_ND96isr_H100_v5"
NAME = f"broker-{LINEAGE}-k1"
ID = f"capacity/{NAME}"
PUT = "capacityReservations.createOrUpdate"
PATCH = "capacityReservations.update"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def waits() -> list[float]:
    """The seconds that the adapter would have waited for."""
    return []


@pytest.fixture
def azure(sandbox: Sandbox, waits: list[float]) -> Azure:
    return adapter(sandbox, waits)


def settings(sandbox: Sandbox, timeout: timedelta = timedelta(seconds=5)) -> AzureSettings:
    return AzureSettings(
        endpoint=sandbox.endpoint,
        sandbox=True,
        timeout=timeout,
        subscriptions=tuple(
            AzureSubscription(subscription=name, regions=(REGION, "westeurope"), resource_group=RESOURCE_GROUP)
            for name in (SUBSCRIPTION, OTHER)
        ),
    )


def adapter(sandbox: Sandbox, waits: list[float] | None = None, timeout: timedelta = timedelta(seconds=5)) -> Azure:
    waited: list[float] = [] if waits is None else waits
    return Azure(settings(sandbox, timeout), sandbox.clock, wait=waited.append)


def client(sandbox: Sandbox) -> Any:
    """The SDK's client, for what users do beside the broker."""
    return compute_client(settings(sandbox), SUBSCRIPTION, SandboxCredential())


def reserve_request(key: str = "k1", count: int = 2, *, size: str = SIZE, zone: str = "1") -> ReserveRequest:
    return ReserveRequest(
        key=key,
        lineage=LINEAGE,
        place=Place(SCOPE, zone),
        machine_type=size,
        count=count,
        tags=(("team", "vision lab"),),
    )


def resize_request(from_count: int, to_count: int, id: str = ID, key: str = "k2") -> ResizeRequest:
    return ResizeRequest(
        key=key, lineage=LINEAGE, place=PLACE, reservation_id=id, from_count=from_count, to_count=to_count
    )


def release_request(id: str = ID, key: str = "k3") -> ReleaseRequest:
    return ReleaseRequest(key=key, lineage=LINEAGE, place=PLACE, reservation_id=id)


def fault(sandbox: Sandbox, kind: FaultKind, operation: str = PUT, **rest: object) -> None:
    sandbox.fault(kind, operation, ProviderName.AZURE, **rest)


def bought(sandbox: Sandbox) -> list[tuple[int, int]]:
    """Counts before and after each purchase that the sandbox saw happen."""
    return [(effect.before, effect.after) for effect in sandbox.record.purchases(ProviderName.AZURE)]


def called(sandbox: Sandbox, operation: str) -> int:
    return sandbox.record.operations(ProviderName.AZURE).count(operation)


def launch(sandbox: Sandbox, name: str, *, group: str | None = NAME, size: str = SIZE, zone: str = "1") -> None:
    """Start a VM, on a reservation if a group is named."""
    link = {"capacityReservation": {"capacityReservationGroup": {"id": group_id(group)}}} if group else {}
    body = {"location": REGION, "zones": [zone], "properties": {"hardwareProfile": {"vmSize": size}, **link}}
    client(sandbox).virtual_machines.begin_create_or_update(RESOURCE_GROUP, name, body).result()


def group_id(name: str = NAME) -> str:
    return (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}"
        f"/providers/Microsoft.Compute/capacityReservationGroups/{name}"
    )
