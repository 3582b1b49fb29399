"""Azure's face: ARM's Microsoft.Compute, as far as capacity reservations need it and what stands around them."""

import json
import re
from collections.abc import Callable
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox import azure_catalogue, azure_groups, azure_machines, azure_reservations
from providers.sandbox.azure_groups import Groups
from providers.sandbox.azure_machines import Machines
from providers.sandbox.azure_operations import Operations
from providers.sandbox.azure_reservations import Reservations
from providers.sandbox.azure_wire import STATUSES, Refused, error, page
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.wire import Operation, Request, Response
from providers.sandbox.world import World

Names = dict[str, str]


class Asked:
    """One request, with what its path names."""

    def __init__(self, world: World, request: Request, names: Names) -> None:
        self.world, self.request, self._names = world, request, names
        self.subscription = names["subscription"]
        self.groups = Groups(world, self.subscription)
        self.reservations = Reservations(world, self.subscription)
        self.operations = Operations(world)
        self.machines = Machines(world, self.subscription)

    @property
    def path(self) -> str:
        return self.request.path

    @property
    def group_path(self) -> str:
        """The path up to the group's name, whatever follows."""
        return re.split(r"/capacityReservations(?=/|$)", self.path, flags=re.IGNORECASE)[0]

    @property
    def body(self) -> dict[str, Any]:
        """Raises ValueError where it is no JSON object."""
        body = self.request.json
        if not isinstance(body, dict):
            raise ValueError(json.dumps(body))
        return body

    @property
    def expand(self) -> str:
        return self.request.query.get("$expand", "")

    def name(self, what: str) -> str:
        return self._names[what]

    def paged(self, items: list[dict[str, Any]]) -> Response:
        return Response.of_json(page(items, self.request, self.world))

    def accepted(self, operation: str, region: str, body: Any, status: int) -> Response:
        """A long-running operation's first answer."""
        headers = self.operations.headers(operation, self.request, self.subscription, region)
        if body is None:
            return Response(status=status, headers=headers)
        return Response.of_json(body, status, headers)


def _put_group(asked: Asked) -> Response:
    group, new = asked.groups.put(asked.path, asked.body)
    return Response.of_json(_group(asked, group), 201 if new else 200)


def _patch_group(asked: Asked) -> Response:
    return Response.of_json(_group(asked, asked.groups.patch(asked.path, asked.body)))


def _get_group(asked: Asked) -> Response:
    return Response.of_json(_group(asked, asked.groups.get(asked.path)))


def _list_groups(asked: Asked) -> Response:
    return asked.paged([_group(asked, group) for group in asked.groups.every()])


def _list_groups_of_resource_group(asked: Asked) -> Response:
    return asked.paged([_group(asked, group) for group in asked.groups.every(asked.name("resource_group"))])


def _delete_group(asked: Asked) -> Response:
    group = asked.groups.get(asked.path)
    if asked.reservations.in_group(asked.path) or asked.machines.associated(asked.path):
        raise Refused("CannotDeleteResource", "Can not delete resource before nested resources are deleted.")
    asked.groups.delete(asked.path)
    return asked.accepted(asked.operations.begin(asked.world.clock.now()), group["location"], None, 202)


def _group(asked: Asked, group: dict[str, Any]) -> dict[str, Any]:
    members = asked.reservations.members(group["id"])
    body = azure_groups.shown(group, members, asked.machines.associated(group["id"]))
    return azure_groups.viewed(body, members) if asked.expand.lower() == "instanceview" else body


def _put_reservation(asked: Asked) -> Response:
    operation, new = asked.reservations.put(asked.path, asked.group_path, asked.body)
    return _changed(asked, operation, 201 if new else 200)


def _patch_reservation(asked: Asked) -> Response:
    return _changed(asked, asked.reservations.patch(asked.path, asked.body), 200)


