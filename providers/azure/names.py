"""How what we bought is named and marked, and found again."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from broker.model.reservation import Owner
from providers.base import NotFound

LINEAGE_TAG = "broker:lineage"
KEY_TAG = "broker:key"
RELEASING_TAG = "broker:releasing"
"""Set with the count of 0 on what could not be deleted yet, so that every later run knows that it is to go."""

_OURS = re.compile(r"broker-(?P<lineage>[0-9a-f]{12})-(?P<key>[0-9a-f]{24})")
"""Exactly what we make: somebody's `broker-0123456789ab-shared` without our tags is not ours."""
_RESOURCE = re.compile(
    r"/resourceGroups/(?P<resource_group>[^/]+)/.*?/capacityReservationGroups/(?P<group>[^/]+)"
    r"(?:/capacityReservations/(?P<name>[^/]+))?$",
    re.IGNORECASE,
)


class Spot(msgspec.Struct, frozen=True):
    """Where a reservation is within its subscription. A purchase of ours has a group to itself, of the same name."""

    resource_group: str
    group: str
    name: str

    @property
    def id(self) -> str:
        """Lower case, because ARM's names are the same in any case and come back in several."""
        parts = (self.resource_group, self.group) if self.alone else (self.resource_group, self.group, self.name)
        return "/".join(parts).lower()

    @property
    def alone(self) -> bool:
        """Whether the group is the reservation's own."""
        return self.group.lower() == self.name.lower()

    @classmethod
    def from_id(cls, id: str) -> "Spot":
        """Of our id, or of ARM's. Raises NotFound for what is neither."""
        resource = _RESOURCE.search(id)
        if resource:
            return cls(resource["resource_group"], resource["group"], resource["name"] or resource["group"])
        parts = id.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise NotFound("capacityReservations.get", message=f"{id!r} is no Azure reservation's id")
        return cls(parts[0], parts[1], parts[-1])


def own_name(lineage: str, key: str) -> str:
    return f"broker-{lineage}-{key}"


def own_tags(lineage: str, key: str, tags: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The user's tags and ours; ours win."""
    return {**dict(tags), LINEAGE_TAG: lineage, KEY_TAG: key}


def owner_of(name: str, tags: Mapping[str, Any]) -> Owner | None:
    """By the tags; by the name where somebody took the tags off."""
    lineage, key = tags.get(LINEAGE_TAG), tags.get(KEY_TAG)
    if isinstance(lineage, str) and isinstance(key, str):
        return Owner(lineage, key)
    ours = _OURS.fullmatch(name.lower())
    return Owner(ours["lineage"], ours["key"]) if ours else None


def region_of(location: str | None) -> str:
    """ "East US" and "eastus" are the same region."""
    return (location or "").replace(" ", "").lower()
