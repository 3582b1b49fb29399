"""What a job's instance must set to land in a reservation. Pure: no call, and no SDK."""

import json
from collections.abc import Iterator

from broker.model.reservation import Reservation
from providers.gcp.naming import items, name_in

_KEY = "compute.googleapis.com/reservation-name"


def consumption(reservation: Reservation) -> tuple[tuple[str, str], ...]:
    """The last pair is how to see that it worked: the count in use must have grown."""
    name, project, zone = name_in(reservation.id), reservation.place.scope.account, reservation.place.zone
    where = f"--project={project} --zone={zone}"
    return (
        ("reservation", name),
        ("project", project),
        ("zone", zone),
        ("machineType", reservation.machine_type),
        *reservation.match,
        ("resourcePolicies", "none: no placement policy"),
        ("provisioningModel", "STANDARD (a Spot instance does not consume a reservation)"),
        ("reservationAffinity", json.dumps(_affinity(reservation, name))),
        (
            "gcloud",
            " ".join(
                [
                    f"gcloud compute instances create NAME {where} --machine-type={reservation.machine_type}",
                    "--maintenance-policy=TERMINATE",  # without it, nothing with a GPU is created
                    *_matching(dict(reservation.match)),
                    _flags(reservation, name),
                ]
            ),
        ),
        (
            "verify",
            f"gcloud compute reservations describe {name} {where} --format='value(specificReservation.inUseCount)'",
        ),
    )


def _affinity(reservation: Reservation, name: str) -> dict[str, object]:
    if not reservation.targeted:
        return {"consumeReservationType": "ANY_RESERVATION"}
    return {"consumeReservationType": "SPECIFIC_RESERVATION", "key": _KEY, "values": [name]}


def _matching(match: dict[str, str]) -> Iterator[str]:
    """What an instance must have beside its machine type, as flags: where one is missing it lands outside."""
    for text in items(match.get("accelerators", "")):
        kind, _, count = text.partition(":")
        yield f"--accelerator=type={kind},count={count or 1}"
    for text in items(match.get("local-ssds", "")):
        interface, _, size_gb = text.partition(":")
        yield f"--local-ssd=interface={interface},size={size_gb or 375}GB"
    if platform := match.get("min-cpu-platform"):
        yield f"--min-cpu-platform='{platform}'"


def _flags(reservation: Reservation, name: str) -> str:
    if not reservation.targeted:
        return "--reservation-affinity=any"
    return f"--reservation-affinity=specific --reservation={name}"
