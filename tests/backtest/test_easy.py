"""STATIC with EASY backfill: compiled equals plain, and both equal the definition read off slowly."""

import numpy as np
import pytest

from broker.backtest.easy import static_easy_starts
from broker.backtest.fifo import static_starts
from broker.backtest.trace import Floats, Trace
from tests.backtest.conftest import random_trace


def by_the_definition(trace: Trace, capacity: int, predicted: Floats) -> list[float]:
    """At each submit and end, jobs in order; the first that does not fit gets the earliest time at which it will."""
    n, starts, now = len(trace), [np.inf] * len(trace), 0.0
    while any(np.isinf(starts)) and now < 1e5:
        if now not in {*trace.submit_s, *(starts + trace.duration_s)}:
            now += 1
            continue
        run = [j for j in range(n) if starts[j] <= now < starts[j] + trace.duration_s[j]]
        free = capacity - sum(int(trace.gpus[j]) for j in run)
        head_at, extra = None, 0
        for j in (j for j in range(n) if np.isinf(starts[j]) and trace.submit_s[j] <= now):
            g, ends = int(trace.gpus[j]), now + predicted[j]
            if head_at is None and g > free:
                back = sorted((max(now, starts[i] + predicted[i]), int(trace.gpus[i])) for i in run)
                times = [t for t, _ in back if free + sum(x for u, x in back if u <= t) >= g]
                head_at = min(times)
                extra = free + sum(x for u, x in back if u <= head_at) - g
            elif g <= free and (head_at is None or ends <= head_at or g <= extra):
                starts[j], free = now, free - g
                run.append(j)
                if head_at is not None and ends > head_at:
                    extra -= g
        now += 1
    return starts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("forecast", ["known", "wrong"])
def test_equals_its_definition(seed: int, forecast: str) -> None:
    trace = random_trace(seed, jobs=80, tenants=1)
    wrong = np.random.default_rng(seed).integers(1, 90, 80).astype(np.float64)
    predicted = trace.duration_s if forecast == "known" else wrong
    expected = by_the_definition(trace, 9, predicted)
    assert static_easy_starts(trace, np.array([9]), predicted, plain=True).tolist() == expected
    assert static_easy_starts(trace, np.array([9]), predicted).tolist() == expected


@pytest.mark.parametrize("seed", range(4))
def test_compiled_equals_plain_with_tenants(seed: int) -> None:
    trace, shares = random_trace(seed), np.array([8, 9, 12, 4])
    fast, slow = (static_easy_starts(trace, shares, trace.duration_s, plain=plain) for plain in (False, True))
    assert np.array_equal(fast, slow)
    assert np.array_equal(np.isinf(fast), np.isinf(static_starts(trace, shares)))


def test_nothing_passes_where_all_jobs_are_equal() -> None:
    trace = random_trace(1, tenants=1)
    trace.gpus[:], trace.duration_s[:] = 2, 10.0
    assert np.array_equal(
        static_easy_starts(trace, np.array([7]), trace.duration_s), static_starts(trace, np.array([7]))
    )
