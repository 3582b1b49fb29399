"""CPU time and memory as jobs and tenants grow; needs no trace."""

import resource
import sys
import time

import pytest

from broker.backtest.entitlements import from_concurrency
from broker.backtest.hourly import Setting
from broker.backtest.playing import prepare
from broker.backtest.replay import replay_until
from broker.backtest.synthetic import Recipe, synthesise
from broker.sia.columns import NEVER
from broker.sia.compiling import compiled
from tests.measures import Take

pytestmark = pytest.mark.bench


def seconds_a_job(recipe: Recipe) -> float:
    trace = synthesise(0, recipe)
    entitlements = from_concurrency(trace, 0.9)
    kernel = compiled(replay_until)
    state, world = prepare(trace, entitlements, int(entitlements.sum()), Setting())
    begin = time.process_time()
    kernel(state, world, NEVER)
    spent = time.process_time() - begin
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = f"{len(trace):9,d} jobs, {recipe.tenants:5d} tenants, {int(entitlements.sum()):6,d} GPUs"
    sys.stdout.write(f"\n{size}: {spent:6.2f} s, {len(trace) / spent:9,.0f} jobs/s, peak so far {peak_mb:,.0f} MB")
    return spent / len(trace)


def test_growth_with_jobs_and_tenants(take: Take) -> None:
    """Ten times the jobs, or the tenants, at most 1.4 times the time a job: n log n allows 1.2 from 100,000 on."""
    seconds_a_job(Recipe(days=10))  # compiles
    hundred_thousand = seconds_a_job(Recipe(days=100, jobs_a_day=1000))
    million = seconds_a_job(Recipe(days=1000, jobs_a_day=1000))
    take("time a job, ten times the jobs", million / hundred_thousand, 1.4, "x")
    hundred, thousand = (seconds_a_job(Recipe(days=60, tenants=n, jobs_a_day=2000)) for n in (100, 1000))
    take("time a job, ten times the tenants", thousand / hundred, 1.4, "x")
    take("peak memory of a million jobs", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1024, "MiB")
