"""Compute Engine's face: compute v1 over JSON, as far as reservations need it and what stands around them."""

import json
import re
from collections.abc import Callable
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.gcp_catalogue import Places
from providers.sandbox.gcp_instances import Instances
from providers.sandbox.gcp_operations import Operations, failed
from providers.sandbox.gcp_reservations import Reservations, aggregated
from providers.sandbox.gcp_wire import Refused, error
from providers.sandbox.wire import Operation, Request, Response
from providers.sandbox.world import World

Names = dict[str, str]


class Asked:
    """One request, with what its path names."""

    def __init__(self, world: World, request: Request, names: Names) -> None:
        self._world, self._request, self._names = world, request, names

    @property
    def query(self) -> dict[str, str]:
        return self._request.query

    @property
    def request_id(self) -> str:
        return self.query.get("requestId", "")

    @property
    def body(self) -> dict[str, Any]:
        """Raises ValueError where it is no JSON object."""
        body = self._request.json
        if not isinstance(body, dict):
            raise ValueError(json.dumps(body))
        return body

    @property
    def name(self) -> str:
        return self._names["name"]

    @property
    def zone(self) -> str:
        """Raises Refused for one that does not exist."""
        return self.places.checked_zone(self._names["zone"])

    @property
    def places(self) -> Places:
        return Places(self._world, self._names["project"])

    @property
    def reservations(self) -> Reservations:
        return Reservations(self._world, self._names["project"], self.zone)

    @property
    def operations(self) -> Operations:
        return Operations(self._world, self._names["project"], self.zone)

    @property
    def instances(self) -> Instances:
        return Instances(self._world, self._names["project"], self.zone)

    def all_reservations(self) -> dict[str, Any]:
        return aggregated(self._world, self._names["project"], self.places.zone_names(), self.query)


Handler = Callable[[Asked], dict[str, Any]]


class GcpFace:
    """Fault rules match API method names (`reservations.insert`) and the parameters of `operation`."""

    provider = ProviderName.GCP

    def operation(self, request: Request) -> Operation:
        name, names, _ = _route(request)
        return Operation(name=name, parameters=names | _told(request))

    def handle(self, request: Request, world: World) -> Response:
        _, names, handler = _route(request)
        if handler is None:
            return error(404, "notFound", f"The requested URL {request.path} was not found on this server.")
        try:
            reply = handler(Asked(world, request, names))
        except Refused as why:
            return error(why.status, why.reason, why.message)
        except ValueError:
            return error(400, "parseError", "Parse Error")
        return Response.of_json(reply, code=_code(reply))

    def error(self, request: Request, rule: Rule, request_id: str) -> Response:  # noqa: ARG002 - every face takes it
        """A code in capitals (`QUOTA_EXCEEDED`) without a status is one of operations: HTTP 200, and failed."""
        if rule.kind is FaultKind.THROTTLE:
            return error(rule.status or 429, rule.code or "rateLimitExceeded", "Rate Limit Exceeded", request_id)
        if rule.code.isupper() and rule.status is None:
            return Response.of_json(failed(rule.code, rule.message), code=rule.code)
        return error(rule.status or 503, rule.code or "backendError", rule.message, request_id)


def _route(request: Request) -> tuple[str, Names, Handler | None]:
    for method, pattern, name, handler in _ROUTES:
        if method == request.method and (match := pattern.fullmatch(request.path)):
            return name, match.groupdict(), handler
    return f"{request.method} {request.path}", {}, None


def _told(request: Request) -> Names:
    """What fault rules and tests may want to know of the query and the body."""
    told: Names = {name: request.query[name] for name in _TOLD if name in request.query}
    try:
        body = request.json
    except ValueError:
        return told
    if not isinstance(body, dict):
        return told
    specific = body.get("specificReservation") or {}
    found = {
        "name": body.get("name"),
        "count": body.get("specificSkuCount", specific.get("count")),
        "machineType": (specific.get("instanceProperties") or {}).get("machineType", body.get("machineType")),
        "deleteAtTime": body.get("deleteAtTime"),
    }
    return told | {name: str(value) for name, value in found.items() if value is not None}


def _code(reply: dict[str, Any]) -> str:
    """Of the error in an operation."""
    errors = reply.get("error", {}).get("errors", [])
    return str(errors[0]["code"]) if errors else ""


_TOLD = ("requestId", "pageToken", "filter", "paths")
_ZONE = "zones/{zone}"
_TABLE: tuple[tuple[str, str, str, Handler], ...] = (
    ("GET", "", "projects.get", lambda a: a.places.project()),
    ("GET", "regions", "regions.list", lambda a: a.places.regions(a.query)),
    ("GET", "regions/{name}", "regions.get", lambda a: a.places.region(a.name)),
    ("GET", "zones", "zones.list", lambda a: a.places.zones(a.query)),
    ("GET", "zones/{name}", "zones.get", lambda a: a.places.zone(a.name)),
    ("GET", "aggregated/machineTypes", "machineTypes.aggregatedList", lambda a: a.places.all_machine_types(a.query)),
    ("GET", f"{_ZONE}/machineTypes", "machineTypes.list", lambda a: a.places.machine_types(a.zone, a.query)),
    ("GET", f"{_ZONE}/machineTypes/{{name}}", "machineTypes.get", lambda a: a.places.machine_type(a.zone, a.name)),
    ("GET", "aggregated/reservations", "reservations.aggregatedList", lambda a: a.all_reservations()),
    ("GET", f"{_ZONE}/reservations", "reservations.list", lambda a: a.reservations.page(a.query)),
    ("POST", f"{_ZONE}/reservations", "reservations.insert", lambda a: a.reservations.insert(a.body, a.request_id)),
    ("GET", f"{_ZONE}/reservations/{{name}}", "reservations.get", lambda a: a.reservations.get(a.name)),
    (
        "POST",
        f"{_ZONE}/reservations/{{name}}/resize",
        "reservations.resize",
        lambda a: a.reservations.resize(a.name, a.body, a.request_id),
    ),
    (
        "PATCH",
        f"{_ZONE}/reservations/{{name}}",
        "reservations.update",
        lambda a: a.reservations.update(a.name, a.body, a.query),
    ),
    (
        "DELETE",
        f"{_ZONE}/reservations/{{name}}",
        "reservations.delete",
        lambda a: a.reservations.delete(a.name, a.request_id),
    ),
    ("GET", f"{_ZONE}/operations", "zoneOperations.list", lambda a: a.operations.page(a.query)),
    ("GET", f"{_ZONE}/operations/{{name}}", "zoneOperations.get", lambda a: a.operations.get(a.name)),
    ("POST", f"{_ZONE}/operations/{{name}}/wait", "zoneOperations.wait", lambda a: a.operations.get(a.name)),
    ("GET", f"{_ZONE}/instances", "instances.list", lambda a: a.instances.page(a.query)),
    ("POST", f"{_ZONE}/instances", "instances.insert", lambda a: a.instances.insert(a.body, a.request_id)),
    ("GET", f"{_ZONE}/instances/{{name}}", "instances.get", lambda a: a.instances.get(a.name)),
    ("DELETE", f"{_ZONE}/instances/{{name}}", "instances.delete", lambda a: a.instances.delete(a.name, a.request_id)),
)
"""Method, path below the project, the API's name for it, and what answers."""


def _pattern(path: str) -> re.Pattern[str]:
    below = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    return re.compile("/compute/v1/projects/(?P<project>[^/]+)" + (f"/{below}" if below else ""))


_ROUTES = tuple((method, _pattern(path), name, handler) for method, path, name, handler in _TABLE)
