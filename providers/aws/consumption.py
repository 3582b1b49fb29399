"""What a job's instance must set to land in a reservation. Pure: no call, and no SDK."""

import json

from broker.model.reservation import Reservation


def consumption(reservation: Reservation) -> tuple[tuple[str, str], ...]:
    """The last pair is how to see that it worked: the available count must have fallen."""
    match = dict(reservation.match)
    region, zone = reservation.place.scope.region, reservation.place.zone
    specification = json.dumps(_specification(reservation))
    placement = ",".join(_placement(zone, match))
    group = match.get("placement_group")
    return (
        ("reservation", reservation.id),
        ("region", region),
        ("zone", zone + (f" ({reservation.place.zone_id})" if reservation.place.zone_id else "")),
        ("instance type", reservation.machine_type),
        ("match", "targeted: only instances that name it" if reservation.targeted else "open: any matching instance"),
        ("platform", match.get("platform", "")),
        ("tenancy", match.get("tenancy", "default")),
        *((("placement group", group),) if group else (("placement group", "no placement group"),)),
        ("CapacityReservationSpecification", specification),
        (
            "aws",
            f"aws ec2 run-instances --region {region} --instance-type {reservation.machine_type} "
            f"--placement {placement}{_market(reservation)} --capacity-reservation-specification '{specification}' "
            "--image-id IMAGE",
        ),
        (
            "verify",
            f"aws ec2 describe-capacity-reservations --region {region} --capacity-reservation-ids {reservation.id} "
            "--query 'CapacityReservations[0].AvailableInstanceCount'",
        ),
    )


def _specification(reservation: Reservation) -> dict[str, object]:
    if reservation.targeted:
        return {"CapacityReservationTarget": {"CapacityReservationId": reservation.id}}
    return {"CapacityReservationPreference": "open"}


def _placement(zone: str, match: dict[str, str]) -> list[str]:
    group = match.get("placement_group")
    named = [f"AvailabilityZone={zone}", f"Tenancy={match.get('tenancy', 'default')}"]
    return [*named, f"GroupName={group.rpartition('/')[2]}"] if group else named


def _market(reservation: Reservation) -> str:
    block = reservation.committed_until is not None and reservation.committed_until == reservation.ends
    return " --instance-market-options MarketType=capacity-block" if block else ""
