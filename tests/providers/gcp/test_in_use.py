"""Reservations that instances consume: neither shrunk below their use nor given back under it."""

from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

from broker.model.reservation import ReservationState
from providers.base import Conflict, Denied, ProviderError, Throttled, Unsupported
from providers.gcp.adapter import Gcp
from providers.gcp.naming import name_in
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.providers.gcp.conftest import (
    MACHINE,
    PROJECT,
    SCOPE,
    ZONE,
    release_request,
    reserve_request,
    resize_request,
)


@pytest.fixture
def instances(sandbox: Sandbox) -> compute_v1.InstancesClient:
    return compute_v1.InstancesClient(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": sandbox.endpoint}
    )


def launch(instances: compute_v1.InstancesClient, name: str, reservation: str = "") -> None:
    affinity = compute_v1.ReservationAffinity(
        consume_reservation_type="SPECIFIC_RESERVATION",
        key="compute.googleapis.com/reservation-name",
        values=[reservation],
    )
    instances.insert_unary(
        project=PROJECT,
        zone=ZONE,
        instance_resource=compute_v1.Instance(
            name=name,
            machine_type=f"zones/{ZONE}/machineTypes/{MACHINE}",
            reservation_affinity=affinity if reservation else None,
        ),
    )


def test_use_is_counted_and_frees_up(gcp: Gcp, instances: compute_v1.InstancesClient) -> None:
    bought = gcp.reserve(reserve_request(count=2))
    launch(instances, "one", name_in(bought.id))
    launch(instances, "aside")

    assert [(r.used, r.associated, r.over) for r in gcp.reservations(SCOPE)] == [(1, 1, 0)]
    instances.delete_unary(project=PROJECT, zone=ZONE, instance="one")
    assert [r.used for r in gcp.reservations(SCOPE)] == [0]


def test_an_untargeted_reservation_is_taken_by_anyone_and_says_so(
    gcp: Gcp, instances: compute_v1.InstancesClient
) -> None:
    gcp.reserve(reserve_request(count=2, targeted=False))
    launch(instances, "somebody-else-s")

    (found,) = gcp.reservations(SCOPE)
    assert found.used == 1
    assert "any matching instance" in found.notes[0]


def test_a_reservation_in_use_is_held_back_and_given_back_later(
    gcp: Gcp, sandbox: Sandbox, instances: compute_v1.InstancesClient
) -> None:
    bought = gcp.reserve(reserve_request(count=2))
    launch(instances, "one", name_in(bought.id))

    held = gcp.release(release_request(bought.id))
    assert (held.state, held.count, held.used) == (ReservationState.CANCELLING, 2, 1)
    assert "resourceInUseByAnotherResource" in held.notes[-1]
    assert len(gcp.reservations(SCOPE)) == 1

    instances.delete_unary(project=PROJECT, zone=ZONE, instance="one")
    assert gcp.release(release_request(bought.id)).state is ReservationState.RELEASED
    assert gcp.reservations(SCOPE) == ()


def test_a_refusal_to_release_what_nobody_uses_is_an_error(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.ERROR, "reservations.delete", status=400, code="invalid", message="in a commitment")

    with pytest.raises(Unsupported):
        gcp.release(release_request(bought.id))


def test_it_does_not_shrink_below_its_use(gcp: Gcp, instances: compute_v1.InstancesClient) -> None:
    bought = gcp.reserve(reserve_request(count=3))
    launch(instances, "one", name_in(bought.id))
    launch(instances, "two", name_in(bought.id))

    with pytest.raises(Conflict) as refusal:
        gcp.resize(resize_request(bought.id, 3, 1))
    assert "2 instances use it" in refusal.value.message
    assert gcp.resize(resize_request(bought.id, 3, 2, key="k9")).count == 2


def test_a_full_reservation_takes_no_more(gcp: Gcp, instances: compute_v1.InstancesClient, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request(count=1))
    launch(instances, "one", name_in(bought.id))
    launch(instances, "two", name_in(bought.id))

    assert [instance.name for instance in instances.list(project=PROJECT, zone=ZONE)] == ["one"]
    operations = compute_v1.ZoneOperationsClient(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": sandbox.endpoint}
    )
    ended = {raw.target_link.rpartition("/")[2]: raw for raw in operations.list(project=PROJECT, zone=ZONE)}
    assert ended["two"].error.errors[0].code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert not ended["one"].error.errors


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"status": 403, "code": "forbidden"}, Denied),
        ({"status": 403, "code": "rateLimitExceeded", "times": None}, Throttled),
    ],
)
def test_a_refused_release_of_one_in_use_is_not_blamed_on_its_use(
    gcp: Gcp,
    sandbox: Sandbox,
    instances: compute_v1.InstancesClient,
    fault: dict[str, Any],
    expected: type[ProviderError],
) -> None:
    bought = gcp.reserve(reserve_request())
    launch(instances, "one", name_in(bought.id))
    sandbox.fault(FaultKind.ERROR, "reservations.delete", **fault)

    with pytest.raises(expected):
        gcp.release(release_request(bought.id))
