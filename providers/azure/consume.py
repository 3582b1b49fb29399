"""What a VM must set to run on a reservation."""

from broker.model.reservation import Reservation
from providers.azure.names import Spot


def consumption(reservation: Reservation) -> tuple[tuple[str, str], ...]:
    """As pairs to print: the settings of the VM or the scale set, and the command line that sets them."""
    place, spot = reservation.place, Spot.from_id(reservation.id)
    group = (
        f"/subscriptions/{place.scope.account}/resourceGroups/{spot.resource_group}"
        f"/providers/Microsoft.Compute/capacityReservationGroups/{spot.group}"
    )
    zone = f" --zone {place.zone}" if place.zone else ""
    return (
        ("capacityReservation.capacityReservationGroup.id", group),
        ("size", reservation.machine_type),
        ("location", place.scope.region),
        ("zones", place.zone or "none: a VM that is pinned to a zone does not match"),
        *_window(reservation),
        ("not with", "spot priority, a dedicated host, an availability set, a proximity placement group, Ultra SSD"),
        (
            "az",
            "az vm create --resource-group GROUP --name NAME --image IMAGE"
            f" --subscription {place.scope.account} --location {place.scope.region}{zone}"
            f" --size {reservation.machine_type} --capacity-reservation-group {group}",
        ),
        (
            "verify",
            f"az capacity reservation show --subscription {place.scope.account} --resource-group {spot.resource_group}"
            f" --capacity-reservation-group {spot.group} --name {spot.name} --instance-view",
        ),
    )


def _window(reservation: Reservation) -> tuple[tuple[str, str], ...]:
    bounds = (("not before", reservation.usable_from), ("not after", reservation.usable_until))
    return tuple((name, at.isoformat()) for name, at in bounds if at is not None)
