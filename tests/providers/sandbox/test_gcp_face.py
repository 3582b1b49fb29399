"""Compute Engine's face, asked by the real clients and held to the SDK's own message types."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
from google.protobuf import json_format

from broker.model.place import ProviderName
from providers.sandbox.faults import FaultKind
from providers.sandbox.gcp_catalogue import METRICS
from providers.sandbox.local import Sandbox

P, Z, MACHINE = "research", "us-central1-a", "a3-highgpu-8g"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def client(kind: Any, sandbox: Sandbox) -> Any:
    return kind(credentials=AnonymousCredentials(), client_options={"api_endpoint": sandbox.endpoint})


@pytest.fixture
def reservations(sandbox: Sandbox) -> Any:
    return client(compute_v1.ReservationsClient, sandbox)


@pytest.fixture
def operations(sandbox: Sandbox) -> Any:
    return client(compute_v1.ZoneOperationsClient, sandbox)


def made(name: str = "r1", count: int = 2, **more: Any) -> compute_v1.Reservation:
    properties = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(machine_type=MACHINE)
    specific = compute_v1.AllocationSpecificSKUReservation(count=count, instance_properties=properties)
    fields = {"specific_reservation_required": True, "description": "theirs", **more}
    return compute_v1.Reservation(name=name, specific_reservation=specific, **fields)


def insert(reservations: Any, raw: compute_v1.Reservation, request_id: str = "") -> compute_v1.Operation:
    request = compute_v1.InsertReservationRequest(
        project=P, zone=Z, reservation_resource=raw, request_id=request_id or None
    )
    return reservations.insert_unary(request=request)


def refused(reservations: Any, raw: compute_v1.Reservation) -> tuple[int, str]:
    with pytest.raises(exceptions.GoogleAPICallError) as error:
        insert(reservations, raw)
    return int(error.value.code or 0), error.value.errors[0]["reason"]


REPLIES = {
    "": compute_v1.Project,
    "/regions": compute_v1.RegionList,
    "/regions/us-central1": compute_v1.Region,
    "/zones": compute_v1.ZoneList,
    f"/zones/{Z}": compute_v1.Zone,
    f"/zones/{Z}/machineTypes": compute_v1.MachineTypeList,
    f"/zones/{Z}/machineTypes/{MACHINE}": compute_v1.MachineType,
    "/aggregated/machineTypes": compute_v1.MachineTypeAggregatedList,
    f"/zones/{Z}/reservations": compute_v1.ReservationList,
    f"/zones/{Z}/reservations/r1": compute_v1.Reservation,
    "/aggregated/reservations": compute_v1.ReservationAggregatedList,
    f"/zones/{Z}/operations": compute_v1.OperationList,
    f"/zones/{Z}/instances": compute_v1.InstanceList,
    f"/zones/{Z}/instances/i1": compute_v1.Instance,
}


@pytest.mark.parametrize("path", REPLIES)
def test_every_field_of_every_reply_is_one_of_the_sdk_s(sandbox: Sandbox, reservations: Any, path: str) -> None:
    insert(reservations, made(delete_at_time="2026-03-09T08:00:00Z"), "11111111-2222-4333-8444-555555555555")
    machine_type = f"zones/{Z}/machineTypes/{MACHINE}"
    client(compute_v1.InstancesClient, sandbox).insert_unary(
        project=P, zone=Z, instance_resource=compute_v1.Instance(name="i1", machine_type=machine_type)
    )
    sandbox.world.memory[ProviderName.GCP]["unreachable"] = ["us-east4-a"]

    with urllib.request.urlopen(f"{sandbox.endpoint}/compute/v1/projects/{P}{path}") as reply:
        text = reply.read()

    json_format.Parse(text, REPLIES[path].pb(REPLIES[path]()), ignore_unknown_fields=False)
    assert json.loads(text)["kind"].startswith("compute#")


def test_failed_operations_have_the_sdk_s_fields_too(sandbox: Sandbox, reservations: Any, operations: Any) -> None:
    operation = insert(reservations, made(count=1000))
    url = f"{sandbox.endpoint}/compute/v1/projects/{P}/zones/{Z}/operations/{operation.name}"

    with urllib.request.urlopen(url) as reply:
        text = reply.read()

    raw = compute_v1.Operation()
    json_format.Parse(text, compute_v1.Operation.pb(raw), ignore_unknown_fields=False)
    assert [error.code for error in raw.error.errors] == ["QUOTA_EXCEEDED"]
    assert raw.http_error_status_code == 403
    assert operations.wait(project=P, zone=Z, operation=operation.name).error == raw.error


def test_quota_metrics_are_known_to_the_sdk() -> None:
    assert set(METRICS) <= set(compute_v1.Quota.Metric.__members__)


def test_an_insert_is_answered_while_it_runs_and_done_when_asked(reservations: Any, operations: Any) -> None:
    operation = insert(reservations, made())

    assert operation.status == compute_v1.Operation.Status.RUNNING
    done = operations.get(project=P, zone=Z, operation=operation.name)
    assert done.status == compute_v1.Operation.Status.DONE
    assert done.target_link.endswith(f"/zones/{Z}/reservations/r1")
    assert reservations.get(project=P, zone=Z, reservation="r1").specific_reservation.count == 2


def test_a_repeated_request_id_does_nothing_and_shows_the_first_operation(sandbox: Sandbox, reservations: Any) -> None:
    token = "11111111-2222-4333-8444-555555555555"
    first = insert(reservations, made(), token)
    again = insert(reservations, made(), token)

    assert (again.name, again.client_operation_id) == (first.name, token)
    assert len(sandbox.record.purchases()) == 1
    sandbox.advance(timedelta(hours=2))
    with pytest.raises(exceptions.Conflict):
        insert(reservations, made(), token)


def test_what_the_real_cloud_refuses_is_refused(reservations: Any) -> None:
    insert(reservations, made())

    assert refused(reservations, made()) == (409, "alreadyExists")
    assert refused(reservations, made("Bad_Name")) == (400, "invalid")
    assert refused(reservations, made("r2", count=0)) == (400, "invalid")
    assert refused(reservations, made("r2", count=1001)) == (400, "invalid")
    assert refused(reservations, made("r2", delete_at_time="2020-01-01T00:00:00Z")) == (400, "invalid")
    unsold = made("r2")
    unsold.specific_reservation.instance_properties.machine_type = "z9-unsold-8g"
    assert refused(reservations, unsold) == (400, "invalid")
    for call in (reservations.get, reservations.delete_unary):
        with pytest.raises(exceptions.NotFound):
            call(project=P, zone=Z, reservation="none")
    with pytest.raises(exceptions.BadRequest):
        reservations.get(project=P, zone="mars-a", reservation="r1")


def test_a_name_is_free_again_after_deletion_and_is_another_reservation(sandbox: Sandbox, reservations: Any) -> None:
    for _ in range(2):
        insert(reservations, made())
        reservations.delete_unary(project=P, zone=Z, reservation="r1")
    insert(reservations, made())

    assert [holding.id for holding in sandbox.market.state.holdings] == [f"{Z}/r1", f"{Z}/r1~1", f"{Z}/r1~2"]
    assert [raw.name for raw in reservations.list(project=P, zone=Z)] == ["r1"]


def test_lists_come_in_pages(reservations: Any) -> None:
    for number in range(5):
        insert(reservations, made(f"r{number}", 1))
    request = compute_v1.ListReservationsRequest(project=P, zone=Z, max_results=2)

    pages = [len(page.items) for page in reservations.list(request=request).pages]

    assert pages == [2, 2, 1]
    with pytest.raises(exceptions.BadRequest):
        reservations.list(request=compute_v1.ListReservationsRequest(project=P, zone=Z, page_token="nonsense"))


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ('name = "r1"', ["r1"]),
        ("name != r1", ["r2", "r3"]),
        ("name eq r[12]", ["r1", "r2"]),
        ("name ne r[12]", ["r3"]),
        ("(name : r) (specificReservation.count = 2)", ["r2"]),
        ('name:"r" AND status="READY" AND specificReservationRequired=true', ["r1", "r2", "r3"]),
        ("status = CREATING", []),
    ],
)
def test_filters(reservations: Any, wanted: str, names: list[str]) -> None:
    for count in (1, 2, 3):
        insert(reservations, made(f"r{count}", count))
    request = compute_v1.ListReservationsRequest(project=P, zone=Z, filter=wanted)

    assert [raw.name for raw in reservations.list(request=request)] == names


def test_a_filter_that_is_not_understood_is_refused(reservations: Any) -> None:
    with pytest.raises(exceptions.BadRequest):
        reservations.list(request=compute_v1.ListReservationsRequest(project=P, zone=Z, filter="name ~~ r1"))


def test_only_the_end_and_with_whom_it_is_shared_can_be_updated(reservations: Any) -> None:
    insert(reservations, made(share_settings=compute_v1.ShareSettings(share_type="SPECIFIC_PROJECTS")))

    def update(paths: str, **fields: Any) -> None:
        reservations.update_unary(
            request=compute_v1.UpdateReservationRequest(
                project=P,
                zone=Z,
                reservation="r1",
                paths=paths,
                reservation_resource=compute_v1.Reservation(name="r1", **fields),
            )
        )

    update("deleteAtTime", delete_at_time="2026-03-09T08:00:00Z")
    assert reservations.get(project=P, zone=Z, reservation="r1").delete_at_time.startswith("2026-03-09T08:00:00")
    shared = {"q": compute_v1.ShareSettingsProjectConfig(project_id="q")}
    update("shareSettings.projectMap.q", share_settings=compute_v1.ShareSettings(project_map=shared))
    assert list(reservations.get(project=P, zone=Z, reservation="r1").share_settings.project_map) == ["q"]
    with pytest.raises(exceptions.BadRequest):
        update("shareSettings", share_settings=compute_v1.ShareSettings(share_type="LOCAL"))
    with pytest.raises(exceptions.BadRequest):
        update("description", description="new")


def test_an_end_that_is_reached_ends_it(sandbox: Sandbox, reservations: Any) -> None:
    insert(reservations, made(delete_at_time="2026-03-02T12:00:00Z"))
    sandbox.advance(timedelta(hours=5))

    assert list(reservations.list(project=P, zone=Z)) == []
    (line,) = sandbox.market.bill()
    assert line.end is not None
    assert line.end - line.start == timedelta(hours=4)


@pytest.mark.parametrize(
    ("rule", "status", "reason"),
    [
        ({"kind": FaultKind.THROTTLE}, 429, "rateLimitExceeded"),
        ({"kind": FaultKind.THROTTLE, "status": 403, "code": "userRateLimitExceeded"}, 403, "userRateLimitExceeded"),
        ({"kind": FaultKind.ERROR}, 503, "backendError"),
        ({"kind": FaultKind.ERROR, "status": 403, "code": "forbidden"}, 403, "forbidden"),
    ],
)
def test_faults_are_written_as_the_cloud_writes_them(
    sandbox: Sandbox, reservations: Any, rule: dict[str, Any], status: int, reason: str
) -> None:
    sandbox.fault(operation="reservations.insert", **rule)

    assert refused(reservations, made()) == (status, reason)
    assert sandbox.record.calls[-1].code == reason


def test_a_saved_world_goes_on_with_its_operations(sandbox: Sandbox, reservations: Any, operations: Any) -> None:
    operation = insert(reservations, made())
    sandbox.world.restore(sandbox.world.saved())

    assert operations.get(project=P, zone=Z, operation=operation.name).name == operation.name
    assert reservations.get(project=P, zone=Z, reservation="r1").status == "READY"


def test_an_unknown_path_is_not_found(sandbox: Sandbox) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"{sandbox.endpoint}/compute/v1/projects/{P}/global/nothing")
    assert error.value.code == 404
    error.value.close()