def _changed(asked: Asked, operation: str, status: int) -> Response:
    """The resource as it is now; where reads do not show it yet, as it was asked for."""
    region = str(asked.groups.get(asked.group_path)["location"])
    try:
        body = azure_reservations.with_view(asked.reservations.get(asked.path), "")
    except Refused:
        name = asked.path.rpartition("/")[2]
        body = {**asked.body, "id": asked.path, "name": name, "properties": {"provisioningState": "Creating"}}
    return asked.accepted(operation, region, body, status)


def _get_reservation(asked: Asked) -> Response:
    return Response.of_json(azure_reservations.with_view(asked.reservations.get(asked.path), asked.expand))


def _list_reservations(asked: Asked) -> Response:
    asked.groups.get(asked.group_path)
    members = asked.reservations.members(asked.group_path)
    return asked.paged([azure_reservations.with_view(member, "") for member in members])


def _delete_reservation(asked: Asked) -> Response:
    region = str(asked.groups.get(asked.group_path)["location"])
    return asked.accepted(asked.reservations.delete(asked.path), region, None, 202)


def _get_operation(asked: Asked) -> Response:
    status = asked.operations.status(asked.name("id"))
    code = str(status.get("error", {}).get("code", ""))
    return Response.of_json(status, 200, {"Retry-After": "0"} if status["status"] == "InProgress" else {}, code)


def _list_skus(asked: Asked) -> Response:
    return asked.paged(azure_catalogue.skus(asked.world, asked.request.query.get("$filter", "")))


def _list_usages(asked: Asked) -> Response:
    return asked.paged(azure_catalogue.usages(asked.world, asked.subscription, asked.name("region").lower()))


def _get_subscription(asked: Asked) -> Response:
    return Response.of_json(azure_catalogue.subscription(asked.subscription))


def _put_machine(asked: Asked) -> Response:
    machine, new = asked.machines.put(asked.path, asked.body)
    return Response.of_json(azure_machines.shown(machine), 201 if new else 200)


def _patch_machine(asked: Asked) -> Response:
    machine = asked.machines.associate(asked.machines.get(asked.path), asked.body)
    return Response.of_json(azure_machines.shown(machine))


def _get_machine(asked: Asked) -> Response:
    return Response.of_json(azure_machines.shown(asked.machines.get(asked.path)))


def _list_machines(asked: Asked) -> Response:
    within = asked.path.lower().split("/providers/")[0]
    return asked.paged([azure_machines.shown(machine) for machine in asked.machines.every(within)])


def _delete_machine(asked: Asked) -> Response:
    region = asked.machines.get(asked.path).region
    asked.machines.delete(asked.path)
    return asked.accepted(asked.operations.begin(asked.world.clock.now()), region, None, 202)


class AzureFace:
    """Fault rules match REST operation names (`capacityReservations.createOrUpdate`)."""

    provider = ProviderName.AZURE

    def operation(self, request: Request) -> Operation:
        name, names, _ = _route(request)
        return Operation(name=name, parameters=names | _told(request))

    def handle(self, request: Request, world: World) -> Response:
        response = self._handled(request, world)
        response.headers = {**response.headers, "x-ms-request-id": f"req-{world.seed}-{world.market.call}"}
        return response

    def error(self, request: Request, rule: Rule, request_id: str) -> Response:  # noqa: ARG002 - every face takes it
        throttled = rule.kind is FaultKind.THROTTLE
        code = rule.code or ("TooManyRequests" if throttled else "InternalServerError")
        status = rule.status or (429 if throttled else STATUSES.get(code, 500))
        response = error(code, rule.message, status)
        response.headers = {**response.headers, "x-ms-request-id": request_id}
        return response

    def _handled(self, request: Request, world: World) -> Response:
        _, names, handler = _route(request)
        if handler is None:
            return error("ResourceNotFound", f"No resource answers {request.method} {request.path}.", 404)
        try:
            return handler(Asked(world, request, names))
        except Refused as why:
            return error(why.code, why.message)
        except ValueError:
            return error("BadRequest", "The request body is not valid JSON.")


