"""Azure's face, asked by the real client: it refuses what Azure refuses, with the same codes and statuses."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.policies import HeadersPolicy, SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient

from broker.model.place import ProviderName
from providers.azure.client import SandboxCredential
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule

SUBSCRIPTION, HOME, REGION = "00000000-0000-0000-0000-000000000001", "rg", "eastus"
SIZE = "Standard_ND96isr_H100_v5"
PREFIX = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{HOME}/providers/Microsoft.Compute"
GROUP = f"{PREFIX}/capacityReservationGroups/g"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def compute(sandbox: Sandbox) -> Any:
    """The client as its own documentation makes it: the SDK's pipeline, retries and polling included."""
    client = ComputeManagementClient(
        SandboxCredential(),
        SUBSCRIPTION,
        base_url=sandbox.endpoint,
        authentication_policy=SansIOHTTPPolicy(),
        polling_interval=0,
        retry_backoff_factor=0.001,
    )
    client.capacity_reservation_groups.create_or_update(HOME, "g", {"location": REGION, "zones": ["1", "2"]})
    return client


def reserved(compute: Any, name: str = "r", count: int = 2, *, group: str = "g", **more: Any) -> Any:
    body = {"location": REGION, "zones": ["1"], "sku": {"name": SIZE, "capacity": count}, **more}
    return compute.capacity_reservations.begin_create_or_update(HOME, group, name, body).result()


