"""From our requests to Compute Engine's messages."""

from datetime import UTC, datetime
from typing import Any

from google.cloud import compute_v1

from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from providers.base import Unsupported
from providers.gcp.naming import describe, items, name_in, name_of, request_id_of


def insert(request: ReserveRequest) -> compute_v1.InsertReservationRequest:
    """Raises Unsupported for a `match` that cannot be read."""
    try:
        return _insert(request)
    except ValueError as error:
        message = f"match {dict(request.match)}: {error}"
        raise Unsupported("reservations.insert", code="match", message=message) from error


def resize(request: ResizeRequest) -> compute_v1.ResizeReservationRequest:
    return compute_v1.ResizeReservationRequest(
        **_target(request),
        request_id=request_id_of(request),
        reservations_resize_request_resource=compute_v1.ReservationsResizeRequest(specific_sku_count=request.to_count),
    )


def set_end(request: EndRequest) -> compute_v1.UpdateReservationRequest:
    """`paths` names the one field that changes, as the vendor's own tool does it (beta)."""
    return compute_v1.UpdateReservationRequest(
        **_target(request),
        paths="deleteAtTime",
        reservation_resource=compute_v1.Reservation(
            name=name_in(request.reservation_id), delete_at_time=timestamp(request.to_end)
        ),
    )


def delete(request: ReleaseRequest) -> compute_v1.DeleteReservationRequest:
    """Without `requestId`: after a refusal the same release is asked for again, and must not be taken for a repeat."""
    return compute_v1.DeleteReservationRequest(**_target(request))


def timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _insert(request: ReserveRequest) -> compute_v1.InsertReservationRequest:
    return compute_v1.InsertReservationRequest(
        project=request.place.scope.account,
        zone=request.place.zone,
        request_id=request_id_of(request),
        reservation_resource=compute_v1.Reservation(
            name=name_of(request),
            description=describe(request.lineage, request.key, request.tags),
            specific_reservation_required=request.targeted,
            specific_reservation=compute_v1.AllocationSpecificSKUReservation(
                count=request.count, instance_properties=_properties(request)
            ),
            delete_at_time=timestamp(request.end) if request.end else None,
        ),
    )


def _target(request: ResizeRequest | EndRequest | ReleaseRequest) -> dict[str, Any]:
    return {
        "project": request.place.scope.account,
        "zone": request.place.zone,
        "reservation": name_in(request.reservation_id),
    }


def _properties(request: ReserveRequest) -> Any:
    """A machine type with GPUs of its own says all; what is attached beside it comes from `match`."""
    match = dict(request.match)
    return compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
        machine_type=request.machine_type,
        guest_accelerators=[_accelerator(text) for text in items(match.get("accelerators", ""))],
        local_ssds=[_disk(text) for text in items(match.get("local-ssds", ""))],
        min_cpu_platform=match.get("min-cpu-platform"),
    )


def _accelerator(text: str) -> compute_v1.AcceleratorConfig:
    kind, _, count = text.partition(":")
    return compute_v1.AcceleratorConfig(accelerator_type=kind, accelerator_count=int(count or 1))


def _disk(text: str) -> Any:
    interface, _, size_gb = text.partition(":")
    return compute_v1.AllocationSpecificSKUAllocationAllocatedInstancePropertiesReservedDisk(
        interface=interface, disk_size_gb=int(size_gb or 375)
    )
