"""Lists are whole or an error, in pages, through faults, for several projects and regions at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from broker.model.place import ProviderName, Scope
from providers.base import BrokenReply, Denied, ProviderError, Unreachable
from providers.gcp.adapter import Gcp
from providers.gcp.wire import Wire
from providers.sandbox.catalogue import Pool
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.settings import GcpProject, GcpSettings
from tests.providers.gcp.conftest import MACHINE, PROJECT, SCOPE, ZONE, reserve_request

AGGREGATED = "reservations.aggregatedList"


def test_all_pages_are_read(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.page_size(ProviderName.GCP, 2)
    for number in range(5):
        gcp.reserve(reserve_request(f"k{number}", 1))
    sandbox.record.clear()

    assert len({found.id for found in gcp.reservations(SCOPE)}) == 5
    assert sandbox.record.operations() == [AGGREGATED] * 3


def test_a_page_that_stays_broken_is_an_error_and_not_a_shorter_list(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.page_size(ProviderName.GCP, 1)
    for number in range(2):
        gcp.reserve(reserve_request(f"k{number}", 1))
    sandbox.fault(FaultKind.ERROR, AGGREGATED, where={"pageToken": "?*"}, times=None)

    with pytest.raises(ProviderError):
        gcp.reservations(SCOPE)


@pytest.mark.parametrize(
    "kind",
    [
        FaultKind.THROTTLE,
        FaultKind.ERROR,
        FaultKind.RESET_BEFORE,
        FaultKind.RESET_AFTER,
        FaultKind.REPLY_LOST,
        FaultKind.MALFORMED,
    ],
)
def test_a_passing_fault_of_a_read_is_tried_again_a_few_times(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(kind, AGGREGATED, times=3)
    sandbox.record.clear()

    assert gcp.reservations(SCOPE) == (bought,)
    assert sandbox.record.operations() == [AGGREGATED] * 4

    sandbox.fault(kind, AGGREGATED, times=None)
    sandbox.record.clear()
    with pytest.raises(ProviderError):
        gcp.reservations(SCOPE)
    assert len(sandbox.record.calls) == 4


def test_no_pause_is_shorter_than_the_cloud_asks_for(sandbox: Sandbox) -> None:
    pauses: list[float] = []
    settings = GcpSettings(
        endpoint=sandbox.endpoint, sandbox=True, projects=(GcpProject(project=PROJECT, regions=(SCOPE.region,)),)
    )
    sandbox.fault(FaultKind.THROTTLE, AGGREGATED, times=2, retry_after_s=7)

    Gcp(settings, Wire(settings, sleep=pauses.append)).reservations(SCOPE)

    assert pauses == [7.0, 7.0]


def test_a_zone_that_cannot_be_reached_makes_its_region_unknown_and_no_other(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.world.memory[ProviderName.GCP]["unreachable"] = ["europe-west4-a"]

    assert gcp.reservations(SCOPE) == (bought,)
    with pytest.raises(Unreachable) as error:
        gcp.reservations(Scope(ProviderName.GCP, PROJECT, "europe-west4"))
    assert error.value.code == "UNREACHABLE"


@pytest.mark.parametrize("field", ["items", "reservations", "warning", "name", "count", "specificReservation"])
def test_a_list_with_something_missing_is_not_a_shorter_one(gcp: Gcp, sandbox: Sandbox, field: str) -> None:
    gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.MISSING_FIELD, AGGREGATED, field=field)

    with pytest.raises((BrokenReply, Unreachable)):
        gcp.reservations(SCOPE)


@pytest.mark.parametrize("field", ["zone", "status", "description", "creationTimestamp", "selfLink", "shareSettings"])
def test_a_reservation_with_little_told_of_it_is_supply_and_ours(gcp: Gcp, sandbox: Sandbox, field: str) -> None:
    bought = gcp.reserve(reserve_request("ab" * 12))
    sandbox.fault(FaultKind.MISSING_FIELD, AGGREGATED, field=field)

    (found,) = gcp.reservations(SCOPE)

    assert (found.id, found.count, found.owner, found.state.supplies) == (bought.id, 2, bought.owner, True)


def test_a_region_without_reservations_is_empty(gcp: Gcp) -> None:
    assert gcp.reservations(SCOPE) == ()


@pytest.mark.parametrize(("status", "code"), [(403, "forbidden"), (401, "authError")])
def test_a_missing_permission_or_sign_in_is_denied_and_asked_once(
    gcp: Gcp, sandbox: Sandbox, status: int, code: str
) -> None:
    sandbox.fault(FaultKind.ERROR, AGGREGATED, status=status, code=code, message="no such permission", times=None)

    with pytest.raises(Denied):
        gcp.reservations(SCOPE)
    assert sandbox.record.operations().count(AGGREGATED) == 1


def test_projects_and_regions_are_kept_apart(sandbox: Sandbox) -> None:
    projects = tuple(GcpProject(project=name, regions=(SCOPE.region,)) for name in ("one", "two"))
    settings = GcpSettings(endpoint=sandbox.endpoint, sandbox=True, projects=projects)
    both = Gcp(settings)
    for scope in both.scopes():
        pool = Pool(ProviderName.GCP, SCOPE.region, ZONE, MACHINE)
        details = {
            "numericId": "7",
            "description": "theirs",
            "specificReservationRequired": True,
            "instanceProperties": {"machineType": MACHINE},
            "shareSettings": {"shareType": "LOCAL"},
        }
        sandbox.market.reserve(pool, scope.account, 1, id=f"{ZONE}/x", name=f"of-{scope.account}", details=details)

    listed = {scope.account: both.reservations(scope) for scope in both.scopes()}

    assert {account: [r.id for r in found] for account, found in listed.items()} == {
        "one": [f"{ZONE}/of-one"],
        "two": [f"{ZONE}/of-two"],
    }
    assert all(found[0].owner is None and found[0].tags == () for found in listed.values())


def test_twenty_regions_take_as_long_as_one(sandbox: Sandbox) -> None:
    regions = (SCOPE.region, "europe-west4", "us-east4")
    projects = tuple(GcpProject(project=f"p{number}", regions=regions) for number in range(7))
    settings = GcpSettings(endpoint=sandbox.endpoint, sandbox=True, projects=projects)
    many = Gcp(settings)
    sandbox.fault(FaultKind.DELAY_BEFORE, AGGREGATED, delay_s=0.3, times=None)

    began = time.monotonic()
    with ThreadPoolExecutor(len(many.scopes())) as threads:
        assert list(threads.map(many.reservations, many.scopes())) == [()] * 21

    assert time.monotonic() - began < timedelta(seconds=2).total_seconds()
    assert sandbox.record.operations().count(AGGREGATED) <= 21
