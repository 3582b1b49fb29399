"""What the account may still buy: limits from Service Quotas, use from what runs and what is reserved."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.model.offer import Allowance
from broker.model.place import ProviderName, Scope
from broker.model.reservation import Reservation
from providers.aws.wire import Wire
from providers.base import NotFound, Quota
from providers.prices.shapes import shape_of

FAMILIES = {"L-417A185B": "p", "L-DB2E81BA": "g"}
"""Quota code -> first letter of the instance types that count against it, in vCPUs."""

_RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
_TYPES = {"Name": "instance-type", "Values": ["g*", "p*"]}


class Quotas:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def read(self, scope: Scope, reservations: Iterable[Reservation], vcpus: Mapping[str, int]) -> tuple[Quota, ...]:
        """On-demand reservations count against these quotas, used or not; prepaid blocks do not.

        `vcpus` adds to our own table of instance types. A type in neither makes the use of its family unknown.
        """
        used = _used([*_reserved(reservations), *self._outside(scope)], vcpus)
        return tuple(
            Quota(scope=scope, name=code, unit="vcpus", limit=self._limit(scope, code), used=used[family])
            for code, family in FAMILIES.items()
        )

    def _limit(self, scope: Scope, code: str) -> int | None:
        """None where Service Quotas has no such quota in the region."""
        try:
            reply = self._wire.repeat(scope, "GetServiceQuota", "service-quotas", ServiceCode="ec2", QuotaCode=code)
        except NotFound:
            return None
        value = reply.get("Quota", {}).get("Value")
        return None if value is None else int(value)

    def _outside(self, scope: Scope) -> list[tuple[str, int]]:
        """Running instances that no reservation holds."""
        pages = self._wire.pages(scope, "DescribeInstances", Filters=[*_RUNNING, _TYPES])
        rows = (i for page in pages for r in page.get("Reservations", ()) for i in r.get("Instances", ()))
        return [(str(i.get("InstanceType", "")), 1) for i in rows if not _inside(i)]


Left = Mapping[str, tuple[Allowance, ...]]
"""By instance type."""


def left(quotas: Iterable[Quota], vcpus: Mapping[str, int]) -> Left:
    """What the quotas still allow, shared by all types of a family; a type whose quota is not known is left out."""
    free = {
        FAMILIES[quota.name]: (f"{quota.scope}/{quota.name}", max(quota.limit - quota.used, 0))
        for quota in quotas
        if quota.limit is not None and quota.used is not None
    }
    return {name: (Allowance(*free[name[0]], count),) for name, count in vcpus.items() if name[:1] in free and count}


def _inside(instance: Mapping[str, Any]) -> bool:
    return bool(instance.get("CapacityReservationId"))


def _reserved(reservations: Iterable[Reservation]) -> list[tuple[str, int]]:
    held = (r for r in reservations if not r.state.gone and not r.committed_until)
    return [(reservation.machine_type, reservation.count) for reservation in held]


def _used(held: Iterable[tuple[str, int]], vcpus: Mapping[str, int]) -> dict[str, int | None]:
    used: dict[str, int | None] = dict.fromkeys(FAMILIES.values(), 0)
    for machine_type, count in held:
        family, size, before = machine_type[:1], _vcpus(machine_type, vcpus), used.get(machine_type[:1])
        if family in used and before is not None:
            used[family] = before + size * count if size else None
    return used


def _vcpus(machine_type: str, vcpus: Mapping[str, int]) -> int:
    shape = shape_of(ProviderName.AWS, machine_type)
    return vcpus.get(machine_type, 0) or (shape.vcpus if shape else 0)
