"""Looking for the effect of a request whose answer was not seen. Only reads."""

from google.cloud import compute_v1

from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation, ReservationState
from providers.base import Ambiguous, Seen, Sighting
from providers.gcp import failures
from providers.gcp.changes import INSERT, RESIZE, is_as_asked
from providers.gcp.listing import Listing
from providers.gcp.naming import name_in, name_of, request_id_of
from providers.gone import gone


class Look:
    """The reservation itself comes first; the zone's record of operations says why there is none."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def for_effect(self, request: Request) -> Sighting:
        """Raises Ambiguous while the operation still runs: neither yes nor no."""
        if isinstance(request, ReserveRequest):
            return self._purchase(request)
        found = self._listing.reservation(request.place, name_in(request.reservation_id))
        if isinstance(request, ReleaseRequest):
            return _released(request, found)
        if found and is_as_asked(request, found):
            return _done(found)
        return Sighting(seen=Seen.NOT_YET) if isinstance(request, EndRequest) else self._by_operation(RESIZE, request)

    def _purchase(self, request: ReserveRequest) -> Sighting:
        found = self._listing.reservation(request.place, name_of(request))
        return _done(found) if found else self._by_operation(INSERT, request)

    def _by_operation(self, operation: str, request: ReserveRequest | ResizeRequest) -> Sighting:
        raw = self._listing.operation(request.place, request_id_of(request))
        if raw is None:
            return Sighting(seen=Seen.NOT_YET)
        if raw.status != compute_v1.Operation.Status.DONE:
            raise Ambiguous(operation, code="running", message="the operation still runs", request_id=raw.name)
        if failure := failures.of_operation(operation, raw):
            return Sighting(seen=Seen.REFUSED, error=failure)
        return Sighting(seen=Seen.NOT_YET)


def _released(request: ReleaseRequest, found: Reservation | None) -> Sighting:
    if found is None:
        return _done(gone(request))
    if found.state is ReservationState.CANCELLING:
        return _done(found)
    return Sighting(seen=Seen.NOT_YET, reservation=found)


def _done(reservation: Reservation) -> Sighting:
    return Sighting(seen=Seen.DONE, reservation=reservation)
