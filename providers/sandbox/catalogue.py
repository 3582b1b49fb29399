"""What is on sale in the sandbox's world: machine types, where, how many there are, at which price.

A made-up world of real machine types. Prices are list prices as of mid 2026 (us-west-2 is given us-east-1's); the
capacity of a zone, the quotas and which zone sells what are invented.
"""

import csv
from decimal import Decimal
from functools import cache
from importlib.resources import files

import msgspec

from broker.model.place import ProviderName

QUOTA_INSTANCES = 64
"""Default quotas let an account hold this many of the largest machine type that counts against them."""

ALL_GPUS = "GPUS_ALL_REGIONS"
"""Of a GCP project, in all its regions together; there is none unless it is set."""

ALL_VCPUS = "cores"
"""Of an Azure region, of all families together; as large as all of them unless it is set."""


class Pool(msgspec.Struct, frozen=True, order=True):
    """What finite capacity is kept for. `zone` is account-independent (AWS zone id); "" is regional (Azure)."""

    provider: ProviderName
    region: str
    zone: str
    machine_type: str


class MachineType(msgspec.Struct, frozen=True, kw_only=True):
    """One machine type in one region. One instance uses `quota_units` of the quota called `quota`.

    `gpu` is the GPU's name with its memory ("H100 80GB"). `capacity` is how many instances a zone can hold.
    `zones` are account-independent. `reservable`: whether the cloud lets one reserve it.
    """

    provider: ProviderName
    region: str
    name: str
    gpu: str
    gpus: int
    vcpus: int
    memory_gib: Decimal
    quota: str
    quota_units: int
    capacity: int
    zones: tuple[str, ...]
    reservable: bool
    usd_per_hour: Decimal

    @property
    def pools(self) -> tuple[Pool, ...]:
        return tuple(Pool(self.provider, self.region, zone, self.name) for zone in self.zones)

    @property
    def quotas(self) -> tuple[tuple[str, int], ...]:
        """Every quota that one instance counts against, and how much of it: its own, and what its cloud adds up."""
        wide = {ProviderName.GCP: ((ALL_GPUS, self.gpus),), ProviderName.AZURE: ((ALL_VCPUS, self.quota_units),)}
        return ((self.quota, self.quota_units), *wide.get(self.provider, ()))


class Catalogue:
    """Looks up machine types; the default is the table beside this module."""

    def __init__(self, machine_types: tuple[MachineType, ...] | None = None) -> None:
        self.machine_types = machine_types if machine_types is not None else default_machine_types()
        self._by_name = {(m.provider, m.region, m.name): m for m in self.machine_types}

    def find(self, provider: ProviderName, region: str, name: str) -> MachineType | None:
        return self._by_name.get((provider, region, name))

    def on_sale(self, provider: ProviderName, region: str) -> tuple[MachineType, ...]:
        return tuple(m for m in self.machine_types if (m.provider, m.region) == (provider, region))

    def regions(self, provider: ProviderName) -> tuple[str, ...]:
        return tuple(sorted({m.region for m in self.machine_types if m.provider is provider}))

    def zones(self, provider: ProviderName, region: str) -> tuple[str, ...]:
        """Account-independent names, without the regional ""."""
        return tuple(sorted({z for m in self.on_sale(provider, region) for z in m.zones if z}))

    def sells(self, pool: Pool) -> bool:
        machine_type = self.find(pool.provider, pool.region, pool.machine_type)
        return machine_type is not None and pool.zone in machine_type.zones

    def quota_limits(self, provider: ProviderName, region: str) -> dict[str, int]:
        """Default limits by quota name, in the quota's units."""
        limits: dict[str, int] = {}
        for machine_type in self.on_sale(provider, region):
            units = machine_type.quota_units * QUOTA_INSTANCES
            limits[machine_type.quota] = max(units, limits.get(machine_type.quota, 0))
        return limits


@cache
def default_machine_types() -> tuple[MachineType, ...]:
    with (files(__package__) / "catalogue.csv").open(encoding="utf-8") as lines:
        return tuple(_machine_type(row) for row in csv.DictReader(lines))


def _machine_type(row: dict[str, str]) -> MachineType:
    return MachineType(
        provider=ProviderName(row["provider"]),
        region=row["region"],
        name=row["machine_type"],
        gpu=row["gpu"],
        gpus=int(row["gpus"]),
        vcpus=int(row["vcpus"]),
        memory_gib=Decimal(row["memory_gib"]),
        quota=row["quota"],
        quota_units=int(row["quota_units"]),
        capacity=int(row["capacity"]),
        zones=tuple("" if zone == "-" else zone for zone in row["zones"].split()),
        reservable=row["reservable"] == "yes",
        usd_per_hour=Decimal(row["usd_per_hour"]),
    )
