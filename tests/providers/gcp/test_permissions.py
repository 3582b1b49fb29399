"""The role in the documentation holds what the adapter calls: no more, no less."""

import contextlib
import re
from pathlib import Path

import yaml

import providers.gcp
from broker.model.place import ProviderName
from providers.base import ProviderError
from providers.gcp.adapter import Gcp
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.providers.gcp.conftest import END, SCOPE, end_request, release_request, reserve_request, resize_request

ROLE = Path(__file__).parents[3] / "docs" / "permissions" / "gcp.yaml"
PERMISSIONS = {
    "machineTypes.list": "compute.machineTypes.list",
    "projects.get": "compute.projects.get",
    "regions.get": "compute.regions.get",
    "reservations.aggregatedList": "compute.reservations.list",
    "reservations.delete": "compute.reservations.delete",
    "reservations.get": "compute.reservations.get",
    "reservations.insert": "compute.reservations.create",
    "reservations.resize": "compute.reservations.resize",
    "reservations.update": "compute.reservations.update",
    "zoneOperations.list": "compute.zoneOperations.list",
    "zoneOperations.wait": "compute.zoneOperations.get",
}
"""What the API's reference demands for each method."""

_CALLED = re.compile(r"_wire\.(reservations|operations|machine_types|regions|projects)\.(\w+)")


def test_the_role_is_a_custom_role() -> None:
    role = yaml.safe_load(ROLE.read_text(encoding="utf-8"))

    assert set(role) == {"title", "description", "stage", "includedPermissions"}
    assert role["stage"] == "GA"
    assert role["includedPermissions"] == sorted(set(role["includedPermissions"]))
    assert all(re.fullmatch(r"compute(\.[a-zA-Z]+){2}", name) for name in role["includedPermissions"])


def test_the_role_is_what_the_adapter_calls(gcp: Gcp, sandbox: Sandbox) -> None:
    do_everything(gcp, sandbox)

    called = set(sandbox.record.operations(ProviderName.GCP))

    assert called == set(PERMISSIONS)
    assert {PERMISSIONS[name] for name in called} == set(
        yaml.safe_load(ROLE.read_text(encoding="utf-8"))["includedPermissions"]
    )


def test_everything_that_the_source_calls_was_called() -> None:
    (folder,) = providers.gcp.__path__
    sources = (path.read_text(encoding="utf-8") for path in Path(folder).glob("*.py"))

    assert len({call for source in sources for call in _CALLED.findall(source)}) == len(PERMISSIONS)


def do_everything(gcp: Gcp, sandbox: Sandbox) -> None:
    gcp.identify(SCOPE)
    gcp.offers(SCOPE)
    gcp.quotas(SCOPE)
    bought = gcp.reserve(reserve_request(end=END))
    gcp.resize(resize_request(bought.id, 2, 3))
    gcp.set_end(end_request(bought.id, END.replace(hour=9)))
    sandbox.fault(FaultKind.RESET_BEFORE, "reservations.insert")
    with contextlib.suppress(ProviderError):
        gcp.reserve(reserve_request("lost"))
    gcp.look(reserve_request("lost"))
    gcp.reservations(SCOPE)
    gcp.release(release_request(bought.id))
