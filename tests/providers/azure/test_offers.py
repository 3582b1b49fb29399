"""What may be reserved is read from the SKU list; quotas, zones, restrictions, identity, hand-off."""

import base64
import json
from typing import Any

import pytest

from broker.model.place import Place, ProviderName
from providers.azure.adapter import Azure
from providers.azure.identity import identity
from providers.azure.offers import _of_size
from providers.azure.wire import SkuBody, UsageBody, parsed
from providers.base import BrokenReply, Denied, Identity
from providers.prices.shapes import shape_of
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.terms import QuotaRule
from tests.providers.azure.conftest import (
    NAME,
    PLACE,
    SCOPE,
    SIZE,
    SUBSCRIPTION,
    fault,
    group_id,
    reserve_request,
)

H100_FAMILY = "standardNDSH100v5Family"


def test_each_zone_and_the_region_as_a_whole_is_an_offer(azure: Azure) -> None:
    found = [offer for offer in azure.offers(SCOPE, ["h100"]) if offer.shape.machine_type == SIZE]

    assert [offer.place for offer in found] == [Place(SCOPE, ""), Place(SCOPE, "1"), Place(SCOPE, "2")]
    assert {(o.shape.gpus, o.shape.vcpus, o.shape.gpu_model, o.excluded, o.end_settable) for o in found} == {
        (8, 96, "h100", "", False)
    }
    assert all(offer.price is None for offer in found)


def test_without_models_every_gpu_size_is_offered(azure: Azure) -> None:
    models = {offer.shape.gpu_model for offer in azure.offers(SCOPE)}

    assert {"h100", "a100-80gb", "t4", "v100-16gb"} <= models


def test_a_size_that_its_sku_does_not_let_be_reserved_is_shown_with_the_reason(azure: Azure) -> None:
    (reason,) = {o.excluded for o in azure.offers(SCOPE, ["t4"]) if o.shape.machine_type == "Standard_NC4as_T4_v3"}

    assert reason == (
        "Azure does not let Standard_NC4as_T4_v3 be reserved: its SKU says CapacityReservationSupported False"
    )


def test_restrictions_exclude_a_zone_or_the_region(azure: Azure, sandbox: Sandbox) -> None:
    memory = sandbox.world.memory[ProviderName.AZURE]
    memory["restrictions"] = {
        SIZE: [_restriction("Zone", zones=["2"])],
        "Standard_ND96asr_v4": [_restriction("Location", locations=["East US"])],
    }

    reasons = {(o.shape.machine_type, o.place.zone): o.excluded for o in azure.offers(SCOPE)}

    assert (reasons[SIZE, ""], reasons[SIZE, "1"]) == ("", "")
    assert reasons[SIZE, "2"] == f"Azure does not offer {SIZE} in zone 2: NotAvailableForSubscription"
    assert reasons["Standard_ND96asr_v4", ""] == (
        "Azure does not offer Standard_ND96asr_v4 in eastus: NotAvailableForSubscription"
    )
    assert all(reasons["Standard_ND96asr_v4", zone] for zone in ("1", "2", "3"))


def test_a_size_without_zones_is_offered_for_the_region_only() -> None:
    sku = _sku(zones=[])

    assert [offer.place.zone for offer in _of_size(*sku, SCOPE, {})] == [""]


@pytest.mark.parametrize(
    ("capabilities", "excluded"),
    [
        ({"CapacityReservationSupported": "True"}, False),
        ({"CapacityReservationSupported": "true", "SupportedCapacityReservationTypes": "Block,Targeted"}, False),
        ({"CapacityReservationSupported": "True", "SupportedCapacityReservationTypes": "Block"}, True),
        ({"CapacityReservationSupported": "False"}, True),
        ({}, True),
    ],
)
def test_only_what_the_sku_says_counts(capabilities: dict[str, str], excluded: bool) -> None:
    sku = _sku(zones=["1"], **capabilities)

    assert all(bool(offer.excluded) is excluded for offer in _of_size(*sku, SCOPE, {}))


