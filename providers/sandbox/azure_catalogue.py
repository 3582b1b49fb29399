"""What is on sale and how much of it a subscription may hold: resource SKUs, usages, the subscription itself."""

import re
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.azure_wire import zone_of
from providers.sandbox.catalogue import ALL_VCPUS, MachineType
from providers.sandbox.world import World

_LOCATION = re.compile(r"location eq '(?P<region>[^']+)'", re.IGNORECASE)


def skus(world: World, filter: str) -> list[dict[str, Any]]:
    """One line for each size and region. `memory["restrictions"]` holds restrictions by size."""
    wanted = _LOCATION.search(filter)
    regions = [wanted["region"].lower()] if wanted else list(world.catalogue.regions(ProviderName.AZURE))
    restrictions = world.memory[ProviderName.AZURE].get("restrictions", {})
    sold = (size for region in regions for size in world.catalogue.on_sale(ProviderName.AZURE, region))
    return [_sku(size, restrictions.get(size.name, [])) for size in sold]


def _sku(size: MachineType, restrictions: list[dict[str, Any]]) -> dict[str, Any]:
    types = [_capability("SupportedCapacityReservationTypes", "Targeted")] if size.reservable else []
    return {
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": "Standard",
        "size": size.name.removeprefix("Standard_"),
        "family": size.quota,
        "locations": [size.region],
        "locationInfo": [{"location": size.region, "zones": [zone_of(z) for z in size.zones if z], "zoneDetails": []}],
        "capabilities": [
            _capability("vCPUs", str(size.vcpus)),
            _capability("MemoryGB", str(size.memory_gib)),
            _capability("GPUs", str(size.gpus)),
            _capability("CapacityReservationSupported", str(size.reservable)),
            *types,
        ],
        "restrictions": restrictions,
    }


def usages(world: World, subscription: str, region: str) -> list[dict[str, Any]]:
    """vCPU quotas: the region's, which is as large as all families together unless it is set, and each family's."""
    market, limits = world.market, world.catalogue.quota_limits(ProviderName.AZURE, region)
    scope = (ProviderName.AZURE, subscription, region)
    families = [(name, market.quota_limit(*scope, name) or 0, market.quota_used(*scope, name)) for name in limits]
    limit = market.quota_limit(*scope, ALL_VCPUS)
    whole = sum(limit for _, limit, _ in families) if limit is None else limit
    total = (ALL_VCPUS, whole, market.quota_used(*scope, ALL_VCPUS))
    return [
        {
            "unit": "Count",
            "currentValue": used,
            "limit": limit,
            "name": {"value": name, "localizedValue": name},
        }
        for name, limit, used in (total, *families)
    ]


def subscription(id: str) -> dict[str, Any]:
    return {"id": f"/subscriptions/{id}", "subscriptionId": id, "displayName": "sandbox", "state": "Enabled"}


def _capability(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}
