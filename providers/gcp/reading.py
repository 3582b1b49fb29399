"""From Compute Engine's messages to our words. Tolerant: whatever is missing or new never loses a reservation."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

from google.cloud import compute_v1

from broker.model.gpu import normalise
from broker.model.offer import Allowance, Offer, Shape, instances_left
from broker.model.place import Place, ProviderName, Scope
from broker.model.reservation import Reservation, ReservationState
from providers.base import Quota
from providers.gcp.naming import last, owner_of, reservation_id, tags_in
from providers.prices.shapes import shape_of

_STATES = {
    "CREATING": ReservationState.PENDING,
    "READY": ReservationState.ACTIVE,
    "UPDATING": ReservationState.ACTIVE,
    "DELETING": ReservationState.CANCELLING,
}
"""INVALID is left out on purpose: nothing says whether it is billed, so it counts as supply and is reported."""

_FUTURE_ONLY = ("a3-ultragpu-", "a4-", "a4x-")
"""Sold through future reservations only, not on demand: vendor's table of consumption options, early 2026."""

_METRICS = {
    "a100-40gb": "NVIDIA_A100_GPUS",
    "a100-80gb": "NVIDIA_A100_80GB_GPUS",
    "l4": "NVIDIA_L4_GPUS",
    "t4": "NVIDIA_T4_GPUS",
    "v100-16gb": "NVIDIA_V100_GPUS",
    "p100": "NVIDIA_P100_GPUS",
    "p4": "NVIDIA_P4_GPUS",
}
"""Regional on-demand quotas by GPU. There is none for H100 and later: those limits are not in this API."""

_ALL_REGIONS = "GPUS_ALL_REGIONS"
_AMBIGUOUS_GPUS = {"nvidia-tesla-a100": "a100-40gb", "nvidia-tesla-v100": "v100-16gb"}
_RETIRED = frozenset({"OBSOLETE", "DELETED"})


def reservation(place: Place, raw: compute_v1.Reservation) -> Reservation:
    """`count` is what is asked for and billed. `used` counts instances in it, `over` is always what exceeds it."""
    specific = raw.specific_reservation
    count, in_use = int(specific.count), int(specific.in_use_count)
    shape = _reserved_shape(specific.instance_properties)
    state = _STATES.get(raw.status, ReservationState.UNKNOWN)
    return Reservation(
        id=reservation_id(place.zone, raw.name),
        place=place,
        machine_type=last(specific.instance_properties.machine_type),
        count=count,
        state=state,
        raw_state=raw.status,
        gpu_model=shape.gpu_model if shape else None,
        gpus_per_instance=shape.gpus if shape else 0,
        assured=_assured(raw),
        used=min(in_use, count),
        over=max(in_use - count, 0),
        associated=in_use,
        billed_from=None if state is ReservationState.PENDING else time_of(raw.creation_timestamp),
        usable_until=time_of(raw.delete_at_time),
        ends=time_of(raw.delete_at_time),
        committed_count=count if raw.commitment or raw.linked_commitments else 0,
        targeted=raw.specific_reservation_required,
        match=_match(specific.instance_properties),
        owner=owner_of(raw.name, raw.description),
        tags=tags_in(raw.description),
        notes=tuple(_notes(raw)),
    )


def offer(place: Place, raw: compute_v1.MachineType, gpus_left: dict[str, int], *, end_settable: bool) -> Offer:
    """For a machine type with GPUs of its own; `gpus_left` is by quota metric."""
    accelerator = raw.accelerators[0]
    model = _model_of(raw.name, accelerator.guest_accelerator_type)
    shape = Shape(
        machine_type=raw.name,
        gpu_model=model or accelerator.guest_accelerator_type,
        gpus=_whole_gpus(raw),
        vcpus=raw.guest_cpus,
        memory_gib=Decimal(raw.memory_mb) / 1024,
    )
    allowances = _allowances(place.scope, shape, gpus_left)
    return Offer(
        place=place,
        shape=shape,
        quota_left=instances_left(allowances),
        allowances=allowances,
        end_settable=end_settable,
        excluded=_excluded(raw, shape, known=model is not None),
    )


def gpus_left(quotas: Iterable[compute_v1.Quota]) -> dict[str, int]:
    """How many more GPUs each quota allows, by metric."""
    return {quota.metric: max(int(quota.limit - quota.usage), 0) for quota in quotas}


