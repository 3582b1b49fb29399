"""ARM on the wire: errors with their statuses, pages, names that are the same in any case."""

from collections.abc import Sequence
from typing import Any

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool
from providers.sandbox.wire import Request, Response
from providers.sandbox.world import World

STATUSES = {
    "InvalidParameter": 400,
    "BadRequest": 400,
    "InvalidAuthenticationToken": 401,
    "AuthorizationFailed": 403,
    "ResourceNotFound": 404,
    "ParentResourceNotFound": 404,
    "ResourceGroupNotFound": 404,
    "SubscriptionNotFound": 404,
    "AllocationFailed": 409,
    "ZonalAllocationFailed": 409,
    "OverconstrainedAllocationRequest": 409,
    "OverconstrainedZonalAllocationRequest": 409,
    "SkuNotAvailable": 409,
    "OperationNotAllowed": 409,
    "QuotaExceeded": 409,
    "NotSupported": 409,
    "Conflict": 409,
    "AnotherOperationInProgress": 409,
    "CannotDeleteResource": 409,
    "PropertyChangeNotAllowed": 409,
    "PreconditionFailed": 412,
    "TooManyRequests": 429,
    "InternalServerError": 500,
    "ServiceUnavailable": 503,
}
"""By error code. Where nothing published names the status of a code it is taken to be 409."""

NO_CAPACITY = "Allocation failed. We do not have sufficient capacity for the requested VM size in this region."
NO_ZONAL_CAPACITY = "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone."


class Refused(Exception):
    """Azure's no."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def error(code: str, message: str, status: int | None = None) -> Response:
    body = {"error": {"code": code, "message": message}}
    return Response.of_json(body, status or STATUSES.get(code, 500), code=code)


def no_capacity(zone: str) -> tuple[str, str]:
    """Code and message of a stock-out."""
    return ("ZonalAllocationFailed", NO_ZONAL_CAPACITY) if zone else ("AllocationFailed", NO_CAPACITY)


def over_quota(quota: str, limit: int, used: int) -> Refused:
    message = (
        f"Operation could not be completed as it results in exceeding approved {quota} Cores quota."
        f" Current Limit: {limit}, Current Usage: {used}."
    )
    return Refused("OperationNotAllowed", message)


def page(items: Sequence[Any], request: Request, world: World) -> dict[str, Any]:
    """One page of a list, with the absolute link to the next."""
    start = int(request.query.get("$skiptoken", "0") or 0)
    size = int(world.memory[ProviderName.AZURE].get("page_size", 0)) or len(items) or 1
    body: dict[str, Any] = {"value": list(items[start : start + size])}
    if start + size < len(items):
        kept = "&".join(f"{name}={value}" for name, value in request.query.items() if name != "$skiptoken")
        body["nextLink"] = f"{request.base_url}{request.path}?{kept}&$skiptoken={start + size}".replace(" ", "%20")
    return body


def key(path: str) -> str:
    """What a resource is kept under: ARM's names are the same in any case."""
    return path.lower()


def pool_of(region: str, zone: str, machine_type: str) -> Pool:
    """Zones are numbers here; the market's are named after the region."""
    return Pool(ProviderName.AZURE, region, f"{region}-az{zone}" if zone else "", machine_type)


def zone_of(zone: str) -> str:
    """The number of a market's zone."""
    return zone.rpartition("-az")[2]
