"""The GPUs of a pod template: how many, of which model, and what is only a part of one."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any

import msgspec

from broker.model.gpu import normalise
from broker.queues.parsed import Unfit
from providers.prices.shapes import shapes

WHOLE = frozenset({"nvidia.com/gpu", "amd.com/gpu", "nvidia.com/pgpu", "gpu.intel.com/xe", "gpu.intel.com/i915"})
_PART = re.compile(
    r"nvidia\.com/(mig-.+|.+\.shared|gpumem.*|gpucores)|volcano\.sh/(vgpu-.+|gpu-memory|gpu-number)|"
    r"aliyun\.com/gpu-.+|amd\.com/(cpx|dpx|qpx)_.+|tencent\.com/vcuda-.+"
)
MODEL_LABELS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name",
    "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "accelerator",
)  # fmt: skip
TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_UNITS: dict[str, Decimal | int] = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": Decimal("0.001"),
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9.]+(?:[eE][0-9]{1,3})?)(k|M|G|Ki|Mi|Gi|m)?")
_MOST = 10**6


class PodGpus(msgspec.Struct, frozen=True):
    """Of one pod: whole GPUs, pieces of GPUs, and whether it claims devices that are described elsewhere (DRA)."""

    count: int
    parts: int = 0
    claims: tuple[str, ...] = ()


def quantity(written: Any) -> int:
    """A whole number of things, as Kubernetes writes amounts ("8", 8, "1k"). Raises Unfit."""
    match = None if isinstance(written, bool) else _QUANTITY.fullmatch(str(written).strip())
    try:
        amount = Decimal(match[1]) * _UNITS[match[2] or ""] if match else Decimal(-1)
    except InvalidOperation:
        amount = Decimal(-1)
    if not 0 <= amount <= _MOST or amount != amount.to_integral_value():
        raise Unfit("has an amount of GPUs that is no whole number", written)
    return int(amount)


def of_pod(spec: Mapping[str, Any]) -> PodGpus:
    """Containers run together; init containers one after the other, but for those that go on beside them (sidecars).

    Raises Unfit.
    """
    together = [of_resources(mapping(each).get("resources")) for each in items(spec, "containers")]
    counts, parts = sum(each.count for each in together), sum(each.parts for each in together)
    beside, peak = 0, 0
    for container in items(spec, "initContainers"):
        own = of_resources(mapping(container).get("resources"))
        parts += own.parts
        if mapping(container).get("restartPolicy") == "Always":
            beside += own.count
        else:
            peak = max(peak, own.count + beside)
    overall = of_resources(spec.get("resources"))
    claims = tuple(_claims(spec))
    return PodGpus(max(counts + beside, peak, overall.count), parts + overall.parts, claims)


def of_resources(resources: Any) -> PodGpus:
    """What a container (or one node of a trainer) asks for; of devices, requests and limits are the same."""
    asked = {**mapping(mapping(resources).get("limits")), **mapping(mapping(resources).get("requests"))}
    return of_amounts(asked)


def of_amounts(asked: Mapping[str, Any]) -> PodGpus:
    """By resource name."""
    whole = sum(quantity(amount) for name, amount in asked.items() if name in WHOLE)
    parts = sum(1 for name, amount in asked.items() if _PART.fullmatch(str(name)) and str(amount) not in ("0", ""))
    # a device plugin that shares GPUs asks for whole ones beside the memory of each that it wants
    return PodGpus(0 if parts else whole, parts)


def _claims(spec: Mapping[str, Any]) -> Iterator[str]:
    for claim in items(spec, "resourceClaims"):
        entry = mapping(claim)
        yield str(entry.get("resourceClaimTemplateName") or entry.get("resourceClaimName") or entry.get("name") or "")


def selector(spec: Mapping[str, Any]) -> dict[str, str]:
    """Node labels that a pod insists on. Alternatives of one label are joined by "|"."""
    found = {str(name): str(value) for name, value in mapping(spec.get("nodeSelector")).items()}
    required = mapping(
        mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    terms = items(required, "nodeSelectorTerms")
    for expression in items(mapping(terms[0]), "matchExpressions") if len(terms) == 1 else []:
        entry = mapping(expression)
        if entry.get("operator") == "In" and isinstance(entry.get("values"), list):
            found.setdefault(str(entry.get("key")), "|".join(sorted(str(value) for value in entry["values"])))
    return found


def model(labels: Mapping[str, str]) -> str | None:
    """The GPU model that node labels name; None: they name none. A name that is new to us stays as it is."""
    for label in MODEL_LABELS:
        if written := labels.get(label):
            return _joined({normalise(name) or name.lower() for name in written.split("|")})
    for label in TYPE_LABELS:
        if written := labels.get(label):
            return _joined({_of_type(name) for name in written.split("|")})
    return None


def _of_type(machine_type: str) -> str:
    return machine_models().get(machine_type.lower()) or machine_type.lower()


@cache
def machine_models() -> dict[str, str]:
    """GPU model by machine type, of every type that the price table's shapes know."""
    return {name.lower(): shape.gpu_model for (_, name), shape in shapes().items() if shape.gpu_model}


def _joined(models: set[str]) -> str:
    return "+".join(sorted(models))


def mapping(value: Any) -> Mapping[str, Any]:
    """What is no mapping where one should be counts as empty."""
    return value if isinstance(value, dict) else {}


def items(value: Any, name: str) -> list[Any]:
    found = mapping(value).get(name)
    return found if isinstance(found, list) else []
