"""Reservations of one project as the face shows and changes them."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool
from providers.sandbox.gcp_operations import Operations
from providers.sandbox.gcp_wire import (
    ROOT,
    Refused,
    invalid,
    last,
    listed,
    not_found,
    paged,
    parse_time,
    selected,
    timestamp,
)
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.terms import NotSold, OutOfCapacity, OverQuota, Refusal
from providers.sandbox.world import World

MAX_COUNT = 1000
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_STATUS = {HoldingState.PENDING: "CREATING", HoldingState.ACTIVE: "READY"}
_MACHINE_TYPE = "resource.specificReservation.instanceProperties.machineType"
_SETTABLE = frozenset({"deleteAtTime", "shareSettings"})


class Reservations:
    """`zone` must be one of the catalogue's; the caller has checked it."""

    def __init__(self, world: World, project: str, zone: str) -> None:
        self._world, self._project, self._zone = world, project, zone
        self._market = world.market
        self._operations = Operations(world, project, zone)
        self._path = f"projects/{project}/zones/{zone}/reservations"

    def insert(self, body: dict[str, Any], request_id: str) -> dict[str, Any]:
        """Raises Refused; no capacity and no quota make an operation that fails."""
        if before := self._operations.repeated(request_id):
            return self._operations.rendered(before)
        name, count = str(body.get("name", "")), self._checked(body)
        details = _kept(body) | {"numericId": str(int(self._market.new_id("", 15), 16))}
        made = self._bought(name, count, self._ends(body), details)
        refusal = made if isinstance(made, Refusal) else None
        return self._operations.add(
            "insert",
            f"{self._path}/{name}",
            request_id,
            target_id=details["numericId"],
            holding=made if isinstance(made, Holding) else None,
            refusal=refusal,
            elsewhere=self._elsewhere(_machine_type(body), count) if refusal else [],
        )

    def get(self, name: str) -> dict[str, Any]:
        holding = self._shown(name)
        return self._rendered(holding, len(self._market.consumers(holding)))

    def page(self, query: dict[str, str]) -> dict[str, Any]:
        return listed("compute#reservationList", self._path, self.all(), query, self._world)

    def all(self) -> list[dict[str, Any]]:
        """Those that reads show, by name."""
        shown = sorted(self._visible(), key=lambda holding: holding.name)
        instances = self._market.instances(ProviderName.GCP, self._project, self._region)
        in_use = Counter(instance.holding for instance in instances if instance.ended is None)
        return [self._rendered(holding, in_use[holding.id]) for holding in shown]

    def resize(self, name: str, body: dict[str, Any], request_id: str) -> dict[str, Any]:
        if before := self._operations.repeated(request_id):
            return self._operations.rendered(before)
        holding, count = self._shown(name), _count("specificSkuCount", body.get("specificSkuCount"))
        if holding.details["specificReservationRequired"] and count < len(self._market.consumers(holding)):
            raise Refused(
                400,
                "invalid",
                "The resize instance count cannot be lower than the in use count for a specific reservation.",
            )
        return self._changed("resize", holding, request_id, lambda: self._market.resize(holding, count))

    def delete(self, name: str, request_id: str) -> dict[str, Any]:
        if before := self._operations.repeated(request_id):
            return self._operations.rendered(before)
        holding = self._shown(name)
        users = self._market.consumers(holding)
        if holding.details["specificReservationRequired"] and users:
            used_by = f"projects/{self._project}/zones/{self._zone}/instances/{users[0].name}"
            message = f"The reservation resource '{self._path}/{name}' is already being used by '{used_by}'"
            raise Refused(400, "resourceInUseByAnotherResource", message)
        return self._changed("delete", holding, request_id, lambda: self._market.release(holding))

    def update(self, name: str, body: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        """Only what `paths` or `updateMask` names: the end, and with whom it is shared."""
        holding = self._shown(name)
        paths = [path for key in ("paths", "updateMask") for path in query.get(key, "").split(",") if path]
        if not paths or any(path.partition(".")[0] not in _SETTABLE for path in paths):
            raise invalid("paths", ",".join(paths), "Only deleteAtTime and shareSettings can be updated.")
        if any(path.startswith("shareSettings") for path in paths):
            _share(holding, body.get("shareSettings", {}))
        if "deleteAtTime" not in paths:
            return self._operations.add("update", f"{self._path}/{name}", query.get("requestId", ""))
        ends = self._ends(body)
        return self._changed("update", holding, query.get("requestId", ""), lambda: self._market.set_end(holding, ends))

    # -- helpers

    @property
    def _region(self) -> str:
        return self._zone.rpartition("-")[0]

    def _visible(self) -> list[Holding]:
        found = self._market.holdings(ProviderName.GCP, self._project, self._region)
        return [holding for holding in found if holding.zone == self._zone and holding.state.live]

    def _shown(self, name: str) -> Holding:
        for holding in self._visible():
            if holding.name == name:
                return holding
        raise not_found(f"{self._path}/{name}")

    def _checked(self, body: dict[str, Any]) -> int:
        """The count of a reservation that may be made."""
        name = str(body.get("name", ""))
        if not _NAME.fullmatch(name):
            raise invalid("resource.name", name, f"Must be a match of regex '{_NAME.pattern}'")
        if not _machine_type(body):
            raise invalid(_MACHINE_TYPE, "", "It is required.")
        if any(holding.name == name for holding in self._taken()):
            raise Refused(409, "alreadyExists", f"The resource '{self._path}/{name}' already exists")
        return _count("resource.specificReservation.count", body["specificReservation"].get("count"))

    def _bought(self, name: str, count: int, ends: datetime | None, details: dict[str, Any]) -> Holding | Refusal:
        """Raises Refused for what is not sold there; what the zone or the quota lacks is returned."""
        machine_type = last(details["instanceProperties"]["machineType"])
        known = self._world.catalogue.find(ProviderName.GCP, self._region, machine_type)
        if known is not None and not known.reservable:
            raise invalid(_MACHINE_TYPE, machine_type, "It is not supported for reservations.")
        pool = Pool(ProviderName.GCP, self._region, self._zone, machine_type)
        try:
            return self._market.reserve(
                pool, self._project, count, id=self._free_id(name), name=name, ends=ends, details=details
            )
        except NotSold as why:
            raise invalid(_MACHINE_TYPE, machine_type, f"It is not in the zone: {why}.") from why
        except (OutOfCapacity, OverQuota) as why:
            return why

    def _ends(self, body: dict[str, Any]) -> datetime | None:
        """Raises Refused for an end that is past or unreadable."""
        text = body.get("deleteAtTime")
        ends = parse_time("resource.deleteAtTime", text) if text else None
        if ends is not None and ends <= self._world.clock.now():
            raise invalid("resource.deleteAtTime", text, "Must be in the future.")
        return ends

    def _taken(self) -> list[Holding]:
        """Names in use, whether reads show it or not."""
        self._market.settle()
        here = (ProviderName.GCP, self._project, self._zone)
        return [h for h in self._market.state.holdings if h.state.live and (h.provider, h.account, h.zone) == here]

    def _free_id(self, name: str) -> str:
        """`zone/name`, numbered where the name was used before."""
        id, used = f"{self._zone}/{name}", {holding.id for holding in self._market.state.holdings}
        return next(known for n in range(len(used) + 1) if (known := f"{id}~{n}" if n else id) not in used)

    def _elsewhere(self, machine_type: str, count: int) -> list[str]:
        """Other zones of the region that have as many."""
        zones = self._world.catalogue.zones(ProviderName.GCP, self._region)
        pools = [Pool(ProviderName.GCP, self._region, zone, machine_type) for zone in zones if zone != self._zone]
        return [pool.zone for pool in pools if self._world.catalogue.sells(pool) and self._market.free(pool) >= count]

    def _changed(self, kind: str, holding: Holding, request_id: str, act: Callable[[], Holding]) -> dict[str, Any]:
        """Do it, unless a fault lets the operation fail later."""
        after: Holding | None = None
        refusal: Refusal | None = None
        if self._market.twist.failure is None:
            try:
                after = act()
            except Refusal as why:
                refusal = why
        return self._operations.add(
            kind,
            f"{self._path}/{holding.name}",
            request_id,
            target_id=holding.details["numericId"],
            done=after.ended if after else None,
            refusal=refusal,
            elsewhere=self._elsewhere(holding.machine_type, 1) if refusal else [],
        )

    def _rendered(self, holding: Holding, in_use: int) -> dict[str, Any]:
        assured = holding.there if holding.state is HoldingState.ACTIVE else 0
        properties = holding.details["instanceProperties"]
        rendered = {
            "kind": "compute#reservation",
            "id": holding.details["numericId"],
            "creationTimestamp": timestamp(holding.started or holding.created),
            "selfLink": f"{ROOT}/{self._path}/{holding.name}",
            "zone": f"{ROOT}/projects/{self._project}/zones/{self._zone}",
            "name": holding.name,
            "description": holding.details["description"],
            "specificReservationRequired": holding.details["specificReservationRequired"],
            "specificReservation": {
                "count": str(holding.count),
                "inUseCount": str(in_use),
                "assuredCount": str(assured),
                "instanceProperties": properties,
            },
            "shareSettings": holding.details["shareSettings"],
            "resourceStatus": {"specificSkuAllocation": {}},
            "status": _STATUS[holding.state],
        }
        return rendered | ({"deleteAtTime": timestamp(holding.ends)} if holding.ends else {})


def aggregated(world: World, project: str, zones: list[str], query: dict[str, str]) -> dict[str, Any]:
    """Every zone's, each with a warning where it has none on this page.

    `world.memory["gcp"]["unreachable"]` lists zones that cannot be reached now. Raises Refused.
    """
    path = f"projects/{project}/aggregated/reservations"
    unreachable = set(world.memory[ProviderName.GCP].get("unreachable", ()))
    everything = [
        (zone, item)
        for zone in zones
        if zone not in unreachable
        for item in selected(Reservations(world, project, zone).all(), query)
    ]
    page, token = paged(everything, query, world)
    reply: dict[str, Any] = {"kind": "compute#reservationAggregatedList", "id": path, "selfLink": f"{ROOT}/{path}"}
    reply["items"] = {f"zones/{zone}": _scoped(zone, [item for at, item in page if at == zone]) for zone in zones}
    if unreachable:
        reply["unreachables"] = [f"zones/{zone}" for zone in sorted(unreachable)]
        reply["warning"] = {"code": "UNREACHABLE", "message": "Some scopes were not reachable."}
    return reply | ({"nextPageToken": token} if token else {})


def _scoped(zone: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    if items:
        return {"reservations": items}
    message = f"There are no results for scope 'zones/{zone}' on this page."
    return {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": message}}


def _machine_type(body: dict[str, Any]) -> str:
    specific = body.get("specificReservation") or {}
    return last(str((specific.get("instanceProperties") or {}).get("machineType", "")))


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    """What the market does not know and reads show again."""
    return {
        "description": str(body.get("description", "")),
        "specificReservationRequired": bool(body.get("specificReservationRequired")),
        "instanceProperties": body["specificReservation"]["instanceProperties"],
        "shareSettings": body.get("shareSettings") or {"shareType": "LOCAL"},
    }


def _count(field: str, value: Any) -> int:
    """An int64, which is a string in JSON."""
    text = str(value)
    if not text.isdigit() or not 1 <= int(text) <= MAX_COUNT:
        raise invalid(field, value, f"Must be 1 to {MAX_COUNT}.")
    return int(text)


def _share(holding: Holding, settings: dict[str, Any]) -> None:
    """How widely it is shared is set when it is made; with which projects may change."""
    before = holding.details["shareSettings"]
    if settings.get("shareType", before["shareType"]) != before["shareType"]:
        raise invalid("resource.shareSettings.shareType", settings["shareType"], "It cannot be changed.")
    holding.details["shareSettings"] = before | settings
