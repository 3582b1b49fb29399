"""STATIC and first-come-first-served sharing on nodes, with every duration known."""

import numpy as np

from broker.backtest.trace import Floats, Ints, Trace
from broker.errors import InputError
from broker.sia.columns import NEVER
from broker.sia.placement import checked_size, slots_of
from broker.sia.placement_static import Static, Waiting


def in_cells(trace: Trace, node_gpus: int) -> Trace:
    """The same jobs, each asking for the slots that its cell takes, so that all figures count what is occupied."""
    checked_size(node_gpus)
    taken = {int(gpus): slots_of(int(gpus), node_gpus) for gpus in np.unique(trace.gpus)}
    slots = np.array([taken[gpus] for gpus in trace.gpus.tolist()], dtype=np.int64)
    more = int(np.sum(slots > trace.gpus))
    notes = trace.notes.copy()
    if more:
        notes["take more slots than they ask for GPUs, to fill a cell"] += more
    kept = {name: getattr(trace, name) for name in trace.__slots__}
    return Trace(**{**kept, "gpus": slots, "notes": notes})


def in_nodes(entitlements: Ints, node_gpus: int) -> Ints:
    """Rounded up to whole nodes."""
    return np.asarray(-(-entitlements // node_gpus) * node_gpus, dtype=np.int64)


def whole_nodes(shares: dict[str, int], node_gpus: int) -> None:
    """Raises InputError for shares that are no whole nodes."""
    for tenant, gpus in shares.items():
        if gpus % node_gpus:
            raise InputError(
                f"{tenant} is promised {gpus} GPUs, which are no whole nodes of {node_gpus}",
                next_step=f"Promise multiples of {node_gpus}",
            )


def placed_static_starts(trace: Trace, entitlements: Ints, node_gpus: int, rest_s: float) -> Floats:
    """Each tenant alone on its nodes, FIFO. A job larger than its tenant's nodes never starts and holds nobody up.

    A cell that has rested for `rest_s` goes first, as in the schedule that the allocator replays.
    """
    starts = np.full(len(trace), np.inf)
    statics = [Static.new(node_gpus, int(share) // node_gpus, rest_s) for share in entitlements]
    columns = (trace.tenant.tolist(), trace.submit_s.tolist(), trace.duration_s.tolist(), trace.gpus.tolist())
    for j, (v, submit, duration, gpus) in enumerate(zip(*columns, strict=True)):
        slots = slots_of(gpus, node_gpus)
        if slots <= entitlements[v]:
            statics[v].queue[j] = Waiting(submit, slots, work=duration)
    for static in statics:
        start = static.advance(NEVER, NEVER)
        while start is not None:
            starts[start[0]] = start[1]
            start = static.advance(NEVER, NEVER)
    return starts


def placed_pooled_starts(trace: Trace, capacity: int, node_gpus: int) -> Floats:
    """One blocking FIFO queue over all nodes: naive sharing."""
    kept = {name: getattr(trace, name) for name in trace.__slots__}
    merged = Trace(**{**kept, "tenants": ("all",), "tenant": np.zeros(len(trace), dtype=np.int64)})
    return placed_static_starts(merged, np.array([capacity], dtype=np.int64), node_gpus, 0.0)
