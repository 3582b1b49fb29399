"""Reads: whole or not at all. A list with a gap is an error, because what is missing in it could be bought again."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from google.cloud import compute_v1

from broker.model.place import Place, Scope
from broker.model.reservation import Reservation
from providers.base import BrokenReply, Denied, NotFound, Unreachable, Unsupported
from providers.gcp import reading
from providers.gcp.naming import last
from providers.gcp.wire import Wire

_AGGREGATED = "reservations.aggregatedList"
_GET = "reservations.get"
_OPERATIONS = "zoneOperations.list"
_NOTHING_HERE = "NO_RESULTS_ON_PAGE"
"""The warning that stands in an empty zone's place; a zone with neither this nor reservations was not read."""
_PAGE = 500
"""The most that Compute Engine puts on a page."""


class Listing:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        """All of the region's, whoever made them; those that hold no machines (TPU) are left out."""
        found: list[Reservation] = []
        zones = 0
        request = compute_v1.AggregatedListReservationsRequest(project=scope.account, max_results=_PAGE)
        for page in self._pages(_AGGREGATED, self._wire.reservations.aggregated_list, request):
            _refuse_gaps(scope, page)
            for key, scoped in page.items.items():
                if _region_of(key) == scope.region:
                    zones += 1
                    place = Place(scope, last(key))
                    found += [_read(_AGGREGATED, place, raw) for raw in scoped.reservations if _holds_machines(raw)]
        if not zones:
            raise BrokenReply(_AGGREGATED, code="incomplete", message=f"no zone of {scope.region} is in the list")
        return tuple(found)

    def reservation(self, place: Place, name: str) -> Reservation | None:
        """None where Compute Engine says that there is none of that name."""
        request = compute_v1.GetReservationRequest(project=place.scope.account, zone=place.zone, reservation=name)
        try:
            raw = self._wire.repeat(_GET, self._wire.reservations.get, request)
        except NotFound:
            return None
        if raw.name != name:
            raise BrokenReply(_GET, code="incomplete", message=f"the reply does not name {name}")
        return _read(_GET, place, raw)

    def operation(self, place: Place, request_id: str) -> compute_v1.Operation | None:
        """The zone's record of the call that had this `requestId`, None where there is none (any more)."""
        try:
            return self._operation(place, request_id, f'clientOperationId = "{request_id}"')
        except Unsupported:  # whether this field can be filtered by is not documented
            return self._operation(place, request_id, "")

    def machine_types(self, place: Place) -> Iterator[compute_v1.MachineType]:
        """Those with GPUs of their own."""
        request = compute_v1.ListMachineTypesRequest(project=place.scope.account, zone=place.zone, max_results=_PAGE)
        for page in self._pages("machineTypes.list", self._wire.machine_types.list, request):
            yield from (raw for raw in page.items if raw.accelerators)

    def region(self, scope: Scope) -> compute_v1.Region:
        request = compute_v1.GetRegionRequest(project=scope.account, region=scope.region)
        return self._wire.repeat("regions.get", self._wire.regions.get, request)

    def project(self, scope: Scope) -> compute_v1.Project:
        request = compute_v1.GetProjectRequest(project=scope.account)
        return self._wire.repeat("projects.get", self._wire.projects.get, request)

    def quotas(self, scope: Scope, region: compute_v1.Region) -> list[compute_v1.Quota]:
        """The region's, and the project's where we may see them."""
        try:
            return [*region.quotas, *self.project(scope).quotas]
        except Denied:
            return list(region.quotas)

    def _operation(self, place: Place, request_id: str, wanted: str) -> compute_v1.Operation | None:
        request = compute_v1.ListZoneOperationsRequest(
            project=place.scope.account, zone=place.zone, max_results=_PAGE, filter=wanted or None
        )
        pages = self._pages(_OPERATIONS, self._wire.operations.list, request)
        found = (raw for page in pages for raw in page.items if raw.client_operation_id == request_id)
        return next(found, None)

    def _pages(self, operation: str, method: Callable[..., Any], request: Any) -> Iterator[Any]:
        """Each page is tried again by itself."""
        seen = {""}
        while True:
            page = self._wire.repeat(operation, partial(_one_page, method), request)
            yield page
            if page.next_page_token in seen:
                break
            request.page_token = page.next_page_token
            seen.add(page.next_page_token)
        if page.next_page_token:
            raise BrokenReply(operation, code="pages", message="the pages of the list go round in a circle")


def zones_of(scope: Scope, region: compute_v1.Region) -> tuple[Place, ...]:
    return tuple(Place(scope, zone) for zone in sorted(map(last, region.zones)))


def _one_page(method: Callable[..., Any], *, request: Any, retry: None, timeout: float) -> Any:
    return next(iter(method(request=request, retry=retry, timeout=timeout).pages))


def _refuse_gaps(scope: Scope, page: compute_v1.ReservationAggregatedList) -> None:
    """Raises Unreachable where the reply says that something of the region may be missing."""
    for unreachable in page.unreachables:
        if _may_be_in(scope, unreachable):
            raise _gap(scope, "UNREACHABLE", unreachable)
    if page.warning.code not in ("", _NOTHING_HERE) and not page.unreachables:
        raise _gap(scope, page.warning.code, page.warning.message)
    for key, scoped in page.items.items():
        if _region_of(key) == scope.region and not scoped.reservations and scoped.warning.code != _NOTHING_HERE:
            raise _gap(scope, scoped.warning.code or "incomplete", scoped.warning.message or f"nothing said of {key}")


def _read(operation: str, place: Place, raw: compute_v1.Reservation) -> Reservation:
    """Raises BrokenReply for one without a name or a count: taken for none, it would be bought again."""
    if not raw.name or ("count" not in raw.specific_reservation):
        message = f"a reservation of {place.zone} has no name or no count: {raw.name or raw.id}"
        raise BrokenReply(operation, code="incomplete", message=message)
    return reading.reservation(place, raw)


def _gap(scope: Scope, code: str, message: str) -> Unreachable:
    return Unreachable(_AGGREGATED, code=code, message=f"the list of {scope.region} is not complete: {message}")


def _may_be_in(scope: Scope, unreachable: str) -> bool:
    """`regions/x`, `zones/x-a`, or something that we do not know, which may be anywhere."""
    kind, _, name = unreachable.rpartition("/")
    if kind.endswith("zones"):
        return _region_of(unreachable) == scope.region
    return name == scope.region or not kind.endswith("regions")


def _region_of(key: str) -> str:
    """Of `zones/us-central1-a`."""
    return last(key).rpartition("-")[0]


def _holds_machines(raw: compute_v1.Reservation) -> bool:
    return "specific_reservation" in raw or "aggregate_reservation" not in raw
