"""The custom role holds what the adapter calls, and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from broker.model.place import ProviderName
from broker.model.request import ReserveRequest
from providers.azure.adapter import Azure
from providers.base import Unfilled
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from tests.providers.azure.conftest import (
    RESOURCE_GROUP,
    SCOPE,
    client,
    launch,
    release_request,
    reserve_request,
    resize_request,
)

FILE = Path(__file__).parents[3] / "docs" / "permissions" / "azure.json"
GROUPS = "Microsoft.Compute/capacityReservationGroups"
RESERVATIONS = f"{GROUPS}/capacityReservations"
NEEDS = {
    "capacityReservationGroups.createOrUpdate": f"{GROUPS}/write",
    "capacityReservationGroups.get": f"{GROUPS}/read",
    "capacityReservationGroups.listBySubscription": f"{GROUPS}/read",
    "capacityReservationGroups.delete": f"{GROUPS}/delete",
    "capacityReservations.createOrUpdate": f"{RESERVATIONS}/write",
    "capacityReservations.update": f"{RESERVATIONS}/write",
    "capacityReservations.get": f"{RESERVATIONS}/read",
    "capacityReservations.listByCapacityReservationGroup": f"{RESERVATIONS}/read",
    "capacityReservations.delete": f"{RESERVATIONS}/delete",
    "operations.get": "Microsoft.Compute/locations/operations/read",
    "resourceSkus.list": "Microsoft.Compute/skus/read",
    "usage.list": "Microsoft.Compute/locations/usages/read",
}


@pytest.fixture
def role() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def test_the_role_is_what_azure_takes(role: dict[str, Any]) -> None:
    assert set(role) == {
        "Name",
        "IsCustom",
        "Description",
        "Actions",
        "NotActions",
        "DataActions",
        "NotDataActions",
        "AssignableScopes",
    }
    assert role["IsCustom"] is True
    assert all(re.fullmatch(r"/subscriptions/[0-9a-f-]{36}", scope) for scope in role["AssignableScopes"])
    assert all(re.fullmatch(r"Microsoft\.Compute(/[A-Za-z]+)+/(read|write|delete)", a) for a in role["Actions"])
    assert role["Actions"] == sorted(set(role["Actions"]))


def test_the_actions_are_those_of_the_calls(azure: Azure, sandbox: Sandbox, role: dict[str, Any]) -> None:
    _use_everything(azure, sandbox)

    calls = {call.operation for call in sandbox.record.calls if not call.operation.startswith("virtualMachines.")}

    assert {NEEDS[operation] for operation in calls} == set(role["Actions"])


def _use_everything(azure: Azure, sandbox: Sandbox) -> None:
    azure.identify(SCOPE)
    azure.offers(SCOPE)
    azure.quotas(SCOPE)
    azure.reserve(reserve_request())
    azure.resize(resize_request(2, 3))
    azure.reservations(SCOPE)
    launch(sandbox, "vm-1")
    azure.release(release_request())
    client(sandbox).virtual_machines.begin_delete(RESOURCE_GROUP, "vm-1").result()
    azure.release(release_request())
    _be_refused(azure, sandbox, reserve_request("k2"))


def _be_refused(azure: Azure, sandbox: Sandbox, request: ReserveRequest) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=0, provider=ProviderName.AZURE))
    with pytest.raises(Unfilled):
        azure.reserve(request)
    azure.look(request)