def _route(request: Request) -> tuple[str, Names, Callable[[Asked], Response] | None]:
    for method, pattern, name, handler in _ROUTES:
        if method == request.method and (match := pattern.fullmatch(request.path)):
            return name, match.groupdict(), handler
    return f"{request.method} {request.path}", {}, None


def _told(request: Request) -> Names:
    """What fault rules and tests may want to know of the body."""
    try:
        body = request.json
    except ValueError:
        return {}
    if not isinstance(body, dict):
        return {}
    sku = body.get("sku") or {}
    found = {"size": sku.get("name"), "capacity": sku.get("capacity"), "zone": "".join(body.get("zones") or [])}
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


_SUBSCRIPTION = r"/subscriptions/(?P<subscription>[^/]+)"
_COMPUTE = rf"{_SUBSCRIPTION}/providers/Microsoft\.Compute"
_RESOURCES = rf"{_SUBSCRIPTION}/resourceGroups/(?P<resource_group>[^/]+)/providers/Microsoft\.Compute"
_GROUP = rf"{_RESOURCES}/capacityReservationGroups/(?P<group>[^/]+)"
_RESERVATION = rf"{_GROUP}/capacityReservations/(?P<name>[^/]+)"
_MACHINE = rf"{_RESOURCES}/virtualMachines/(?P<name>[^/]+)"

_TABLE: tuple[tuple[str, str, str, Callable[[Asked], Response]], ...] = (
    ("PUT", _GROUP, "capacityReservationGroups.createOrUpdate", _put_group),
    ("PATCH", _GROUP, "capacityReservationGroups.update", _patch_group),
    ("GET", _GROUP, "capacityReservationGroups.get", _get_group),
    ("DELETE", _GROUP, "capacityReservationGroups.delete", _delete_group),
    ("GET", rf"{_COMPUTE}/capacityReservationGroups", "capacityReservationGroups.listBySubscription", _list_groups),
    (
        "GET",
        rf"{_RESOURCES}/capacityReservationGroups",
        "capacityReservationGroups.listByResourceGroup",
        _list_groups_of_resource_group,
    ),
    ("PUT", _RESERVATION, "capacityReservations.createOrUpdate", _put_reservation),
    ("PATCH", _RESERVATION, "capacityReservations.update", _patch_reservation),
    ("GET", _RESERVATION, "capacityReservations.get", _get_reservation),
    ("DELETE", _RESERVATION, "capacityReservations.delete", _delete_reservation),
    (
        "GET",
        rf"{_GROUP}/capacityReservations",
        "capacityReservations.listByCapacityReservationGroup",
        _list_reservations,
    ),
    ("GET", rf"{_COMPUTE}/locations/(?P<region>[^/]+)/operations/(?P<id>[^/]+)", "operations.get", _get_operation),
    ("GET", rf"{_COMPUTE}/locations/(?P<region>[^/]+)/usages", "usage.list", _list_usages),
    ("GET", rf"{_COMPUTE}/skus", "resourceSkus.list", _list_skus),
    ("GET", _SUBSCRIPTION, "subscriptions.get", _get_subscription),
    ("PUT", _MACHINE, "virtualMachines.createOrUpdate", _put_machine),
    ("PATCH", _MACHINE, "virtualMachines.update", _patch_machine),
    ("GET", _MACHINE, "virtualMachines.get", _get_machine),
    ("DELETE", _MACHINE, "virtualMachines.delete", _delete_machine),
    ("GET", rf"{_RESOURCES}/virtualMachines", "virtualMachines.list", _list_machines),
    ("GET", rf"{_COMPUTE}/virtualMachines", "virtualMachines.listAll", _list_machines),
)
_ROUTES = tuple((method, re.compile(path, re.IGNORECASE), name, handler) for method, path, name, handler in _TABLE)
