"""The replay gives the figures that independent simulators give on the public Philly trace, to the printed digit."""

import numpy as np
import pytest

from broker.backtest.entitlements import from_concurrency, from_offered_load
from broker.backtest.fifo import pooled_starts, queue_starts, static_starts
from broker.backtest.metrics import compare
from broker.backtest.trace import Trace

SLICE_TENANTS = [
    "6214e9",
    "7f04ca",
    "11cb48",
    "b436b2",
    "ee9e8c",
    "e13805",
    "6c71a0",
    "2869ce",
    "ed69ec",
    "103959",
    "0e4a51",
]
DAY = 86_400


@pytest.fixture(scope="module")
def week(philly: Trace) -> Trace:
    tenant = np.isin(philly.tenant, [philly.tenants.index(name) for name in SLICE_TENANTS])
    return philly.pick(tenant & (philly.submit_s >= 35 * DAY) & (philly.submit_s < 42 * DAY)).capped(172_800)


@pytest.mark.parametrize(
    ("shortest_first", "skip", "latency", "wait"),
    [
        (False, True, "14057.60", "7766.79"),
        (True, True, "10847.14", "4556.32"),
        (False, False, "18112.8", None),
        (True, False, "10405.9", None),
    ],
)
def test_one_pool_gives_the_figures_of_other_simulators(
    week: Trace, shortest_first: bool, skip: bool, latency: str, wait: str | None
) -> None:
    assert len(week) == 12_751
    starts = queue_starts(week, 400, week.duration_s if shortest_first else week.submit_s, skip=skip)
    waited = starts - week.submit_s
    decimals = len(latency.split(".")[1])
    assert f"{np.mean(waited + week.duration_s):.{decimals}f}" == latency
    assert wait is None or f"{np.mean(waited):.2f}" == wait


def test_philly_90_baselines(philly: Trace) -> None:
    entitlements = from_concurrency(philly, 0.90)
    assert entitlements.sum() == 1034
    starts = static_starts(philly, entitlements)
    waited = starts - philly.submit_s
    assert f"{np.mean(waited + philly.duration_s):.1f}" == "115863.9"
    assert f"{np.mean(waited):.1f}" == "102728.0"
    assert f"{np.mean(waited > 1):.2%}" == "64.91%"
    static_end = starts + philly.duration_s
    wide = compare(philly.submit_s, static_end, pooled_starts(philly, 1034) + philly.duration_s)
    assert (f"{wide.mean_latency_s:.1f}", f"{wide.p_slowdown_over[1.1]:.3%}") == ("13145.2", "0.038%")
    narrow = compare(philly.submit_s, static_end, pooled_starts(philly, 568) + philly.duration_s)
    assert (f"{narrow.mean_latency_s:.1f}", f"{narrow.p_slowdown_over[1.1]:.2%}") == ("217242.5", "67.73%")


def test_philly_60_baselines(philly: Trace) -> None:
    window = philly.pick((philly.submit_s >= 60 * DAY) & (philly.submit_s < 74 * DAY))
    entitlements = from_offered_load(window, 60 * DAY, 74 * DAY)
    assert (len(window), entitlements.sum()) == (12_380, 472)
    static_end = static_starts(window, entitlements) + window.duration_s
    assert f"{np.mean(static_end - window.submit_s):.1f}" == "66475.8"
    naive = compare(window.submit_s, static_end, pooled_starts(window, 472) + window.duration_s)
    assert f"{naive.mean_latency_s:.1f}" == "17873.5"
    assert (f"{naive.latency_ratio:.2f}", f"{naive.p_slowdown_over[1.1]:.1%}") == ("3.72", "19.4%")
