"""What may be reserved where: read from the subscription's own SKU list, never assumed."""

from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal, InvalidOperation

from broker.model.gpu import satisfies
from broker.model.offer import Allowance, Offer, Shape, instances_left
from broker.model.place import Place, ProviderName, Scope
from providers.azure.calls import Calls
from providers.azure.names import region_of
from providers.azure.quotas import REGIONAL, quotas
from providers.azure.wire import LocationInfo, Restriction, SkuBody, parsed
from providers.base import Denied, Quota
from providers.prices.shapes import shape_of

SKUS = "resourceSkus.list"
SUPPORTED = "CapacityReservationSupported"
TYPES = "SupportedCapacityReservationTypes"
TARGETED = "targeted"


def offers(calls: Calls, scope: Scope, gpu_models: Collection[str]) -> tuple[Offer, ...]:
    """One for each GPU size and zone, and one without a zone; those that cannot be reserved say why not."""
    where = f"location eq '{scope.region}'"
    raw = calls.listed(SKUS, lambda client, options: client.resource_skus.list(filter=where, **options))
    skus = (parsed(SKUS, body, SkuBody) for body in raw)
    sizes = [(sku, shape) for sku in skus if (shape := _shape(sku)) and _wanted(shape, gpu_models)]
    left = _left(calls, scope) if sizes else {}
    return tuple(offer for sku, shape in sizes for offer in _of_size(sku, shape, scope, left))


def _of_size(sku: SkuBody, shape: Shape, scope: Scope, left: dict[str, int]) -> Iterator[Offer]:
    infos = [info for info in sku.location_info or () if region_of(info.location) == scope.region]
    allowances = _allowances(sku, shape, scope, left)
    for zone in _zones(infos):
        yield Offer(
            place=Place(scope, zone),
            shape=shape,
            quota_left=instances_left(allowances),
            allowances=allowances,
            end_settable=False,
            excluded=_excluded(sku, scope, zone),
        )


def _zones(infos: Iterable[LocationInfo]) -> tuple[str, ...]:
    """Zone numbers are this subscription's own. "" is the region as a whole, where the size is sold at all."""
    return ("", *sorted({zone for info in infos for zone in info.zones or ()}))


def _excluded(sku: SkuBody, scope: Scope, zone: str) -> str:
    """The rule by which it cannot be reserved there, "" if it can."""
    for restriction in sku.restrictions or ():
        if _restricts(restriction, scope, zone):
            where = f"zone {zone}" if zone else scope.region
            return f"Azure does not offer {sku.name} in {where}: {restriction.reason_code or restriction.type}"
    supported = _capability(sku, SUPPORTED)
    if supported.lower() != "true":
        return f"Azure does not let {sku.name} be reserved: its SKU says {SUPPORTED} {supported or 'nothing'}"
    types = _capability(sku, TYPES)
    if types and TARGETED not in types.lower():
        return f"Azure lets {sku.name} be reserved only as {types}"
    return ""


def _restricts(restriction: Restriction, scope: Scope, zone: str) -> bool:
    info = restriction.restriction_info
    kind = (restriction.type or "").lower()
    if kind == "location":
        places = info.locations if info else None
        return not places or any(region_of(place) == scope.region for place in places)
    return kind == "zone" and zone != "" and zone in ((info.zones if info else None) or ())


def _shape(sku: SkuBody) -> Shape | None:
    """What the SKU list says of the size; the GPU's model is not in it and comes from our own table."""
    if (sku.resource_type or "").lower() != "virtualmachines":
        return None
    known = shape_of(ProviderName.AZURE, sku.name)
    gpus = _number(_capability(sku, "GPUs"))
    if known is None or not gpus:
        return None
    return Shape(
        machine_type=sku.name,
        gpu_model=known.gpu_model,
        gpus=int(gpus) if known.gpus else 0,
        vcpus=int(_number(_capability(sku, "vCPUs")) or known.vcpus),
        memory_gib=_number(_capability(sku, "MemoryGB")) or known.memory_gib,
    )


def _wanted(shape: Shape, gpu_models: Collection[str]) -> bool:
    return not gpu_models or any(satisfies(wanted, shape.gpu_model) for wanted in gpu_models)


def _capability(sku: SkuBody, name: str) -> str:
    return next((c.value for c in sku.capabilities or () if c.name.lower() == name.lower()), "")


def _number(text: str) -> Decimal:
    try:
        return Decimal(text or "0")
    except InvalidOperation:
        return Decimal(0)


def _left(calls: Calls, scope: Scope) -> dict[str, int]:
    """vCPUs left by quota, names in lower case; nothing is known without the permission to read them."""
    try:
        return {quota.name.lower(): left for quota in quotas(calls, scope) if (left := _unused(quota)) is not None}
    except Denied:
        return {}


def _unused(quota: Quota) -> int | None:
    return None if quota.limit is None or quota.used is None else max(quota.limit - quota.used, 0)


def _allowances(sku: SkuBody, shape: Shape, scope: Scope, left: dict[str, int]) -> tuple[Allowance, ...]:
    """The family's quota, which its sizes share, and the region's, which all families do."""
    names = ((sku.family or "").lower(), REGIONAL)
    return tuple(
        Allowance(f"{scope}/{name}", left[name], shape.vcpus) for name in names if name in left and shape.vcpus
    )
