"""Looking for the effect of a request whose answer was not seen. Only reads."""

from datetime import timedelta

from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.aws.changes import CREATE
from providers.aws.listing import Listing
from providers.base import Seen, Sighting, Unfilled
from providers.gone import gone

_PRECISION = timedelta(seconds=1)


class Look:
    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def for_effect(self, request: Request) -> Sighting:
        if isinstance(request, ReserveRequest):
            return self._purchase(request)
        found = self._listing.reservation(request.place.scope, request.reservation_id)
        if isinstance(request, ReleaseRequest):
            return _released(request, found)
        if found is None:
            return Sighting(seen=Seen.NOT_YET)
        if isinstance(request, EndRequest):
            happened = found.ends is not None and abs(found.ends - request.to_end) < _PRECISION
        else:
            happened = found.count == request.to_count
        return _done(found) if happened else Sighting(seen=Seen.NOT_YET)

    def _purchase(self, request: ReserveRequest) -> Sighting:
        """By its tags in the whole list: `tag:` is not among the filters that are documented for reservations."""
        ours = Owner(request.lineage, request.key)
        found = next((r for r in self._listing.reservations(request.place.scope) if r.owner == ours), None)
        if found is None:
            return Sighting(seen=Seen.NOT_YET)
        if found.state is ReservationState.FAILED:
            error = Unfilled(CREATE, code=found.raw_state, message=f"{found.id} could not be provided")
            return Sighting(seen=Seen.REFUSED, reservation=found, error=error)
        return _done(found)


def _released(request: ReleaseRequest, found: Reservation | None) -> Sighting:
    if found is None:
        return _done(gone(request))
    return _done(found) if found.state.gone else Sighting(seen=Seen.NOT_YET, reservation=found)


def _done(reservation: Reservation) -> Sighting:
    return Sighting(seen=Seen.DONE, reservation=reservation)
