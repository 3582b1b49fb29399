"""vCPU quotas of a region: each VM family's, and the region's own."""

from broker.model.place import Scope
from providers.azure.calls import Calls
from providers.azure.wire import UsageBody, parsed
from providers.base import Quota

USAGES = "usage.list"
REGIONAL = "cores"
"""The quota that every family counts against too."""


def quotas(calls: Calls, scope: Scope) -> tuple[Quota, ...]:
    """Those that are counted in vCPUs."""
    raw = calls.listed(USAGES, lambda client, options: client.usage.list(scope.region, **options))
    usages = (parsed(USAGES, body, UsageBody) for body in raw)
    return tuple(
        Quota(scope=scope, name=usage.name.value, unit="vcpus", limit=usage.limit, used=usage.current_value)
        for usage in usages
        if usage.name.value.lower() == REGIONAL or usage.name.value.lower().endswith("family")
    )
