"""Speed of the scenarios; needs no trace."""

import time

import numpy as np
import pytest

from forecasts.demand import Jobs, live_by_age
from forecasts.scenarios import paths
from tests.measures import Take

pytestmark = pytest.mark.bench
TENANTS, WEEKS, JOBS_A_WEEK, WEEK_H = 20, 8, 5000, 168


def test_two_hundred_scenarios_of_a_week_for_twenty_tenants(take: Take) -> None:
    """From each tenant's jobs of the last eight weeks to its paths of hourly demand: at most 2 s of CPU."""
    rng, hours, jobs = np.random.default_rng(1), WEEKS * WEEK_H, WEEKS * JOBS_A_WEEK
    tenants = []
    for _ in range(TENANTS):
        submit = np.sort(rng.uniform(0, hours * 3600, jobs))
        end = submit + rng.lognormal(7, 2, jobs)
        tenants.append(Jobs(submit_s=submit, end_s=end, gpus=rng.choice([1.0, 2.0, 8.0], jobs)))
    begin = time.process_time()
    found = [
        paths(live_by_age(mine, hours).sum(axis=1), hours=WEEK_H, count=200, seed=v, hour_of_day=(hours - 1) % 24)
        for v, mine in enumerate(tenants)
    ]
    spent = time.process_time() - begin
    assert all(path.shape == (200, WEEK_H) for path in found)
    assert all(path.std(axis=0).min() > 0 for path in found)
    take(f"200 scenarios x {WEEK_H} h x {TENANTS} tenants, {JOBS_A_WEEK:,} jobs a week each", spent, 2, "s CPU")
