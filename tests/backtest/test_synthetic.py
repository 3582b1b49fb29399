"""The made-up trace has the published marginals and is the same for the same seed."""

import numpy as np
import pytest

from broker.backtest.analysis import HOUR_S, analyse
from broker.backtest.fifo import static_starts
from broker.backtest.protocols import case_of, whole_trace
from broker.backtest.synthetic import Recipe, marginals, synthesise
from tests.backtest.conftest import random_trace

SMALL = Recipe(days=28, jobs_a_day=300)


def test_same_seed_same_trace() -> None:
    one, two, other = synthesise(3, SMALL), synthesise(3, SMALL), synthesise(4, SMALL)
    assert one.ids == two.ids
    assert np.array_equal(one.duration_s, two.duration_s)
    assert len(one) != len(other)
    assert one.notes == {}


def test_marginals_are_near_the_published_ones() -> None:
    figures = marginals(synthesise(0))
    assert figures["one_gpu_share"] == pytest.approx(0.93, abs=0.02)
    assert 350 < figures["jobs_a_day_median"] < 750
    assert 600 < figures["duration_p50_s"] < 2200
    assert 5_000 < figures["duration_p90_s"] < 40_000
    assert 100_000 < figures["duration_p99_s"] < 500_000
    assert figures["afternoon_over_night"] > 1.5


@pytest.mark.parametrize("seed", range(3))
def test_analysis_adds_up(seed: int) -> None:
    trace = random_trace(seed)
    trace.submit_s[:] *= 100
    trace.duration_s[:] *= 200
    shares = np.array([8, 9, 12, 30])
    use = analyse(case_of(trace, shares))
    hours = len(use.used)
    start = static_starts(trace, shares)
    window_end = trace.submit_s[0] + hours * HOUR_S
    inside = np.minimum(start + trace.duration_s, window_end) - np.minimum(start, window_end)
    assert sum(t.used for t in use.tenants) == pytest.approx(np.sum(inside * trace.gpus) / HOUR_S)
    for tenant in use.tenants:
        assert tenant.used + tenant.idle == pytest.approx(tenant.promised)
        assert 0 <= tenant.lendable <= tenant.idle + 1e-9
    assert np.all(use.used >= -1e-9)
    assert np.all(use.used <= shares + 1e-9)


def test_sharing_pays_on_the_synthetic_trace() -> None:
    """What newcomers see without any file: idle that others waited for."""
    case = whole_trace(synthesise(1, SMALL))
    assert 0.0 < analyse(case).lendable_share <= 1.0
