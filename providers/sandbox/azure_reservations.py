"""Capacity reservations: made, counted and deleted by long-running operations."""

from datetime import datetime
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.azure_groups import Groups
from providers.sandbox.azure_operations import Operations
from providers.sandbox.azure_wire import Refused, key, no_capacity, over_quota, pool_of
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.market import Market
from providers.sandbox.terms import NoSuchHolding, NotSold, OutOfCapacity, OverQuota
from providers.sandbox.world import World

TYPE = "Microsoft.Compute/capacityReservationGroups/capacityReservations"
MAX_COUNT = 1000


class Reservations:
    """Of one subscription.

    A record is kept under the resource's path: what was asked for, the holding in the market (None where a creation
    was refused: what that leaves is a Failed resource that holds nothing), and the last change that was refused.
    """

    def __init__(self, world: World, subscription: str) -> None:
        self._world = world
        self._subscription = subscription
        self._groups = Groups(world, subscription)
        self._operations = Operations(world)
        self._all: dict[str, dict[str, Any]] = world.memory[ProviderName.AZURE].setdefault("reservations", {})

    @property
    def _market(self) -> Market:
        return self._world.market

    # -- reading

    def get(self, path: str) -> dict[str, Any]:
        """As reads show it, always with its instance view. Raises Refused."""
        record = self._all.get(key(path))
        shown = self._shown(record) if record else None
        if shown is None:
            raise Refused("ResourceNotFound", f"The Resource '{path}' was not found.")
        return shown

    def members(self, group_path: str) -> list[dict[str, Any]]:
        prefix = key(group_path) + "/"
        records = [record for path, record in self._all.items() if path.startswith(prefix)]
        return [shown for record in records if (shown := self._shown(record)) is not None]

    def holding(self, path: str) -> Holding | None:
        """As it is, hidden or not; None where nothing is held."""
        record = self._all.get(key(path))
        return self._true(record) if record and not record["deleted"] else None

    def in_group(self, group_path: str) -> list[str]:
        """Paths of what is really in the group, shown or not."""
        prefix = key(group_path) + "/"
        return [r["path"] for path, r in self._all.items() if path.startswith(prefix) and not r["deleted"]]

    # -- changing

    def put(self, path: str, group_path: str, body: dict[str, Any]) -> tuple[str, bool]:
        """The operation's id, and whether the resource is new. Raises Refused."""
        if not self._groups.holds(group_path):
            raise Refused("ParentResourceNotFound", f"Can not perform requested operation on '{path}': no parent.")
        sku = body.get("sku") or {}
        holding = self.holding(path)
        if holding is not None and holding.state.live:
            there = self._all[key(path)]
            if (sku.get("name"), body.get("zones") or []) != (there["size"], there["zones"]):
                raise Refused("PropertyChangeNotAllowed", "Changing property 'sku.name' or 'zones' is not allowed.")
            return self._change(there, body), False
        return self._create(path, self._checked(path, group_path, body)), True

    def patch(self, path: str, body: dict[str, Any]) -> str:
        """Count and tags. A growth that is refused later leaves the reservation Failed at its old size."""
        self.get(path)
        return self._change(self._all[key(path)], body)

    def _change(self, record: dict[str, Any], body: dict[str, Any]) -> str:
        if self._state(record, self._true(record)) in ("Creating", "Updating"):
            raise Refused("AnotherOperationInProgress", f"An operation is in progress on '{record['path']}'.")
        if "tags" in body:
            record["tags"] = body["tags"] or {}
        sku = body.get("sku") or {}
        count = _count(sku) if "capacity" in sku else None
        if count is None:
            return self._operations.begin(self._world.clock.now())
        return self._recount(record, count)

    def delete(self, path: str) -> str:
        """Raises Refused while VMs are associated."""
        if self.get(path)["properties"]["virtualMachinesAssociated"]:
            message = f"Capacity reservation '{path}' cannot be deleted: virtual machines are associated with it."
            raise Refused("OperationNotAllowed", message)
        at, failure = self._operations.twisted()
        if failure is None:
            record = self._all[key(path)]
            record["deleted"] = True
            holding = self._true(record)
            if holding is not None:
                self._market.release(holding)
        return self._operations.begin(at, failure)

    # -- helpers

    def _checked(self, path: str, group_path: str, body: dict[str, Any]) -> dict[str, Any]:
        group, sku = self._groups.get(group_path), body.get("sku") or {}
        zones, size = body.get("zones") or [], str(sku.get("name") or "")
        if body.get("location") != group["location"]:
            raise Refused("InvalidParameter", "The location of the reservation must be its group's.")
        if len(zones) > 1 or not set(zones) <= set(group["zones"]):
            raise Refused("InvalidParameter", "A reservation has one zone at most, one of its group's.")
        self._check_size(size, group["location"], zones)
        twins = [r for r in map(self._by_path, self.in_group(group_path)) if (r["size"], r["zones"]) == (size, zones)]
        if any(key(twin["path"]) != key(path) for twin in twins):
            raise Refused("Conflict", f"The group has a reservation of {size} in {zones} already.")
        asked = {"size": size, "asked": _count(sku), "zones": zones, "location": group["location"]}
        return {**asked, "path": path, "group": group_path, "tags": body.get("tags") or {}}

    def _check_size(self, size: str, region: str, zones: list[str]) -> None:
        machine_type = self._world.catalogue.find(ProviderName.AZURE, region, size)
        if machine_type is None:
            raise Refused("InvalidParameter", f"The value {size} provided for the VM size is not valid.")
        if not machine_type.reservable:
            raise Refused("NotSupported", f"Capacity Reservation is not supported for VM size {size}.")
        if pool_of(region, "".join(zones), size).zone not in machine_type.zones:
            raise Refused("SkuNotAvailable", f"The requested size {size} is not available in zone {zones}.")

    def _create(self, path: str, asked: dict[str, Any]) -> str:
        now, zone = self._world.clock.now(), "".join(asked["zones"])
        record = {**asked, "holding": None, "deleted": False, "created": now.isoformat(), "refused": None}
        try:
            holding = self._market.reserve(
                pool_of(asked["location"], zone, asked["size"]),
                self._subscription,
                asked["asked"],
                id=self._new_id(path),
                name=path.rpartition("/")[2],
                tags=asked["tags"],
            )
        except OverQuota as why:
            raise over_quota(why.quota, why.limit, why.used) from None
        except NotSold as why:
            raise Refused("SkuNotAvailable", str(why)) from None
        except OutOfCapacity:
            self._all[key(path)] = {**record, "refused": _refusal(now, asked["asked"], no_capacity(zone))}
            return self._operations.begin(now, no_capacity(zone))
        _, failure = self._operations.twisted()
        refused = _refusal(holding.ready, asked["asked"], failure) if failure else None
        self._all[key(path)] = {**record, "holding": holding.id, "refused": refused}
        return self._operations.begin(holding.ready, failure)

    def _recount(self, record: dict[str, Any], count: int) -> str:
        holding = self._true(record)
        if holding is None or not holding.state.live:
            raise Refused("Conflict", "The reservation's creation has failed: delete it.")
        at, failure = self._operations.twisted()
        try:
            if failure is None:
                self._market.resize(holding, count)
        except OverQuota as why:
            raise over_quota(why.quota, why.limit, why.used) from None
        except OutOfCapacity:
            failure = no_capacity("".join(record["zones"]))
        record["asked"] = count
        record["refused"] = _refusal(at, count, failure) if failure else None
        return self._operations.begin(at, failure)

    def _shown(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """None where reads do not show it: deleted, or not visible yet."""
        if record["holding"] is None:
            return None if record["deleted"] else self._body(record, 0, None)
        try:
            seen = self._market.holding(ProviderName.AZURE, self._subscription, record["location"], record["holding"])
        except NoSuchHolding:
            return None
        if record["deleted"] and not seen.state.live:
            return None
        return self._body(record, seen.there if seen.state is HoldingState.ACTIVE else 0, seen)

    def _body(self, record: dict[str, Any], held: int, seen: Holding | None) -> dict[str, Any]:
        refused, state = record["refused"], self._state(record, seen)
        machines = self.machines(record)
        status = {"code": f"ProvisioningState/{state.lower()}", "level": "Info", "displayStatus": state}
        if state == "Failed":
            code, message = refused["failure"]
            status = {**status, "code": f"{status['code']}/{code}", "level": "Error", "message": message}
        properties: dict[str, Any] = {
            "reservationId": record["holding"] or "",
            "platformFaultDomainCount": 1,
            "provisioningState": state,
            "timeCreated": record["created"],
            "virtualMachinesAssociated": [{"id": id} for id in machines],
            "instanceView": {
                "utilizationInfo": {
                    "currentCapacity": held,
                    "virtualMachinesAllocated": [{"id": id} for id in machines],
                },
                "statuses": [status],
            },
        }
        if seen is not None and seen.started is not None:
            properties["provisioningTime"] = seen.steps[-1].at.isoformat() if seen.steps else seen.started.isoformat()
        asked = record["asked"] if refused or seen is None else seen.count
        body = {
            "id": record["path"],
            "name": record["path"].rpartition("/")[2],
            "type": TYPE,
            "location": record["location"],
            "tags": record["tags"],
            "sku": {"name": record["size"], "capacity": asked},
            "properties": properties,
        }
        return {**body, "zones": record["zones"]} if record["zones"] else body

    def _state(self, record: dict[str, Any], seen: Holding | None) -> str:
        refused = record["refused"]
        if seen is not None and seen.state is HoldingState.PENDING:
            return "Creating"
        if refused is None:
            return "Succeeded"
        return "Failed" if datetime.fromisoformat(refused["at"]) <= self._world.clock.now() else "Updating"

    def machines(self, record: dict[str, Any]) -> list[str]:
        """Ids of the VMs that are associated with it; all of them run."""
        holding = self._true(record)
        return [str(i.details["id"]) for i in self._market.consumers(holding)] if holding else []

    def _true(self, record: dict[str, Any]) -> Holding | None:
        if record["holding"] is None:
            return None
        return self._market.true_holding(ProviderName.AZURE, self._subscription, record["location"], record["holding"])

    def _by_path(self, path: str) -> dict[str, Any]:
        return self._all[key(path)]

    def _new_id(self, path: str) -> str:
        """`resource group/group[/name]` in lower case, counted up where a name is used again."""
        _, _, _, _, resource_group, _, _, _, group, _, name = key(path).split("/")
        short = f"{resource_group}/{group}" if group == name else f"{resource_group}/{group}/{name}"
        taken = {h.id for h in self._market.state.holdings if h.account == self._subscription}
        tries = (short if n == 1 else f"{short}#{n}" for n in range(1, len(taken) + 2))
        return next(id for id in tries if id not in taken)


def with_view(body: dict[str, Any], expand: str) -> dict[str, Any]:
    """The instance view is shown only when it is asked for."""
    if expand.lower() == "instanceview":
        return body
    return {**body, "properties": {k: v for k, v in body["properties"].items() if k != "instanceView"}}


def _refusal(at: datetime, count: int, failure: tuple[str, str]) -> dict[str, Any]:
    return {"at": at.isoformat(), "count": count, "failure": list(failure)}


def _count(sku: dict[str, Any]) -> int:
    count = sku.get("capacity")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT:
        raise Refused("InvalidParameter", f"The value {count} of parameter sku.capacity is invalid.")
    return count
