"""Capacity reservation groups: containers that cost nothing."""

from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.azure_wire import Refused, key
from providers.sandbox.world import World

TYPE = "Microsoft.Compute/capacityReservationGroups"


class Groups:
    """Of one subscription. A group is kept under its path, with what was PUT."""

    def __init__(self, world: World, subscription: str) -> None:
        self._world = world
        self._prefix = key(f"/subscriptions/{subscription}/")
        self._all: dict[str, dict[str, Any]] = world.memory[ProviderName.AZURE].setdefault("groups", {})

    def get(self, path: str) -> dict[str, Any]:
        """Raises Refused."""
        if key(path) not in self._all:
            raise Refused("ResourceNotFound", f"The Resource '{path}' was not found.")
        return self._all[key(path)]

    def every(self, resource_group: str | None = None) -> list[dict[str, Any]]:
        within = self._prefix if resource_group is None else key(f"{self._prefix}resourceGroups/{resource_group}/")
        return [group for path, group in self._all.items() if path.startswith(within)]

    def put(self, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The group, and whether it is new. Raises Refused for another region, zones or type than it has."""
        asked = {
            "location": body.get("location", ""),
            "zones": body.get("zones") or [],
            "type": (body.get("properties") or {}).get("reservationType", "Targeted"),
        }
        if not asked["location"]:
            raise Refused("InvalidParameter", "The location property is required for this definition.")
        there = self._all.get(key(path))
        if there is not None and any(there[name] != value for name, value in asked.items()):
            raise Refused("PropertyChangeNotAllowed", f"Changing properties of '{path}' is not allowed.")
        self._all[key(path)] = {**(there or {}), **asked, "id": path, "tags": body.get("tags") or {}}
        return self._all[key(path)], there is None

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Tags only."""
        group = self.get(path)
        if "tags" in body:
            group["tags"] = body["tags"]
        return group

    def delete(self, path: str) -> None:
        del self._all[key(path)]

    def holds(self, path: str) -> bool:
        return key(path) in self._all


def shown(group: dict[str, Any], members: list[dict[str, Any]], machines: list[str]) -> dict[str, Any]:
    """The group's body. `members` are reservations as they are shown, `machines` ids of associated VMs."""
    body: dict[str, Any] = {
        "id": group["id"],
        "name": group["id"].rpartition("/")[2],
        "type": TYPE,
        "location": group["location"],
        "tags": group["tags"],
        "properties": {
            "reservationType": group["type"],
            "capacityReservations": [{"id": member["id"]} for member in members],
            "virtualMachinesAssociated": [{"id": id} for id in machines],
        },
    }
    return {**body, "zones": group["zones"]} if group["zones"] else body


def viewed(body: dict[str, Any], members: list[dict[str, Any]]) -> dict[str, Any]:
    """With the instance view of what is in it; the members come with theirs."""
    views = [{"name": member["name"], **member["properties"]["instanceView"]} for member in members]
    return {**body, "properties": {**body["properties"], "instanceView": {"capacityReservations": views}}}
