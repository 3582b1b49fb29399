"""STATIC and NAIVE: compiled equals plain, and both equal a schedule that is read off the definition."""

import numpy as np
import pytest

from broker.backtest.entitlements import concurrency, from_concurrency
from broker.backtest.fifo import pooled_starts, queue_starts, static_starts
from broker.backtest.metrics import compare
from broker.backtest.trace import Trace
from tests.backtest.conftest import random_trace


def by_the_second(trace: Trace, capacity: int, *, shortest_first: bool, skip: bool) -> list[float]:
    """Slow on purpose: every second, the queue is sorted and walked."""
    starts = [np.inf] * len(trace)
    now, order = 0, range(len(trace))
    while any(np.isinf(starts)):
        free = capacity - sum(int(trace.gpus[j]) for j in order if starts[j] <= now < starts[j] + trace.duration_s[j])
        waiting = [j for j in order if np.isinf(starts[j]) and trace.submit_s[j] <= now]
        for j in sorted(waiting, key=lambda j: (trace.duration_s[j] if shortest_first else 0, j)):
            if trace.gpus[j] <= free:
                starts[j], free = now, free - int(trace.gpus[j])
            elif not skip:
                break
        now += 1
    return starts


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("shortest_first", [False, True])
def test_queue_is_what_its_definition_says(shortest_first: bool, skip: bool) -> None:
    trace = random_trace(3, jobs=60)
    rank = trace.duration_s if shortest_first else trace.submit_s
    expected = by_the_second(trace, 9, shortest_first=shortest_first, skip=skip)
    assert queue_starts(trace, 9, rank, skip=skip, plain=True).tolist() == expected
    assert queue_starts(trace, 9, rank, skip=skip).tolist() == expected


@pytest.mark.parametrize("seed", range(5))
def test_compiled_equals_plain(seed: int) -> None:
    trace = random_trace(seed)
    shares = np.array([8, 9, 12, 30])
    assert np.array_equal(static_starts(trace, shares), static_starts(trace, shares, plain=True))
    assert np.array_equal(pooled_starts(trace, 20), queue_starts(trace, 20, trace.submit_s, skip=False))
    for skip in (False, True):
        fast, slow = (queue_starts(trace, 20, trace.duration_s, skip=skip, plain=plain) for plain in (False, True))
        assert np.array_equal(fast, slow)


def test_a_job_larger_than_its_share_never_starts_and_holds_nobody_up() -> None:
    trace = random_trace(1, jobs=40, tenants=1)
    starts = static_starts(trace, np.array([4]))
    assert np.array_equal(np.isinf(starts), trace.gpus > 4)
    assert np.array_equal(starts, queue_starts(trace, 4, trace.submit_s, skip=False))
    assert compare(trace.submit_s, starts + trace.duration_s, starts + trace.duration_s).left_out == sum(trace.gpus > 4)


def test_entitlement_is_the_time_weighted_quantile_of_concurrency() -> None:
    trace = random_trace(2, jobs=50, tenants=1)
    level, length = concurrency(trace.submit_s, trace.submit_s + trace.duration_s, trace.gpus)
    assert np.isclose(np.sum(level * length), np.sum(trace.gpus * trace.duration_s))
    for quantile in (0.2, 0.5, 0.9, 1.0):
        share = from_concurrency(trace, quantile)[0]
        assert np.sum(length[level <= share]) >= quantile * np.sum(length) - 1e-9
        assert share == trace.gpus.max() or np.sum(length[level < share]) < quantile * np.sum(length)
