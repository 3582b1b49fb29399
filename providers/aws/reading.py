"""From AWS's words to ours. Tolerant: a field that is missing or new never loses a reservation. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from broker.model.gpu import normalise
from broker.model.offer import Offer, Shape, instances_left
from broker.model.place import Place, ProviderName, Scope
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.aws.quotas import Left
from providers.base import BrokenReply
from providers.prices.shapes import shape_of

LINEAGE_TAG = "broker:lineage"
KEY_TAG = "broker:key"
_OWN_TAGS = (LINEAGE_TAG, KEY_TAG)
_BLOCK = "capacity-block"
_TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"
_REQUESTED_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
_BLOCK_RECLAIM = timedelta(minutes=30)
_ULTRASERVER_RECLAIM = timedelta(minutes=60)
_ULTRASERVERS = ("p6e-",)

STATES = {
    "pending": ReservationState.PENDING,
    "active": ReservationState.ACTIVE,
    "assessing": ReservationState.SCHEDULED,
    "scheduled": ReservationState.SCHEDULED,
    "delayed": ReservationState.SCHEDULED,
    "payment-pending": ReservationState.SCHEDULED,
    "cancelling": ReservationState.CANCELLING,
    "cancelled": ReservationState.RELEASED,
    "expired": ReservationState.EXPIRED,
    "failed": ReservationState.FAILED,
    "payment-failed": ReservationState.FAILED,
    "unsupported": ReservationState.FAILED,
}
"""`unavailable`, and any state that is new to us, is unknown: supply, never a reason to buy again."""


def reservation(
    operation: str, raw: Mapping[str, Any], scope: Scope, fallback: Reservation | None = None
) -> Reservation:
    """One CapacityReservation. What it lacks is taken from `fallback`. Raises BrokenReply without an id."""
    id = raw.get("CapacityReservationId")
    if not id:
        raise BrokenReply(operation, code="CapacityReservationId", message="a reservation without an id")
    state = STATES.get(str(raw.get("State", "")), ReservationState.UNKNOWN)
    tags = tags_of(raw)
    machine_type = str(raw.get("InstanceType") or (fallback.machine_type if fallback else ""))
    shape = shape_of(ProviderName.AWS, machine_type)
    count = _count(raw, tags, fallback)
    block = is_block(raw, tags)
    ends = _utc(raw.get("EndDate"))
    starts = _utc(raw.get("StartDate"))
    commitment = raw.get("CommitmentInfo", {})
    return Reservation(
        id=id,
        place=_place(raw, scope, fallback),
        machine_type=machine_type,
        count=count,
        state=state,
        raw_state=str(raw.get("State", "")),
        gpu_model=shape.gpu_model if shape else None,
        gpus_per_instance=shape.gpus if shape else 0,
        used=_used(raw, state, count),
        billed_from=starts,
        usable_from=starts if state is ReservationState.SCHEDULED else None,
        usable_until=_usable_until(machine_type, ends, block=block),
        ends=ends,
        committed_count=count if block else commitment.get("CommittedInstanceCount", 0),
        committed_until=ends if block else _utc(commitment.get("CommitmentEndDate")),
        targeted=_targeted(raw, fallback, block=block),
        interruptible=bool(raw.get("Interruptible", False)),
        match=match_of(raw) or (fallback.match if fallback else ()),
        owner=_owner(tags) or (fallback.owner if fallback else None),
        tags=tuple(sorted((key, value) for key, value in tags.items() if key not in _OWN_TAGS)),
        notes=_notes(raw, state, block=block),
    )


def tags_of(raw: Mapping[str, Any]) -> dict[str, str]:
    return {str(tag.get("Key", "")): str(tag.get("Value", "")) for tag in raw.get("Tags", ())}


def is_block(raw: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    """Whether it is a prepaid block; the field is missing on ordinary reservations, or everywhere."""
    return _BLOCK in (raw.get("ReservationType"), tags.get(_TYPE_TAG))


def match_of(raw: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What an instance must have equal to be able to consume it."""
    fields = (
        ("outpost", "OutpostArn"),
        ("placement_group", "PlacementGroupArn"),
        ("platform", "InstancePlatform"),
        ("tenancy", "Tenancy"),
    )
    return tuple((name, str(raw[field])) for name, field in fields if raw.get(field))


def _utc(at: datetime | None) -> datetime | None:
    """botocore reads times in this machine's zone."""
    return at.astimezone(UTC) if at else None


