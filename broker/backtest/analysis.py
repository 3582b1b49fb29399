"""What static allocation promises, uses and leaves idle, per tenant and hour, and what of it could have been lent."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from broker.backtest.protocols import Case
from broker.backtest.trace import Floats, Trace

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUse:
    """GPU-hours from the first to the last submit. `lendable` is idle while jobs of others waited."""

    tenant: str
    entitlement: int
    promised: float
    used: float
    idle: float
    waited: float
    lendable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticUse:
    """`used` and `waiting` are mean GPUs, one row an hour, one column a tenant."""

    tenants: tuple[TenantUse, ...]
    used: Floats
    waiting: Floats

    @property
    def lendable_share(self) -> float:
        """Of all idle GPU-hours."""
        idle = sum(tenant.idle for tenant in self.tenants)
        return sum(tenant.lendable for tenant in self.tenants) / idle if idle else 0.0

    def figures(self) -> dict[str, Any]:
        """As they appear in JSON: GPU-hours by tenant, and by the hour mean GPUs in the order of the tenants."""
        return {
            "lendable_share_of_idle": self.lendable_share,
            "tenants": [asdict(tenant) for tenant in self.tenants],
            "hours": {"used": self.used.round(3).tolist(), "waiting": self.waiting.round(3).tolist()},
        }


def analyse(case: Case) -> StaticUse:
    """Under STATIC. In each hour, idle GPUs are lent to others' waiting jobs, each tenant's in proportion."""
    trace, entitlements = case.trace, case.entitlements
    start = case.static_end - trace.duration_s
    served = np.isfinite(start)
    end = np.where(served, start + trace.duration_s, trace.submit_s)
    first, last = float(trace.submit_s[0]), float(trace.submit_s[-1])
    hours = max(1, int(np.ceil((last - first) / HOUR_S)))
    used = _hourly(trace, np.where(served, start, trace.submit_s), end, first, hours)
    waiting = _hourly(trace, trace.submit_s, np.where(served, start, trace.submit_s), first, hours)
    idle = np.maximum(0.0, entitlements[None, :] - used)
    lendable = _lendable(idle, waiting)
    tenants = tuple(
        TenantUse(
            tenant=name,
            entitlement=int(entitlements[v]),
            promised=float(entitlements[v] * hours),
            used=float(used[:, v].sum()),
            idle=float(idle[:, v].sum()),
            waited=float(waiting[:, v].sum()),
            lendable=float(lendable[:, v].sum()),
        )
        for v, name in enumerate(trace.tenants)
    )
    return StaticUse(tenants=tenants, used=used, waiting=waiting)


def _lendable(idle: Floats, waiting: Floats) -> Floats:
    """A tenant's own waiting jobs cannot use its idle GPUs: they wait because they do not fit."""
    total = idle.sum(axis=1, keepdims=True)
    others = waiting.sum(axis=1, keepdims=True) - waiting
    share = np.divide(idle, total, out=np.zeros_like(idle), where=total > 0)
    return np.asarray(np.minimum(idle, others * share), dtype=np.float64)


def _hourly(trace: Trace, begin: Floats, end: Floats, first: float, hours: int) -> Floats:
    """Mean GPUs of the intervals [begin, end) in each hour, by tenant."""
    totals = np.zeros((hours + 1, len(trace.tenants)))
    for times, sign in ((begin, 1.0), (end, -1.0)):
        at = np.clip(times - first, 0.0, hours * HOUR_S)
        hour = np.minimum(at // HOUR_S, hours - 1).astype(np.int64)
        rest = (hour + 1) * HOUR_S - at
        np.add.at(totals, (hour, trace.tenant), sign * trace.gpus * rest / HOUR_S)
        np.add.at(totals, (hour + 1, trace.tenant), sign * trace.gpus * (1 - rest / HOUR_S))
    return np.asarray(np.cumsum(totals, axis=0)[:hours])
