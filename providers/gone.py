"""What is left to say of a reservation that its cloud does not know any more."""

from broker.model.request import ReleaseRequest
from broker.model.reservation import Reservation, ReservationState


def gone(request: ReleaseRequest) -> Reservation:
    """As far as the request knows it: released, with nothing in it."""
    return Reservation(
        id=request.reservation_id,
        place=request.place,
        machine_type="",
        count=0,
        state=ReservationState.RELEASED,
        raw_state="",
        notes=(f"{request.place.scope.provider} does not know it any more",),
    )