def _place(raw: Mapping[str, Any], scope: Scope, fallback: Reservation | None) -> Place:
    if not raw.get("AvailabilityZone") and fallback:
        return fallback.place
    return Place(scope, str(raw.get("AvailabilityZone", "")), raw.get("AvailabilityZoneId"))


def _count(raw: Mapping[str, Any], tags: Mapping[str, str], fallback: Reservation | None) -> int:
    """A scheduled block has a total of 0 until it starts; a tag then says how many it will have."""
    total = raw.get("TotalInstanceCount")
    requested = tags.get(_REQUESTED_TAG, "")
    if not total and requested.isdigit() and STATES.get(str(raw.get("State"))) is ReservationState.SCHEDULED:
        return int(requested)
    if total is None:
        return fallback.count if fallback else 0
    return int(total)


def _used(raw: Mapping[str, Any], state: ReservationState, count: int) -> int:
    """Where use is not stated it is taken for full, so that nothing is given back for it."""
    if state is not ReservationState.ACTIVE:
        return 0
    return max(count - int(raw.get("AvailableInstanceCount", 0)), 0)


def _usable_until(machine_type: str, ends: datetime | None, *, block: bool) -> datetime | None:
    if ends is None or not block:
        return ends
    return ends - (_ULTRASERVER_RECLAIM if machine_type.startswith(_ULTRASERVERS) else _BLOCK_RECLAIM)


def _targeted(raw: Mapping[str, Any], fallback: Reservation | None, *, block: bool) -> bool:
    criteria = raw.get("InstanceMatchCriteria")
    if criteria is None:
        return block or (fallback.targeted if fallback else True)
    return block or criteria == "targeted"


def _owner(tags: Mapping[str, str]) -> Owner | None:
    return Owner(tags[LINEAGE_TAG], tags.get(KEY_TAG, "")) if tags.get(LINEAGE_TAG) else None


def _notes(raw: Mapping[str, Any], state: ReservationState, *, block: bool) -> tuple[str, ...]:
    notes = []
    if block:
        notes.append("a prepaid block: it runs to its end and cannot be given back")
    if state is ReservationState.UNKNOWN:
        notes.append(f"AWS says {raw.get('State', 'nothing')!r}, which is not known here: counted as supply")
    if state is ReservationState.ACTIVE and "AvailableInstanceCount" not in raw:
        notes.append("AWS does not say how much of it is in use: taken for full")
    return tuple(notes)


# -- offers


def offers(
    places: Iterable[Place], sold: Mapping[str, set[str]], types: Iterable[Mapping[str, Any]], left: Left
) -> list[Offer]:
    """GPU instance types in the zones that sell them. `sold`: zone name -> types."""
    shapes = [(raw, shape) for raw in types if (shape := _shape(raw))]
    return [
        Offer(
            place=place,
            shape=shape,
            quota_left=instances_left(left.get(shape.machine_type, ())),
            allowances=left.get(shape.machine_type, ()),
            end_settable=True,
            excluded=_excluded(raw, shape),
        )
        for place in places
        for raw, shape in shapes
        if shape.machine_type in sold.get(place.zone, ())
    ]


def _shape(raw: Mapping[str, Any]) -> Shape | None:
    """From our own table, else from what AWS says; None without GPUs that we can name."""
    gpus = raw.get("GpuInfo", {}).get("Gpus", ())
    machine_type = str(raw.get("InstanceType", ""))
    if known := shape_of(ProviderName.AWS, machine_type):
        return known
    model = _model(gpus[0]) if gpus else None
    if model is None:
        return None
    return Shape(
        machine_type=machine_type,
        gpu_model=model,
        gpus=sum(int(gpu.get("Count", 0)) for gpu in gpus),
        vcpus=int(raw.get("VCpuInfo", {}).get("DefaultVCpus", 0)),
        memory_gib=Decimal(int(raw.get("MemoryInfo", {}).get("SizeInMiB", 0))) / 1024,
    )


def _model(gpu: Mapping[str, Any]) -> str | None:
    gb = round(int(gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)) / 1024)
    name = str(gpu.get("Name", ""))
    return normalise(f"{name} {gb}GB") or normalise(name)


def _excluded(raw: Mapping[str, Any], shape: Shape) -> str:
    if "on-demand" not in raw.get("SupportedUsageClasses", ("on-demand",)):
        return "not sold on demand"
    return "" if shape.gpus else "less than one whole GPU"
