"""STATIC with EASY backfill: the head of a tenant's queue has a reservation, and later jobs may pass it in the gaps.

Source: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995. A job may start before the head if it fits now and either
is predicted to end before the head can start, or uses only slots that the head will leave free.
"""

import numpy as np

from broker.backtest.trace import Floats, Ints, Trace
from broker.sia.compiling import kernel, run


@kernel
def easy_starts(
    submit: list[float],
    duration: list[float],
    predicted: list[float],
    gpus: list[int],
    first: list[int],
    capacity: list[int],
    start: list[float],
    after: list[int],
    running: list[int],
) -> None:
    """Starts of the jobs first[v]..first[v+1] of each group v, which has capacity[v] for itself.

    after[j] links the queue, running[0..count) holds the running jobs by their true end. A job larger than its
    capacity never starts (inf) and holds nobody up.
    """
    for v in range(len(capacity)):
        free, count, head, tail, k = capacity[v], 0, -1, -1, first[v]
        while k < first[v + 1] or count > 0:
            now = min(submit[k] if k < first[v + 1] else np.inf, true_end(start, duration, running, count))
            while count > 0 and true_end(start, duration, running, count) <= now:
                count -= 1
                free += gpus[running[count]]
            while k < first[v + 1] and submit[k] <= now:
                after[k] = -1
                if gpus[k] > capacity[v]:
                    start[k] = np.inf
                elif head == -1:
                    head = tail = k
                else:
                    after[tail] = k
                    tail = k
                k += 1
            while head != -1 and gpus[head] <= free:
                start[head] = now
                free -= gpus[head]
                count = insert(start, duration, running, count, head)
                head = after[head]
            if head != -1 and free > 0:
                free, count, tail = backfill(
                    duration, predicted, gpus, start, after, running, count, head, tail, free, now
                )


@kernel
def true_end(start: list[float], duration: list[float], running: list[int], count: int) -> float:
    """When the next job ends; the last in `running` ends first."""
    return start[running[count - 1]] + duration[running[count - 1]] if count > 0 else np.inf


@kernel
def insert(start: list[float], duration: list[float], running: list[int], count: int, j: int) -> int:
    """Among the running jobs, by true end, latest first."""
    end, i = start[j] + duration[j], count
    while i > 0 and start[running[i - 1]] + duration[running[i - 1]] < end:
        running[i] = running[i - 1]
        i -= 1
    running[i] = j
    return count + 1


@kernel
def backfill(
    duration: list[float],
    predicted: list[float],
    gpus: list[int],
    start: list[float],
    after: list[int],
    running: list[int],
    count: int,
    head: int,
    tail: int,
    free: int,
    now: float,
) -> tuple[int, int, int]:
    """Start what may pass the head; what is free, how many run and who is last in the queue then."""
    head_at, extra = reservation(predicted, gpus, start, running, count, gpus[head] - free, now)
    before, j = head, after[head]
    while j != -1 and free > 0:
        following = after[j]
        ends_before = now + predicted[j] <= head_at
        if gpus[j] <= free and (ends_before or gpus[j] <= extra):
            start[j] = now
            free -= gpus[j]
            if not ends_before:
                extra -= gpus[j]
            count = insert(start, duration, running, count, j)
            after[before] = following
            if j == tail:
                tail = before
        else:
            before = j
        j = following
    return free, count, tail


@kernel
def reservation(
    predicted: list[float],
    gpus: list[int],
    start: list[float],
    running: list[int],
    count: int,
    missing: int,
    now: float,
) -> tuple[float, int]:
    """When `missing` slots are predicted to have come free, and how many more are free then.

    A job that has outlived its prediction is expected to end now.
    """
    at, found = now, 0
    while found < missing:
        following = np.inf
        for i in range(count):
            end = max(now, start[running[i]] + predicted[running[i]])
            if end < following and (end > at or (found == 0 and end == at)):
                following = end
        if following == np.inf:
            return np.inf, 0
        for i in range(count):
            if max(now, start[running[i]] + predicted[running[i]]) == following:
                found += gpus[running[i]]
        at = following
    return at, found - missing


def static_easy_starts(trace: Trace, entitlements: Ints, predicted: Floats, *, plain: bool = False) -> Floats:
    """Each tenant alone in its entitlement with EASY backfill by `predicted` durations, in the trace's order."""
    order = np.argsort(trace.tenant, kind="stable")
    first = np.searchsorted(trace.tenant[order], np.arange(len(entitlements) + 1))
    found, starts = np.full(len(trace), np.inf), np.empty(len(trace))
    links, running = (np.full(len(trace), -1, dtype=np.int64) for _ in range(2))
    columns = (trace.submit_s[order], trace.duration_s[order], np.asarray(predicted, dtype=np.float64)[order])
    run(easy_starts, *columns, trace.gpus[order], first, entitlements, found, links, running, plain=plain)
    starts[order] = found
    return starts
