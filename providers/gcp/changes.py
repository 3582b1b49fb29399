"""What spends or frees money. An accepted call is followed to its end; what cannot be seen is never called a no."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
from google.cloud import compute_v1

from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.base import Ambiguous, BrokenReply, Conflict, NotFound, ProviderError, Unsupported
from providers.gcp import failures, reading, writing
from providers.gcp.listing import Listing
from providers.gcp.naming import name_in, name_of, reservation_id
from providers.gcp.wire import Wire
from providers.gone import gone

INSERT = "reservations.insert"
RESIZE = "reservations.resize"
UPDATE = "reservations.update"
DELETE = "reservations.delete"
_WAIT = "zoneOperations.wait"
_PRECISION = timedelta(seconds=1)
_MAYBE_IN_USE = (Conflict, Unsupported, Ambiguous, BrokenReply)
"""How a deletion may fail that something hinders; the others speak of our sign-in or of the way there."""


class Changes:
    def __init__(self, wire: Wire, listing: Listing) -> None:
        self._wire = wire
        self._listing = listing

    def reserve(self, request: ReserveRequest) -> Reservation:
        message = writing.insert(request)
        try:
            ended = self._act(self._wire.send, INSERT, self._wire.reservations.insert_unary, message)
        except Conflict as conflict:
            return self._bought_before(request, conflict)
        found = self._read_back(request) if _is_done(ended) else None
        if found is not None and not _answers(request, found):
            raise Conflict(INSERT, code="requestId", message=f"{found.id} was bought before as something else")
        return found or expected(request)

    def resize(self, request: ResizeRequest) -> Reservation:
        call = self._wire.send if request.grows else self._wire.repeat
        try:
            ended = self._act(call, RESIZE, self._wire.reservations.resize_unary, writing.resize(request))
        except ProviderError as error:
            raise self._why_not_smaller(request, error) from error
        return self._after(RESIZE, request, ended)

    def set_end(self, request: EndRequest) -> Reservation:
        message = writing.set_end(request)
        ended = self._act(self._wire.repeat, UPDATE, self._wire.reservations.update_unary, message)
        return self._after(UPDATE, request, ended)

    def release(self, request: ReleaseRequest) -> Reservation:
        before = self._find(request)
        if before is None:
            return gone(request)
        if before.state is ReservationState.CANCELLING:
            return before
        try:
            message = writing.delete(request)
            ended = self._act(self._wire.repeat, DELETE, self._wire.reservations.delete_unary, message)
        except NotFound:
            return _given_back(before)
        except _MAYBE_IN_USE as error:
            return self._hindered(request, error)
        return _given_back(before, ended)

    def _act(self, call: Callable[..., Any], operation: str, method: Any, message: Any) -> compute_v1.Operation:
        """Call, and wait once for the operation. Raises what it failed with; returns it done, or still running."""
        raw = call(operation, method, message, message.request_id)
        if not raw.name:
            raise BrokenReply(operation, code="incomplete", message="the reply does not name an operation")
        if not _is_done(raw):
            raw = self._waited_for(message.project, message.zone, raw)
        if _is_done(raw) and (failure := failures.of_operation(operation, raw)):
            raise failure
        return raw

    def _waited_for(self, project: str, zone: str, raw: compute_v1.Operation) -> compute_v1.Operation:
        """The cloud holds this call until the operation is done, up to two minutes."""
        message = compute_v1.WaitZoneOperationRequest(project=project, zone=zone, operation=raw.name)
        try:
            return self._wire.repeat(_WAIT, self._wire.operations.wait, message, raw.name)
        except ProviderError as error:
            raise failures.unseen(error) from error

    def _bought_before(self, request: ReserveRequest, conflict: Conflict) -> Reservation:
        """The name is taken. If it bears our key, this very purchase was made before: it is the answer."""
        try:
            found = self._listing.reservation(request.place, name_of(request))
        except ProviderError as error:
            raise failures.unseen(error) from error
        if found is None:
            raise failures.unseen(conflict) from conflict
        if not _answers(request, found):
            raise conflict
        return found

    def _read_back(self, request: ReserveRequest) -> Reservation | None:
        """It is bought; that it cannot be read yet does not change that."""
        try:
            return self._listing.reservation(request.place, name_of(request))
        except ProviderError:
            return None

    def _after(self, operation: str, request: ResizeRequest | EndRequest, ended: compute_v1.Operation) -> Reservation:
        """The reservation as it was asked for. Raises Ambiguous where that cannot be seen (yet)."""
        if not _is_done(ended):
            raise Ambiguous(operation, code="running", message="the operation still runs", request_id=ended.name)
        try:
            found = self._find(request)
        except ProviderError as error:
            raise failures.unseen(error) from error
        if found is None or not is_as_asked(request, found):
            raise Ambiguous(operation, code="stale", message="done, and not visible yet", request_id=ended.name)
        return found

    def _find(self, request: ResizeRequest | EndRequest | ReleaseRequest) -> Reservation | None:
        return self._listing.reservation(request.place, name_in(request.reservation_id))

    def _why_not_smaller(self, request: ResizeRequest, error: ProviderError) -> ProviderError:
        """Which code refuses a count below what is in use is not documented: look at the use instead."""
        if request.grows or not isinstance(error, (Conflict, Unsupported)):
            return error
        try:
            found = self._find(request)
        except ProviderError:
            return error
        if found is None or found.associated <= request.to_count:
            return error
        message = f"{found.associated} instances use it: {error.message}"
        return Conflict(error.operation, code=error.code, message=message, request_id=error.request_id)

    def _hindered(self, request: ReleaseRequest, error: ProviderError) -> Reservation:
        """A targeted reservation in use is not deleted; by which code that is said is not documented either."""
        found = self._find(request)
        if found is None:
            return gone(request)
        if not found.associated:
            raise error
        note = f"{found.associated} instances use it, so it is not given back yet ({error.code}: {error.message})"
        held = msgspec.structs.replace(found, notes=(*found.notes, note))
        return msgspec.structs.replace(held, state=ReservationState.CANCELLING)


def expected(request: ReserveRequest) -> Reservation:
    """What was bought, as asked for, while it cannot be read."""
    return Reservation(
        id=reservation_id(request.place.zone, name_of(request)),
        place=request.place,
        machine_type=request.machine_type,
        count=request.count,
        state=ReservationState.PENDING,
        raw_state="",
        ends=request.end,
        usable_until=request.end,
        targeted=request.targeted,
        match=request.match,
        owner=_owner(request),
        tags=request.tags,
        notes=("accepted, and not visible yet",),
    )


def is_as_asked(request: ResizeRequest | EndRequest, found: Reservation) -> bool:
    if isinstance(request, ResizeRequest):
        return found.count == request.to_count
    return found.ends is not None and abs(found.ends - request.to_end) < _PRECISION


def _given_back(before: Reservation, ended: compute_v1.Operation | None = None) -> Reservation:
    """Gone, with the end of its bill where the operation states it; or on its way while the operation runs."""
    if ended is not None and not _is_done(ended):
        return msgspec.structs.replace(before, state=ReservationState.CANCELLING, raw_state="DELETING")
    until = reading.time_of(ended.end_time) if ended else None
    return msgspec.structs.replace(before, state=ReservationState.RELEASED, raw_state="", billed_until=until)


def _answers(request: ReserveRequest, found: Reservation) -> bool:
    """Whether it bears our key and is of the kind that was asked for; its count may have changed since."""
    return found.owner == _owner(request) and found.machine_type == request.machine_type


def _owner(request: ReserveRequest) -> Owner:
    return Owner(lineage=request.lineage, key=request.key)


def _is_done(raw: compute_v1.Operation) -> bool:
    """An unknown status is not done."""
    return bool(raw.status == compute_v1.Operation.Status.DONE)
