"""STATIC and NAIVE under fixed capacity: jobs in one order or by length, blocking or skipping what does not fit."""

import heapq

import numpy as np

from broker.backtest.trace import Floats, Ints, Trace
from broker.sia.compiling import allocating, kernel, run
from broker.sia.heap import Heap, Node, heap_push, heap_remove


@allocating
@kernel
def fifo_starts(
    submit: list[float],
    duration: list[float],
    gpus: list[int],
    first: list[int],
    capacity: list[int],
    start: list[float],
) -> None:
    """Start of each job when group v, the jobs first[v]..first[v+1], has capacity[v] for itself and serves in order.

    A job larger than its capacity never starts (inf) and holds nobody up.
    """
    for v in range(len(capacity)):
        running = [(np.inf, 0)]
        free = capacity[v]
        now = -np.inf
        for j in range(first[v], first[v + 1]):
            if gpus[j] > capacity[v]:
                start[j] = np.inf
                continue
            now = max(now, submit[j])
            while running[0][0] <= now or free < gpus[j]:
                end, back = heapq.heappop(running)
                now = max(now, end)
                free += back
            start[j] = now
            free -= gpus[j]
            heapq.heappush(running, (now + duration[j], gpus[j]))


def static_starts(trace: Trace, entitlements: Ints, *, plain: bool = False) -> Floats:
    """Each tenant alone in its entitlement, FIFO; starts in the trace's order of jobs."""
    order = np.argsort(trace.tenant, kind="stable")
    first = np.searchsorted(trace.tenant[order], np.arange(len(entitlements) + 1))
    sorted_starts, starts = np.empty(len(trace)), np.empty(len(trace))
    columns = (trace.submit_s[order], trace.duration_s[order], trace.gpus[order], first, entitlements)
    run(fifo_starts, *columns, sorted_starts, plain=plain)
    starts[order] = sorted_starts
    return starts


def pooled_starts(trace: Trace, capacity: int, *, plain: bool = False) -> Floats:
    """One blocking FIFO queue over all capacity: naive sharing."""
    merged = Trace(
        tenants=("all",),
        users=trace.users,
        ids=trace.ids,
        tenant=np.zeros(len(trace), dtype=np.int64),
        user=trace.user,
        submit_s=trace.submit_s,
        duration_s=trace.duration_s,
        gpus=trace.gpus,
        wait_s=trace.wait_s,
    )
    return static_starts(merged, np.array([capacity], dtype=np.int64), plain=plain)


@kernel
def ranked_starts(
    submit: list[float],
    duration: list[float],
    gpus: list[int],
    rank: list[float],
    size: list[int],
    capacity: int,
    skip: bool,
    start: list[float],
    waiting: Heap,
    running: Heap,
    roots: list[int],
) -> None:
    """One pool, queue in order of (rank, index); with `skip` what does not fit is passed over, else it blocks.

    size[j] is the index of the job's class of equal GPUs; roots[k] is that class's queue.
    """
    n, free, ends, k = len(submit), capacity, -1, 0
    while k < n or ends != -1:
        now = min(submit[k] if k < n else np.inf, running[ends].first if ends != -1 else np.inf)
        while ends != -1 and running[ends].first <= now:
            free += gpus[ends]
            ends = heap_remove(running, ends, ends)
        while k < n and submit[k] <= now:
            if gpus[k] <= capacity:
                roots[size[k]] = heap_push(waiting, roots[size[k]], k, rank[k], float(k))
            k += 1
        best = pick_waiting(waiting, roots, gpus, free, skip)
        while best != -1:
            roots[size[best]] = heap_remove(waiting, roots[size[best]], best)
            start[best] = now
            free -= gpus[best]
            ends = heap_push(running, ends, best, now + duration[best], 0.0)
            best = pick_waiting(waiting, roots, gpus, free, skip)


@kernel
def pick_waiting(waiting: Heap, roots: list[int], gpus: list[int], free: int, skip: bool) -> int:
    """The next job to start, or -1."""
    best = -1
    for root in roots:
        if root == -1 or (skip and gpus[root] > free):
            continue
        if best == -1 or (waiting[root].first, root) < (waiting[best].first, best):
            best = root
    return best if best == -1 or gpus[best] <= free else -1


def queue_starts(trace: Trace, capacity: int, rank: Floats, *, skip: bool, plain: bool = False) -> Floats:
    """Starts on one pool of `capacity` GPUs; rank = submit for FIFO, duration for shortest first."""
    n = len(trace)
    sizes, size = np.unique(trace.gpus, return_inverse=True)
    columns = (trace.submit_s, trace.duration_s, trace.gpus, np.asarray(rank, dtype=np.float64), size.astype(np.int64))
    heaps = [[Node() for _ in range(n)] for _ in range(2)]
    roots = np.full(len(sizes), -1, dtype=np.int64)
    starts = np.full(n, np.inf)
    run(ranked_starts, *columns, capacity, skip, starts, *heaps, roots, plain=plain)
    return starts
