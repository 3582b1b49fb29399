"""Instances of one project's zone, which consume reservations as their affinity says."""

from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool
from providers.sandbox.gcp_operations import Operations
from providers.sandbox.gcp_wire import ROOT, Refused, invalid, listed, not_found, timestamp
from providers.sandbox.holdings import Holding, HoldingState, Instance
from providers.sandbox.terms import NotSold, OutOfCapacity, OverQuota, Refusal
from providers.sandbox.world import World

_GCP = ProviderName.GCP
_ANY = {"consumeReservationType": "ANY_RESERVATION"}


class Instances:
    def __init__(self, world: World, project: str, zone: str) -> None:
        self._world, self._project, self._zone = world, project, zone
        self._region = zone.rpartition("-")[0]
        self._market = world.market
        self._operations = Operations(world, project, zone)
        self._path = f"projects/{project}/zones/{zone}/instances"

    def insert(self, body: dict[str, Any], request_id: str) -> dict[str, Any]:
        """Raises Refused; no room makes an operation that fails."""
        if before := self._operations.repeated(request_id):
            return self._operations.rendered(before)
        name, machine_type = str(body.get("name", "")), str(body.get("machineType", "")).rpartition("/")[2]
        if any(instance.name == name for instance in self._running()):
            raise Refused(409, "alreadyExists", f"The resource '{self._path}/{name}' already exists")
        affinity = body.get("reservationAffinity") or _ANY
        refusal: Refusal | None = None
        try:
            holding = self._holding(machine_type, affinity)
            pool = Pool(_GCP, self._region, self._zone, machine_type)
            id = str(int(self._market.new_id("", 15), 16))
            details = {"reservationAffinity": affinity}
            self._market.launch(pool, self._project, id=id, holding=holding, name=name, details=details)
        except NotSold as why:
            raise invalid("resource.machineType", body.get("machineType", ""), str(why)) from why
        except (OutOfCapacity, OverQuota) as why:
            refusal = why
        return self._operations.add("insert", f"{self._path}/{name}", request_id, refusal=refusal)

    def get(self, name: str) -> dict[str, Any]:
        return self._rendered(self._named(name))

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        items = [self._rendered(instance) for instance in sorted(self._running(), key=lambda i: i.name)]
        return listed("compute#instanceList", self._path, items, query, self._world)

    def delete(self, name: str, request_id: str) -> dict[str, Any]:
        if before := self._operations.repeated(request_id):
            return self._operations.rendered(before)
        self._market.terminate(self._named(name))
        return self._operations.add("delete", f"{self._path}/{name}", request_id)

    def _holding(self, machine_type: str, affinity: dict[str, Any]) -> Holding | None:
        """Raises OutOfCapacity where the one that is asked for has no room, Refused where it does not fit."""
        kind = affinity.get("consumeReservationType", "ANY_RESERVATION")
        if kind == "NO_RESERVATION":
            return None
        if kind == "SPECIFIC_RESERVATION":
            return self._targeted(machine_type, affinity)
        fitting = (h for h in self._ready(machine_type) if not h.details["specificReservationRequired"])
        return next((holding for holding in fitting if self._has_room(holding)), None)

    def _targeted(self, machine_type: str, affinity: dict[str, Any]) -> Holding:
        wanted = str(next(iter(affinity.get("values") or ()), "")).rpartition("/")[2]
        for holding in self._ready(machine_type):
            if holding.name == wanted:
                if self._has_room(holding):
                    return holding
                raise OutOfCapacity(f"Specified reservation [{wanted}] has no available resources")
        raise invalid("resource.reservationAffinity", wanted, "No such reservation fits the instance.")

    def _ready(self, machine_type: str) -> list[Holding]:
        found = self._market.holdings(_GCP, self._project, self._region)
        fitting = [h for h in found if (h.zone, h.machine_type) == (self._zone, machine_type)]
        return [holding for holding in fitting if holding.state is HoldingState.ACTIVE]

    def _has_room(self, holding: Holding) -> bool:
        return len(self._market.consumers(holding)) < holding.there

    def _running(self) -> list[Instance]:
        found = self._market.instances(_GCP, self._project, self._region)
        return [instance for instance in found if instance.zone == self._zone and instance.ended is None]

    def _named(self, name: str) -> Instance:
        for instance in self._running():
            if instance.name == name:
                return instance
        raise not_found(f"{self._path}/{name}")

    def _rendered(self, instance: Instance) -> dict[str, Any]:
        where = f"{ROOT}/projects/{self._project}/zones/{self._zone}"
        return {
            "kind": "compute#instance",
            "id": instance.id,
            "name": instance.name,
            "zone": where,
            "status": "RUNNING",
            "creationTimestamp": timestamp(instance.launched),
            "machineType": f"{where}/machineTypes/{instance.machine_type}",
            "selfLink": f"{ROOT}/{self._path}/{instance.name}",
            "reservationAffinity": instance.details.get("reservationAffinity", _ANY),
        }
