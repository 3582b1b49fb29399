"""What other objects of the same reading say about jobs: device claims, flavors and priorities."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.queues.kube_gpus import PodGpus, items, mapping, of_pod, quantity
from broker.queues.parsed import Unfit

_WHOLE = frozenset({"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gpu.example.com"})


class Surroundings:
    """`flavors`: node labels by ResourceFlavor. `priorities`: value by class."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self.flavors: dict[str, Mapping[str, str]] = {}
        self.priorities: dict[str, int] = {}
        self._claims: dict[tuple[str, str], Mapping[str, Any]] = {}
        for document in documents:
            self._take(document)

    def _take(self, document: Mapping[str, Any]) -> None:
        meta, spec = mapping(document.get("metadata")), mapping(document.get("spec"))
        name = str(meta.get("name") or "")
        match str(document.get("kind")):
            case "ResourceFlavor":
                labels = mapping(spec.get("nodeLabels"))
                self.flavors[name] = {str(key): str(value) for key, value in labels.items()}
            case "PriorityClass" | "WorkloadPriorityClass" if type(document.get("value")) is int:
                self.priorities[name] = document["value"]
            case "ResourceClaimTemplate":
                self._claims[str(meta.get("namespace") or ""), name] = mapping(spec.get("spec"))
            case "ResourceClaim":
                self._claims[str(meta.get("namespace") or ""), name] = spec

    def gpus(self, pod: Mapping[str, Any], namespace: str) -> PodGpus:
        """Of one pod, with the devices of those claims that are described. Raises Unfit."""
        own = of_pod(pod)
        count, parts, unknown = own.count, own.parts, []
        for claim in own.claims:
            spec = self._claims.get((namespace, claim))
            if spec is None:
                unknown.append(claim)
                continue
            more = _devices(spec)
            count, parts = count + more.count, parts + more.parts
        return PodGpus(count, parts, tuple(unknown))


def _devices(spec: Mapping[str, Any]) -> PodGpus:
    """v1 and v1beta2 nest a request in `exactly`, older versions do not."""
    whole = parts = 0
    for each in items(spec.get("devices"), "requests"):
        request = mapping(each)
        exact = mapping(request.get("exactly")) or request
        name = str(exact.get("deviceClassName") or "")
        if name in _WHOLE and exact.get("allocationMode") == "All":
            raise Unfit("claims all GPUs of a node, whose number is not known", name)
        whole += quantity(exact.get("count", 1)) if name in _WHOLE else 0
        parts += "mig" in name
    return PodGpus(whole, parts)
