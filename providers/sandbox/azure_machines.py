"""Virtual machines, as far as they consume reservations: created, shown, associated and deleted."""

from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.azure_groups import Groups
from providers.sandbox.azure_reservations import Reservations
from providers.sandbox.azure_wire import Refused, key, no_capacity, over_quota, pool_of, zone_of
from providers.sandbox.holdings import Holding, HoldingState, Instance
from providers.sandbox.terms import NotSold, OutOfCapacity, OverQuota, WrongState
from providers.sandbox.world import World

TYPE = "Microsoft.Compute/virtualMachines"


class Machines:
    """Of one subscription. What is created runs at once."""

    def __init__(self, world: World, subscription: str) -> None:
        self._world = world
        self._subscription = subscription
        self._groups = Groups(world, subscription)
        self._reservations = Reservations(world, subscription)

    def get(self, path: str) -> Instance:
        """Raises Refused."""
        for instance in self._running():
            if key(str(instance.details["id"])) == key(path):
                return instance
        raise Refused("ResourceNotFound", f"The Resource '{path}' was not found.")

    def every(self, within: str) -> list[Instance]:
        return [i for i in self._running() if key(str(i.details["id"])).startswith(key(within) + "/")]

    def associated(self, group_path: str) -> list[str]:
        return [str(i.details["id"]) for i in self._running() if key(str(i.details["group"])) == key(group_path)]

    def put(self, path: str, body: dict[str, Any]) -> tuple[Instance, bool]:
        """The VM, and whether it is new. Raises Refused."""
        there = [i for i in self._running() if key(str(i.details["id"])) == key(path)]
        if there:
            return self.associate(there[0], body), False
        properties = body.get("properties") or {}
        region, zone = str(body.get("location", "")), "".join(body.get("zones") or [])
        size = str((properties.get("hardwareProfile") or {}).get("vmSize", ""))
        group = _group_asked(properties)
        if group and str(properties.get("priority", "")).lower() == "spot":
            raise Refused("InvalidParameter", "A spot VM cannot be associated with a capacity reservation group.")
        holding = self._match(group, region, zone, size) if group else None
        try:
            instance = self._world.market.launch(
                pool_of(region, zone, size),
                self._subscription,
                id=self._world.market.new_id("vm-", 12),
                holding=holding,
                beyond=True,
                name=path.rpartition("/")[2],
                tags=body.get("tags") or {},
                details={"id": path, "group": group},
            )
        except OverQuota as why:
            raise over_quota(why.quota, why.limit, why.used) from None
        except OutOfCapacity:
            raise Refused(*no_capacity(zone)) from None
        except (NotSold, WrongState) as why:
            raise Refused("SkuNotAvailable", str(why)) from None
        return instance, True

    def associate(self, instance: Instance, body: dict[str, Any]) -> Instance:
        """Move it into a group, or out of one with an id of null; without the field nothing changes."""
        properties = body.get("properties") or {}
        if "capacityReservation" in properties:
            group = _group_asked(properties)
            place = (instance.region, zone_of(instance.zone), instance.machine_type)
            holding = self._match(group, *place) if group else None
            instance.holding = holding.id if holding else None
            instance.details["group"] = group
        return instance

    def delete(self, path: str) -> None:
        self._world.market.terminate(self.get(path))

    def _match(self, group: str, region: str, zone: str, size: str) -> Holding:
        """The group's reservation of that size and zone."""
        self._groups.get(group)
        for path in self._reservations.in_group(group):
            holding = self._reservations.holding(path)
            if holding and holding.pool == pool_of(region, zone, size) and holding.state is HoldingState.ACTIVE:
                return holding
        raise Refused("InvalidParameter", f"'{group}' has no capacity reservation of {size} in zone '{zone}'.")

    def _running(self) -> list[Instance]:
        return [i for i in self._world.market.instances(ProviderName.AZURE, self._subscription) if i.ended is None]


def shown(instance: Instance) -> dict[str, Any]:
    group, zone = instance.details["group"], zone_of(instance.zone)
    properties: dict[str, Any] = {
        "vmId": instance.id,
        "hardwareProfile": {"vmSize": instance.machine_type},
        "provisioningState": "Succeeded",
        "timeCreated": instance.launched.isoformat(),
    }
    if group:
        properties["capacityReservation"] = {"capacityReservationGroup": {"id": group}}
    body = {
        "id": instance.details["id"],
        "name": instance.name,
        "type": TYPE,
        "location": instance.region,
        "tags": instance.tags,
        "properties": properties,
    }
    return {**body, "zones": [zone]} if zone else body


def _group_asked(properties: dict[str, Any]) -> str:
    reservation = properties.get("capacityReservation") or {}
    return str((reservation.get("capacityReservationGroup") or {}).get("id") or "")