def test_the_tighter_quota_says_how_many_are_left(azure: Azure, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.AZURE, quota=H100_FAMILY, limit=400))
    azure.reserve(reserve_request())

    assert {o.quota_left for o in azure.offers(SCOPE, ["h100"]) if o.shape.machine_type == SIZE} == {2}
    (quota,) = [q for q in azure.quotas(SCOPE) if q.name == H100_FAMILY]
    assert (quota.unit, quota.limit, quota.used) == ("vcpus", 400, 192)
    assert "cores" in {q.name for q in azure.quotas(SCOPE)}


def test_offers_do_not_need_the_permission_to_read_quotas(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR, "usage.list", times=None, code="AuthorizationFailed")

    assert {offer.quota_left for offer in azure.offers(SCOPE, ["h100"])} == {None}


def test_a_limit_may_come_as_text() -> None:
    usage = parsed("usage.list", {"limit": "100", "currentValue": 4, "name": {"value": "cores"}}, UsageBody)

    assert (usage.limit, usage.current_value) == (100, 4)
    with pytest.raises(BrokenReply):
        parsed("usage.list", {"limit": "many"}, UsageBody)


def test_lists_are_read_to_the_last_page(azure: Azure, sandbox: Sandbox) -> None:
    whole = (azure.offers(SCOPE), azure.quotas(SCOPE))
    for number in range(5):
        azure.reserve(reserve_request(f"k{number}", 1))

    sandbox.world.memory[ProviderName.AZURE]["page_size"] = 2

    assert (len(azure.offers(SCOPE)), len(azure.quotas(SCOPE))) == tuple(map(len, whole))
    assert sorted(r.owner.key for r in azure.reservations(SCOPE) if r.owner) == [f"k{n}" for n in range(5)]


def test_a_page_that_fails_is_not_the_end_of_the_list(azure: Azure, sandbox: Sandbox) -> None:
    for number in range(3):
        azure.reserve(reserve_request(f"k{number}", 1))
    sandbox.world.memory[ProviderName.AZURE]["page_size"] = 1
    fault(sandbox, FaultKind.ERROR, "capacityReservationGroups.listBySubscription", nth=3, code="AuthorizationFailed")

    with pytest.raises(Denied):
        azure.reservations(SCOPE)


def test_who_the_credentials_are_for(azure: Azure) -> None:
    assert azure.identify(SCOPE) == Identity(SUBSCRIPTION, "sandbox")


def test_the_principal_is_what_the_token_says() -> None:
    def named(claims: dict[str, Any]) -> str:
        middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        return identity(_Calls(f"e30.{middle}.sig"), SCOPE).principal  # type: ignore[arg-type]

    assert named({"upn": "ada@example.org", "oid": "1"}) == "ada@example.org"
    assert named({"appid": "app-1"}) == "app-1"
    assert named({}) == ""


def test_without_permission_identifying_is_denied(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR, "usage.list", code="InvalidAuthenticationToken")

    with pytest.raises(Denied):
        azure.identify(SCOPE)


def test_the_hand_off_names_group_size_and_zone(azure: Azure) -> None:
    told = dict(azure.consumption(azure.reserve(reserve_request())))

    assert told["capacityReservation.capacityReservationGroup.id"].lower() == group_id(NAME).lower()
    assert (told["size"], told["location"], told["zones"]) == (SIZE, "eastus", PLACE.zone)
    assert told["az"].endswith(
        f"--capacity-reservation-group {told['capacityReservation.capacityReservationGroup.id']}"
    )
    assert "--zone 1" in told["az"]
    assert f"--name {NAME} --instance-view" in told["verify"]


class _Calls:
    """A signed-in subscription with this token."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.credential = self

    @property
    def token(self) -> str:
        return self._token

    def get_token(self, *_scopes: str) -> "_Calls":
        return self

    def read(self, _operation: str, _call: object) -> None:
        return None

    def once(self, _operation: str, call: Any) -> Any:
        return call(None)


def _restriction(kind: str, **where: list[str]) -> dict[str, Any]:
    return {"type": kind, "reasonCode": "NotAvailableForSubscription", "values": [], "restrictionInfo": where}


def _sku(*, zones: list[str], **capabilities: str) -> tuple[SkuBody, Any]:
    raw = {
        "name": SIZE,
        "locationInfo": [{"location": "East US", "zones": zones}],
        "capabilities": [{"name": name, "value": value} for name, value in capabilities.items()],
    }
    return parsed("resourceSkus.list", raw, SkuBody), shape_of(ProviderName.AZURE, SIZE)
