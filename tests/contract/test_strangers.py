"""What others made, of every kind that a listing can hold: read in full, and never taken for ours."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.model.reservation import Reservation, ReservationState
from providers.sandbox import aws_reservations
from providers.sandbox.azure_reservations import Reservations as AzureReservations
from providers.sandbox.gcp_reservations import Reservations as GcpReservations
from tests.contract.cloud import Bench

Change = Callable[[dict[str, Any]], None]


def rendered(bench: Bench, monkeypatch: pytest.MonkeyPatch, change: Change) -> Reservation:
    """What somebody else bought, as the adapter reads it over the wire once the cloud says `change` of it."""
    id = bench.cloud.foreign(bench.sandbox)

    def changing(real: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        def render(*given: Any, **named: Any) -> dict[str, Any]:
            body = real(*given, **named)
            change(body)
            return body

        return render

    monkeypatch.setattr(aws_reservations, "render", changing(aws_reservations.render))
    monkeypatch.setattr(GcpReservations, "_rendered", changing(GcpReservations._rendered))
    monkeypatch.setattr(AzureReservations, "_body", changing(AzureReservations._body))
    found: Reservation = bench.listed()[id]
    return found


def aws(**fields: Any) -> Change:
    return lambda body: body.update(fields)


def gcp(**fields: Any) -> Change:
    return lambda body: body.update(fields)


def azure(**properties: Any) -> Change:
    return lambda body: body["properties"].update(properties)


def future(state: str) -> Change:
    """What only a future-dated one says, and says in its instance view."""
    return lambda body: body["properties"]["instanceView"].update(reservationStateInfo={"reservationState": state})


STATES: dict[str, list[tuple[Change, ReservationState]]] = {
    "aws": [
        (aws(State="scheduled", AvailableInstanceCount=0), ReservationState.SCHEDULED),
        (aws(State="assessing", AvailableInstanceCount=0, StartDate=None), ReservationState.SCHEDULED),
        (aws(State="delayed", AvailableInstanceCount=0), ReservationState.SCHEDULED),
        (aws(State="payment-pending", ReservationType="capacity-block"), ReservationState.SCHEDULED),
        (aws(State="pending"), ReservationState.PENDING),
        (aws(State="unsupported", TotalInstanceCount=0), ReservationState.FAILED),
        (aws(State="payment-failed", ReservationType="capacity-block"), ReservationState.FAILED),
        (aws(State="unavailable"), ReservationState.UNKNOWN),
        (aws(State="cancelling"), ReservationState.CANCELLING),
        (aws(ReservationType="capacity-block"), ReservationState.ACTIVE),
        (aws(OwnerId="999999999999"), ReservationState.ACTIVE),
    ],
    "gcp": [
        (gcp(status="CREATING"), ReservationState.PENDING),
        (gcp(status="DELETING"), ReservationState.CANCELLING),
        (gcp(status="INVALID"), ReservationState.UNKNOWN),
        (gcp(linkedCommitments=["projects/p/regions/us-central1/commitments/c"]), ReservationState.ACTIVE),
        (gcp(shareSettings={"shareType": "ORGANIZATION"}), ReservationState.ACTIVE),
        (gcp(deleteAtTime="2026-03-09T08:00:00Z", deploymentType="DENSE"), ReservationState.ACTIVE),
        (gcp(reservationSharingPolicy={"serviceShareType": "ALLOW_ALL"}), ReservationState.ACTIVE),
    ],
    "azure": [
        (future("Pending"), ReservationState.SCHEDULED),
        (future("Approved"), ReservationState.SCHEDULED),
        (future("Declined"), ReservationState.FAILED),
        (future("FulfillmentFailed"), ReservationState.FAILED),
        (azure(provisioningState="Deleting"), ReservationState.CANCELLING),
        (future("BrandNew"), ReservationState.UNKNOWN),
    ],
}
"""What each cloud can say of a reservation that another program, or its console, made."""


def test_no_kind_or_state_of_others_is_taken_for_ours_or_loses_the_listing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = bench.cloud.place.scope.provider.value
    for change, state in STATES[cloud]:
        with monkeypatch.context() as patch:
            bench.sandbox.market.state.holdings.clear()
            bench.sandbox.world.memory[bench.cloud.place.scope.provider].clear()
            found = rendered(bench, patch, change)
        assert (found.owner, found.state) == (None, state), found
