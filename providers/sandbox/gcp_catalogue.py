"""What does not change: projects, regions with their quotas, zones and machine types."""

from collections.abc import Iterable, Iterator
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.catalogue import ALL_GPUS, MachineType
from providers.sandbox.gcp_wire import ROOT, invalid, listed, not_found, selected
from providers.sandbox.world import World

METRICS = ("NVIDIA_A100_GPUS", "NVIDIA_A100_80GB_GPUS", "NVIDIA_L4_GPUS")
"""Quotas that regions show. The real API knows no on-demand metric for H100 and later either: those limits hold, and
are felt only when they are reached.
"""

_ACCELERATORS = {
    "A100 40GB": "nvidia-tesla-a100",
    "A100 80GB": "nvidia-a100-80gb",
    "H100 80GB": "nvidia-h100-80gb",
    "H200 141GB": "nvidia-h200-141gb",
    "B200 180GB": "nvidia-b200",
    "L4 24GB": "nvidia-l4",
    "T4 16GB": "nvidia-tesla-t4",
    "V100 16GB": "nvidia-tesla-v100",
    "RTX PRO 6000 96GB": "nvidia-rtx-pro-6000",
}
_GCP = ProviderName.GCP


class Places:
    """Of one project."""

    def __init__(self, world: World, project: str) -> None:
        self._world, self._project = world, project

    def project(self) -> dict[str, Any]:
        path = f"projects/{self._project}"
        return {"kind": "compute#project", "name": self._project, "selfLink": f"{ROOT}/{path}", "quotas": self._wide()}

    def regions(self, query: dict[str, str]) -> dict[str, Any]:
        items = [self.region(name) for name in self._world.catalogue.regions(_GCP)]
        return listed("compute#regionList", f"projects/{self._project}/regions", items, query, self._world)

    def region(self, name: str) -> dict[str, Any]:
        """Raises Refused."""
        path = f"projects/{self._project}/regions/{name}"
        if name not in self._world.catalogue.regions(_GCP):
            raise not_found(path)
        zones = self._world.catalogue.zones(_GCP, name)
        return {
            "kind": "compute#region",
            "name": name,
            "status": "UP",
            "selfLink": f"{ROOT}/{path}",
            "zones": [f"{ROOT}/projects/{self._project}/zones/{zone}" for zone in zones],
            "quotas": list(self._quotas(name)),
        }

    def zone_names(self) -> list[str]:
        catalogue = self._world.catalogue
        return sorted(zone for region in catalogue.regions(_GCP) for zone in catalogue.zones(_GCP, region))

    def checked_zone(self, zone: str) -> str:
        """Raises Refused for one that does not exist."""
        if zone not in self.zone_names():
            raise invalid("zone", zone, "Unknown zone.")
        return zone

    def zones(self, query: dict[str, str]) -> dict[str, Any]:
        items = [self.zone(name) for name in self.zone_names()]
        return listed("compute#zoneList", f"projects/{self._project}/zones", items, query, self._world)

    def zone(self, name: str) -> dict[str, Any]:
        """Raises Refused."""
        path = f"projects/{self._project}/zones/{name}"
        if name not in self.zone_names():
            raise not_found(path)
        region = f"{ROOT}/projects/{self._project}/regions/{name.rpartition('-')[0]}"
        return {
            "kind": "compute#zone",
            "name": name,
            "status": "UP",
            "region": region,
            "selfLink": f"{ROOT}/{path}",
        }

    def machine_types(self, zone: str, query: dict[str, str]) -> dict[str, Any]:
        """Raises Refused."""
        path = f"projects/{self._project}/zones/{zone}/machineTypes"
        return listed("compute#machineTypeList", path, self._types(zone), query, self._world)

    def machine_type(self, zone: str, name: str) -> dict[str, Any]:
        """Raises Refused."""
        for found in self._types(zone):
            if found["name"] == name:
                return found
        raise not_found(f"projects/{self._project}/zones/{zone}/machineTypes/{name}")

    def all_machine_types(self, query: dict[str, str]) -> dict[str, Any]:
        """Every zone's, on one page. Raises Refused."""
        path = f"projects/{self._project}/aggregated/machineTypes"
        lists = {f"zones/{zone}": selected(self._types(zone), query) for zone in self.zone_names()}
        items = {key: {"machineTypes": types} for key, types in lists.items()}
        return {"kind": "compute#machineTypeAggregatedList", "id": path, "selfLink": f"{ROOT}/{path}", "items": items}

    def _types(self, zone: str) -> list[dict[str, Any]]:
        region = self.checked_zone(zone).rpartition("-")[0]
        on_sale = self._world.catalogue.on_sale(_GCP, region)
        return [self._type(zone, found) for found in on_sale if zone in found.zones]

    def _type(self, zone: str, found: MachineType) -> dict[str, Any]:
        return {
            "kind": "compute#machineType",
            "name": found.name,
            "zone": zone,
            "guestCpus": found.vcpus,
            "memoryMb": int(found.memory_gib * 1024),
            "selfLink": f"{ROOT}/projects/{self._project}/zones/{zone}/machineTypes/{found.name}",
            "accelerators": [{"guestAcceleratorType": _accelerator(found), "guestAcceleratorCount": found.gpus}],
        }

    def _wide(self) -> list[dict[str, Any]]:
        return list(self._limits("", (ALL_GPUS,)))

    def _quotas(self, region: str) -> Iterator[dict[str, Any]]:
        return self._limits(region, METRICS)

    def _limits(self, region: str, metrics: Iterable[str]) -> Iterator[dict[str, Any]]:
        market = self._world.market
        for metric in metrics:
            limit = market.quota_limit(_GCP, self._project, region, metric)
            if limit is not None:
                used = market.quota_used(_GCP, self._project, region, metric)
                yield {"metric": metric, "limit": float(limit), "usage": float(used)}


def _accelerator(found: MachineType) -> str:
    if found.name.startswith("a3-megagpu-"):
        return "nvidia-h100-mega-80gb"
    return _ACCELERATORS.get(found.gpu, "nvidia-" + found.gpu.lower().replace(" ", "-"))
