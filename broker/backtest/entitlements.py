"""How much each tenant is promised, where the trace does not say: two rules, both from the demand itself."""

import numpy as np

from broker.backtest.trace import Floats, Ints, Trace


def from_concurrency(trace: Trace, quantile: float) -> Ints:
    """E_v: the time-weighted quantile of v's concurrent GPUs if each job started on submit, at least its largest job.

    The span of a tenant is from its first submit to its last end.
    """
    return np.array([_tenant_quantile(trace, v, quantile) for v in range(len(trace.tenants))], dtype=np.int64)


def _tenant_quantile(trace: Trace, tenant: int, quantile: float) -> int:
    mine = trace.tenant == tenant
    if not mine.any():
        return 0
    submit, end, gpus = trace.submit_s[mine], (trace.submit_s + trace.duration_s)[mine], trace.gpus[mine]
    level, length = concurrency(submit, end, gpus)
    by_level = np.argsort(level, kind="stable")
    reached = np.cumsum(length[by_level])
    index = int(np.searchsorted(reached, quantile * reached[-1], side="left"))
    return int(max(gpus.max(), level[by_level][min(index, len(level) - 1)]))


def concurrency(start: Floats, end: Floats, gpus: Ints) -> tuple[Ints, Floats]:
    """GPUs in use, and for how long, over the pieces of time between two changes."""
    times = np.concatenate([start, end])
    change = np.concatenate([gpus, -gpus])
    order = np.argsort(times, kind="stable")
    level = np.cumsum(change[order])[:-1]
    return level.astype(np.int64), np.diff(times[order])


def from_offered_load(trace: Trace, first_s: float, last_s: float, use: float = 0.8, step: int = 8) -> Ints:
    """E_v: the smallest multiple of `step` that holds v's largest job and its load in the window at `use`."""
    clipped = np.minimum(trace.submit_s + trace.duration_s, last_s) - trace.submit_s
    entitlements = []
    for v in range(len(trace.tenants)):
        mine = trace.tenant == v
        load = float(np.sum(clipped[mine] * trace.gpus[mine])) / ((last_s - first_s) * use)
        largest = int(trace.gpus[mine].max()) if mine.any() else 0
        entitlements.append(int(np.ceil(max(largest, load) / step - 1e-12)) * step)
    return np.array(entitlements, dtype=np.int64)