def quotas(scope: Scope, raw: Iterable[compute_v1.Quota]) -> tuple[Quota, ...]:
    """Those of GPUs on demand and of reservations, the region's and the project's."""
    wanted = {*_METRICS.values(), _ALL_REGIONS, "RESERVATIONS"}
    return tuple(
        Quota(
            scope=scope,
            name=quota.metric,
            unit="reservations" if quota.metric == "RESERVATIONS" else "gpus",
            limit=int(quota.limit),
            used=int(quota.usage),
        )
        for quota in raw
        if quota.metric in wanted
    )


def _reserved_shape(properties: compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties) -> Shape | None:
    """A known machine type's own GPUs, else those that are attached to it."""
    machine_type = last(properties.machine_type)
    if shape := shape_of(ProviderName.GCP, machine_type):
        return shape
    for accelerator in properties.guest_accelerators:
        kind = last(accelerator.accelerator_type)
        return Shape(machine_type, _gpu(kind) or kind, accelerator.accelerator_count)
    return None


def _match(
    properties: compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties,
) -> tuple[tuple[str, str], ...]:
    """What an instance must have equal beside its machine type. GPUs that belong to the type are part of that."""
    pairs: list[tuple[str, str]] = []
    if not shape_of(ProviderName.GCP, last(properties.machine_type)):
        attached = sorted(f"{last(a.accelerator_type)}:{a.accelerator_count}" for a in properties.guest_accelerators)
        pairs += [("accelerators", ",".join(attached))] if attached else []
    disks = sorted(f"{disk.interface or 'SCSI'}:{disk.disk_size_gb}" for disk in properties.local_ssds)
    pairs += [("local-ssds", ",".join(disks))] if disks else []
    pairs += [("min-cpu-platform", properties.min_cpu_platform)] if properties.min_cpu_platform else []
    return tuple(sorted(pairs))


def _assured(raw: compute_v1.Reservation) -> int | None:
    """Instances that are there now where they are fewer than all; what is being made or changed may yet be whole."""
    specific = raw.specific_reservation
    if raw.status != "READY" or "assured_count" not in specific or specific.assured_count >= specific.count:
        return None
    return int(specific.assured_count)


def _notes(raw: compute_v1.Reservation) -> Iterator[str]:
    specific = raw.specific_reservation
    if not raw.specific_reservation_required:
        yield "any matching instance of the project may take it, because it is not specifically targeted"
    assured = _assured(raw)
    if assured is not None:
        yield f"only {assured} of {specific.count} are assured now: the rest is paid for and cannot be used"
    if raw.commitment or raw.linked_commitments:
        yield "attached to a commitment: it cannot be deleted by itself"
    if raw.share_settings.share_type not in ("", "LOCAL", "SHARE_TYPE_UNSPECIFIED"):
        yield f"shared beyond its project ({raw.share_settings.share_type})"
    if raw.status not in _STATES:
        yield f"state {raw.status or 'missing'} is not known to us: counted as supply"


def _model_of(machine_type: str, accelerator_type: str) -> str | None:
    known = shape_of(ProviderName.GCP, machine_type)
    return known.gpu_model if known else _gpu(accelerator_type)


def _gpu(accelerator_type: str) -> str | None:
    """Two of its names leave the memory size out."""
    return _AMBIGUOUS_GPUS.get(accelerator_type) or normalise(accelerator_type.replace("-mega", "").replace("-vws", ""))


def _whole_gpus(raw: compute_v1.MachineType) -> int:
    """0 for a machine type with a part of a GPU."""
    known = shape_of(ProviderName.GCP, raw.name)
    return known.gpus if known else sum(a.guest_accelerator_count for a in raw.accelerators)


def _excluded(raw: compute_v1.MachineType, shape: Shape, *, known: bool) -> str:
    if raw.name.startswith(_FUTURE_ONLY):
        return f"{raw.name} is sold through future reservations only, not on demand"
    if not known:
        return f"GPU {shape.gpu_model} of {raw.name} is not known to us"
    if shape.gpus == 0:
        return f"{raw.name} has a part of a GPU only"
    if raw.deprecated.state in _RETIRED:
        return f"{raw.name} is {raw.deprecated.state.lower()}"
    return ""


def _allowances(scope: Scope, shape: Shape, gpus_left: dict[str, int]) -> tuple[Allowance, ...]:
    """The GPU's own quota, which is the region's, and the project's, which all its regions share."""
    extents = ((str(scope), _METRICS.get(shape.gpu_model, "")), (f"{scope.provider}/{scope.account}", _ALL_REGIONS))
    return tuple(
        Allowance(f"{extent}/{metric}", gpus_left[metric], shape.gpus)
        for extent, metric in extents
        if metric in gpus_left and shape.gpus
    )


def time_of(text: str) -> datetime | None:
    """RFC 3339 with any offset, in UTC; None for an empty or unreadable text."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None
