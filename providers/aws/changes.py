"""What changes something: each purchase is one request, sent once; the rest is safe to repeat."""

from typing import Any

import msgspec

from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.aws import failures, reading
from providers.aws.listing import Listing
from providers.aws.wire import Wire
from providers.base import BrokenReply, Conflict, NotFound, ProviderError, Unsupported
from providers.gone import gone

CREATE = "CreateCapacityReservation"
MODIFY = "ModifyCapacityReservation"
CANCEL = "CancelCapacityReservation"


class Changes:
    def __init__(self, wire: Wire, listing: Listing) -> None:
        self._wire = wire
        self._listing = listing

    def reserve(self, request: ReserveRequest) -> Reservation:
        """Once, with the key as client token and as tag: AWS does not show the token again."""
        reply = self._wire.send(request.place.scope, CREATE, **_creation(request))
        raw = reply.get("CapacityReservation")
        if not isinstance(raw, dict):
            raise BrokenReply(CREATE, code="CapacityReservation", message="the reply has no reservation")
        return reading.reservation(CREATE, raw, request.place.scope, as_asked(request))

    def resize(self, request: ResizeRequest) -> Reservation:
        """Reads first, so that a count that somebody else has changed is not overwritten."""
        before = self._before(request)
        if before.count == request.to_count:
            return before
        if before.count != request.from_count:
            message = f"it holds {before.count} instances, not {request.from_count}"
            raise Conflict(MODIFY, code="count", message=message)
        if request.to_count < before.committed_count:
            raise Conflict(MODIFY, code="commitment", message=f"{before.committed_count} instances are committed")
        call = self._wire.send if request.grows else self._wire.repeat
        id, count = request.reservation_id, request.to_count
        _said_yes(MODIFY, call(request.place.scope, MODIFY, CapacityReservationId=id, InstanceCount=count))
        return msgspec.structs.replace(before, count=request.to_count)

    def set_end(self, request: EndRequest) -> Reservation:
        before = self._before(request)
        id, end = request.reservation_id, request.to_end
        reply = self._wire.repeat(
            request.place.scope, MODIFY, CapacityReservationId=id, EndDate=end, EndDateType="limited"
        )
        _said_yes(MODIFY, reply)
        return msgspec.structs.replace(before, ends=request.to_end, usable_until=request.to_end)

    def release(self, request: ReleaseRequest) -> Reservation:
        """One that AWS does not know (any more) is gone. The cancel is sent even if reads do not show it (yet)."""
        before = self._listing.reservation(request.place.scope, request.reservation_id)
        if before is not None and before.state.gone:
            return before
        if before is not None:
            _refuse_committed(before)
        return self._cancel(request, before or gone(request))

    def _cancel(self, request: ReleaseRequest, before: Reservation) -> Reservation:
        try:
            reply = self._wire.repeat(request.place.scope, CANCEL, CapacityReservationId=request.reservation_id)
            _said_yes(CANCEL, reply)
        except (NotFound, Conflict, Unsupported) as error:
            # There is no published code for cancelling what is gone already, so we look.
            return self._gone_after_all(request, error)
        return msgspec.structs.replace(before, state=ReservationState.RELEASED, raw_state="cancelled")

    def _gone_after_all(self, request: ReleaseRequest, error: ProviderError) -> Reservation:
        found = self._listing.reservation(request.place.scope, request.reservation_id)
        if found is None and isinstance(error, NotFound):
            return gone(request)
        if found is not None and found.state.gone:
            return found
        raise error

    def _before(self, request: ResizeRequest | EndRequest) -> Reservation:
        """As it is. What goes wrong here has changed nothing."""
        try:
            found = self._listing.reservation(request.place.scope, request.reservation_id)
        except ProviderError as error:
            raise failures.not_sent(error) from error
        if found is None:
            message = f"{request.reservation_id} is not in {request.place.scope}"
            raise NotFound(MODIFY, code="InvalidCapacityReservationId.NotFound", message=message)
        return found


def _creation(request: ReserveRequest) -> dict[str, Any]:
    match = dict(request.match)
    tags = dict(request.tags) | {reading.LINEAGE_TAG: request.lineage, reading.KEY_TAG: request.key}
    place = request.place
    zone = {"AvailabilityZone": place.zone} if place.zone else {"AvailabilityZoneId": place.zone_id}
    end = {"EndDateType": "limited", "EndDate": request.end} if request.end else {"EndDateType": "unlimited"}
    group = {"PlacementGroupArn": match["placement_group"]} if "placement_group" in match else {}
    return {
        "ClientToken": request.key,
        "InstanceType": request.machine_type,
        "InstancePlatform": match.get("platform", "Linux/UNIX"),
        "Tenancy": match.get("tenancy", "default"),
        "InstanceCount": request.count,
        "InstanceMatchCriteria": "targeted" if request.targeted else "open",
        "TagSpecifications": [
            {
                "ResourceType": "capacity-reservation",
                "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())],
            }
        ],
        **zone,
        **end,
        **group,
    }


def as_asked(request: ReserveRequest) -> Reservation:
    """What was bought, in so far as AWS said yes to exactly this."""
    return Reservation(
        id="",
        place=request.place,
        machine_type=request.machine_type,
        count=request.count,
        state=ReservationState.UNKNOWN,
        raw_state="",
        targeted=request.targeted,
        match=request.match,
        owner=Owner(request.lineage, request.key),
    )


def _said_yes(operation: str, reply: dict[str, Any]) -> None:
    if reply.get("Return") is not True:
        raise BrokenReply(operation, code="Return", message="the reply does not say that it was done")


def _refuse_committed(reservation: Reservation) -> None:
    """A prepaid block cannot be given back; a commitment is given back by a quote, which is for a person to accept."""
    if reservation.committed_until is not None and reservation.committed_count:
        message = f"committed until {reservation.committed_until.isoformat()}: it runs to its end"
        raise Unsupported(CANCEL, code="commitment", message=message)