def refused(call: Any, *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """HTTP status and code of a refusal."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    error = caught.value
    return error.status_code, error.error.code if error.error else ""


def machine(compute: Any, name: str, group: str | None = GROUP, *, zone: str = "1", **more: Any) -> Any:
    link = {"capacityReservation": {"capacityReservationGroup": {"id": group}}} if group else {}
    properties = {"hardwareProfile": {"vmSize": SIZE}, **link, **more}
    body = {"location": REGION, "zones": [zone] if zone else [], "properties": properties}
    return compute.virtual_machines.begin_create_or_update(HOME, name, body).result()


def test_a_reservation_is_made_by_a_long_running_operation(compute: Any) -> None:
    made = reserved(compute, tags={"a": "b"})

    assert (made.name, made.sku.capacity, list(made.zones), dict(made.tags)) == ("r", 2, ["1"], {"a": "b"})
    assert made.properties.provisioning_state == "Succeeded"
    assert made.properties.instance_view is None
    seen = compute.capacity_reservations.get(HOME, "g", "r", expand="instanceView")
    assert seen.properties.instance_view.utilization_info.current_capacity == 2
    assert seen.properties.instance_view.statuses[0].code == "ProvisioningState/succeeded"


def test_names_are_the_same_in_any_case(compute: Any) -> None:
    reserved(compute)

    assert compute.capacity_reservations.get(HOME.upper(), "G", "R").sku.capacity == 2


def test_a_group_shows_what_is_in_it(compute: Any) -> None:
    reserved(compute)
    machine(compute, "vm-1")

    group = compute.capacity_reservation_groups.get(HOME, "g", expand="instanceView")

    assert [member.id for member in group.properties.capacity_reservations] == [f"{GROUP}/capacityReservations/r"]
    assert [vm.id for vm in group.properties.virtual_machines_associated] == [f"{PREFIX}/virtualMachines/vm-1"]
    (view,) = group.properties.instance_view.capacity_reservations
    assert (view.name, view.utilization_info.current_capacity) == ("r", 2)
    assert len(view.utilization_info.virtual_machines_allocated) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"location": "westeurope"}, (400, "InvalidParameter")),
        ({"zones": ["3"]}, (400, "InvalidParameter")),
        ({"zones": ["1", "2"]}, (400, "InvalidParameter")),
        ({"sku": {"name": "Standard_Nothing", "capacity": 1}}, (400, "InvalidParameter")),
        ({"sku": {"name": SIZE, "capacity": -1}}, (400, "InvalidParameter")),
        ({"sku": {"name": SIZE}}, (400, "InvalidParameter")),
        ({"sku": {"name": "Standard_NC6s_v3", "capacity": 1}}, (409, "NotSupported")),
    ],
)
def test_what_is_not_valid_is_refused(change: dict[str, Any], expected: tuple[int, str], compute: Any) -> None:
    assert refused(reserved, compute, **({"sku": {"name": SIZE, "capacity": 1}} | change)) == expected


def test_a_zone_that_does_not_sell_the_size_is_refused(compute: Any) -> None:
    compute.capacity_reservation_groups.create_or_update(HOME, "g3", {"location": REGION, "zones": ["3"]})

    assert refused(reserved, compute, group="g3", zones=["3"]) == (409, "SkuNotAvailable")


def test_a_reservation_needs_a_group(compute: Any) -> None:
    assert refused(reserved, compute, group="none") == (404, "ParentResourceNotFound")


def test_one_reservation_for_each_size_and_zone(compute: Any) -> None:
    reserved(compute)

    assert refused(reserved, compute, "other") == (409, "Conflict")
    assert reserved(compute, "other", zones=["2"]).name == "other"


def test_only_the_count_and_the_tags_can_be_changed(compute: Any, sandbox: Sandbox) -> None:
    reserved(compute)

    assert refused(reserved, compute, zones=["2"]) == (409, "PropertyChangeNotAllowed")
    assert reserved(compute, count=3, tags={"x": "y"}).sku.capacity == 3
    patched = compute.capacity_reservations.begin_update(HOME, "g", "r", {"sku": {"capacity": 0}}).result()
    assert (patched.sku.capacity, dict(patched.tags)) == (0, {"x": "y"})
    assert [(e.before, e.after) for e in sandbox.record.purchases()] == [(0, 2), (2, 3)]


def test_a_groups_place_and_type_cannot_be_changed(compute: Any) -> None:
    change = compute.capacity_reservation_groups.create_or_update

    assert refused(change, HOME, "g", {"location": "westeurope"}) == (409, "PropertyChangeNotAllowed")
    assert refused(change, HOME, "h", {}) == (400, "InvalidParameter")
    assert compute.capacity_reservation_groups.update(HOME, "g", {"tags": {"x": "y"}}).tags == {"x": "y"}


def test_a_full_zone_fails_in_the_operation_and_leaves_a_failed_resource(compute: Any, sandbox: Sandbox) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=1))

    assert refused(reserved, compute) == (200, "ZonalAllocationFailed")

    left = compute.capacity_reservations.get(HOME, "g", "r", expand="instanceView")
    assert left.properties.provisioning_state == "Failed"
    assert left.properties.instance_view.utilization_info.current_capacity == 0
    assert sandbox.market.bill() == []
    sandbox.market.clear_capacity()
    assert reserved(compute).properties.provisioning_state == "Succeeded"


def test_a_quota_is_refused_at_once(compute: Any, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.AZURE, quota="standardNDSH100v5Family", limit=100))

    with pytest.raises(HttpResponseError) as caught:
        reserved(compute)

    assert (caught.value.status_code, caught.value.error.code) == (409, "OperationNotAllowed")
    assert "exceeding approved standardNDSH100v5Family Cores quota" in caught.value.error.message


def test_a_refused_growth_leaves_the_old_size_failed(compute: Any, sandbox: Sandbox) -> None:
    reserved(compute)
    sandbox.market.set_capacity(PoolRule(capacity=2))
    grow = compute.capacity_reservations.begin_update

    assert refused(lambda: grow(HOME, "g", "r", {"sku": {"capacity": 5}}).result()) == (200, "ZonalAllocationFailed")

    left = compute.capacity_reservations.get(HOME, "g", "r", expand="instanceView")
    assert (left.properties.provisioning_state, left.sku.capacity) == ("Failed", 5)
    assert left.properties.instance_view.utilization_info.current_capacity == 2
    assert grow(HOME, "g", "r", {"sku": {"capacity": 2}}).result().properties.provisioning_state == "Succeeded"


def test_a_new_reservation_can_take_its_time(compute: Any, sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.AZURE, timedelta(seconds=30))
    body = {"location": REGION, "zones": ["1"], "sku": {"name": SIZE, "capacity": 2}}
    poller = compute.capacity_reservations.begin_create_or_update(HOME, "g", "r", body)
    assert poller.status() == "InProgress"

    assert compute.capacity_reservations.get(HOME, "g", "r").properties.provisioning_state == "Creating"
    change = compute.capacity_reservations.begin_update
    assert refused(change, HOME, "g", "r", {"sku": {"capacity": 3}}) == (409, "AnotherOperationInProgress")
    sandbox.advance(timedelta(seconds=30))
    assert poller.result().properties.provisioning_state == "Succeeded"


def test_what_is_in_use_cannot_be_deleted(compute: Any) -> None:
    reserved(compute)
    machine(compute, "vm-1")
    delete = compute.capacity_reservations.begin_delete

    assert refused(delete, HOME, "g", "r") == (409, "OperationNotAllowed")
    assert refused(compute.capacity_reservation_groups.begin_delete, HOME, "g") == (409, "CannotDeleteResource")
    apart = {"properties": {"capacityReservation": {"capacityReservationGroup": {"id": None}}}}
    compute.virtual_machines.begin_update(HOME, "vm-1", apart).result()
    delete(HOME, "g", "r").result()
    compute.capacity_reservation_groups.begin_delete(HOME, "g").result()
    assert refused(compute.capacity_reservation_groups.get, HOME, "g") == (404, "ResourceNotFound")


def test_vms_run_beyond_the_count_while_there_is_room(compute: Any, sandbox: Sandbox) -> None:
    reserved(compute, count=1)
    sandbox.market.set_capacity(PoolRule(capacity=2))
    machine(compute, "vm-1")
    machine(compute, "vm-2")

    assert refused(machine, compute, "vm-3") == (409, "ZonalAllocationFailed")
    seen = compute.capacity_reservations.get(HOME, "g", "r", expand="instanceView")
    assert len(seen.properties.instance_view.utilization_info.virtual_machines_allocated) == 2
    assert [e.after for e in sandbox.record.purchases()] == [1]


def test_a_vm_must_match_the_reservation(compute: Any) -> None:
    reserved(compute)

    assert refused(machine, compute, "vm-1", zone="2") == (400, "InvalidParameter")
    assert refused(machine, compute, "vm-1", zone="") == (400, "InvalidParameter")
    assert refused(machine, compute, "vm-1", priority="Spot") == (400, "InvalidParameter")
    assert refused(machine, compute, "vm-1", f"{GROUP}-other") == (404, "ResourceNotFound")
    assert machine(compute, "vm-1", None).name == "vm-1"


def test_vms_are_listed_shown_and_deleted(compute: Any) -> None:
    for name in ("vm-1", "vm-2"):
        machine(compute, name, None)

    assert [vm.name for vm in compute.virtual_machines.list(HOME)] == ["vm-1", "vm-2"]
    assert [vm.name for vm in compute.virtual_machines.list_all()] == ["vm-1", "vm-2"]
    assert compute.virtual_machines.get(HOME, "vm-1").hardware_profile.vm_size == SIZE
    compute.virtual_machines.begin_delete(HOME, "vm-1").result()
    assert refused(compute.virtual_machines.get, HOME, "vm-1") == (404, "ResourceNotFound")


def test_lists_come_in_pages(compute: Any, sandbox: Sandbox) -> None:
    for number in range(5):
        compute.capacity_reservation_groups.create_or_update(HOME, f"g{number}", {"location": REGION})
    sandbox.world.memory[ProviderName.AZURE]["page_size"] = 2

    whole = [group.name for group in compute.capacity_reservation_groups.list_by_resource_group(HOME)]
    skus = [sku.name for sku in compute.resource_skus.list(filter=f"location eq '{REGION}'")]

    assert sorted(whole) == ["g", "g0", "g1", "g2", "g3", "g4"]
    assert len(skus) == len(set(skus)) == len(sandbox.world.catalogue.on_sale(ProviderName.AZURE, REGION))


def test_the_sku_list_says_what_may_be_reserved(compute: Any, sandbox: Sandbox) -> None:
    said = {
        sku.name: {c.name: c.value for c in sku.capabilities}["CapacityReservationSupported"]
        for sku in compute.resource_skus.list(filter=f"location eq '{REGION}'")
    }

    assert (said[SIZE], said["Standard_NC6s_v3"]) == ("True", "False")
    assert len(list(compute.resource_skus.list())) > len(said)


def test_usages_count_what_is_reserved_and_what_runs(compute: Any) -> None:
    reserved(compute)
    machine(compute, "vm-1", None)

    used = {usage.name.value: usage.current_value for usage in compute.usage.list(REGION)}

    assert used["standardNDSH100v5Family"] == used["cores"] == 3 * 96


def test_hidden_purchases_are_real_and_shown_later(compute: Any, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.HIDDEN, "capacityReservations.createOrUpdate", ProviderName.AZURE, delay_s=60)

    assert refused(reserved, compute)[0] == 404
    assert list(compute.capacity_reservations.list_by_capacity_reservation_group(HOME, "g")) == []
    assert refused(compute.capacity_reservation_groups.begin_delete, HOME, "g") == (409, "CannotDeleteResource")
    sandbox.advance(timedelta(minutes=1))
    assert compute.capacity_reservations.get(HOME, "g", "r").sku.capacity == 2


def test_each_subscription_sees_its_own(compute: Any, sandbox: Sandbox) -> None:
    other = ComputeManagementClient(
        SandboxCredential(), "other", base_url=sandbox.endpoint, authentication_policy=HeadersPolicy()
    )

    assert list(other.capacity_reservation_groups.list_by_subscription()) == []
    assert len(list(compute.capacity_reservation_groups.list_by_subscription())) == 1


def test_the_world_goes_on_from_a_file(compute: Any, sandbox: Sandbox) -> None:
    reserved(compute)
    saved = sandbox.world.saved()
    compute.capacity_reservations.begin_delete(HOME, "g", "r").result()

    sandbox.world.restore(saved)

    assert compute.capacity_reservations.get(HOME, "g", "r").properties.provisioning_state == "Succeeded"


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", f"/subscriptions/{SUBSCRIPTION}", None, (200, "")),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/nothing", None, (404, "ResourceNotFound")),
        ("PUT", GROUP, b"[]", (400, "BadRequest")),
        ("PUT", GROUP, b"{", (400, "BadRequest")),
        (
            "GET",
            f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/operations/x",
            None,
            (404, "ResourceNotFound"),
        ),
    ],
)
def test_other_requests_are_answered_as_arm_does(
    method: str, path: str, body: bytes | None, expected: tuple[int, str], sandbox: Sandbox
) -> None:
    request = urllib.request.Request(f"{sandbox.endpoint}{path}", data=body, method=method)
    try:
        with urllib.request.urlopen(request) as reply:
            status, answer, headers = reply.status, json.load(reply), reply.headers
    except urllib.error.HTTPError as error:
        with error:
            status, answer, headers = error.code, json.load(error), error.headers

    assert (status, answer.get("error", {}).get("code", "")) == expected
    assert headers["x-ms-request-id"]
