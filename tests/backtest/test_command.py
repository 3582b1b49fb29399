"""`broker backtest` end to end on a small synthetic trace: figures, text, page."""

import json
from pathlib import Path

import pytest

from broker.backtest.analysis import analyse
from broker.backtest.command import Backtest, Options, backtest
from broker.backtest.page import as_html, as_text, use_as_text
from broker.errors import InputError

HEADER = "job_id,tenant,user,submit_s,duration_s,gpus,wait_s\n"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [f"{i},t{i % 3},u,{i * 400},{600 + i * 7919 % 9000},{1 + i % 4},{i % 50}" for i in range(600)]
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    path.write_text(HEADER + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def found(trace: Path) -> Backtest:
    return backtest(Options(trace=trace, failure=0.2, seeds=3, ablations=True))


def test_every_policy_has_every_figure(found: Backtest) -> None:
    document = json.loads(json.dumps(found.document()))
    expected = {"static", "sia", "naive_fifo", "naive_same_mean", "naive_same_curve", "naive_adaptive"}
    assert expected <= set(document["policies"])
    for figures in document["policies"].values():
        for name in ("mean_latency_s", "latency_ratio", "cost_vs_static", "largest_lag_s", "preemptions"):
            assert isinstance(figures[name], float | int)
        for name in ("1_05", "1_1", "1_5", "2"):
            assert 0 <= figures[f"p_slowdown_over_{name}"] <= 1
    assert document["policies"]["static"]["latency_ratio"] == 1.0
    assert document["recorded_mean_wait_s"] == pytest.approx(24.5)


def test_seeds_vary_what_failed(found: Backtest) -> None:
    sia = found.policies["sia"]
    assert len(sia.seeds) == 2
    assert len({run.cost_vs_static for run in (sia.run, *sia.seeds)}) > 1
    figures = found.document()["policies"]["sia"]
    costs = sorted(run["cost_vs_static"] for run in (figures, *figures["seeds"]))
    assert figures["intervals"]["cost_vs_static"] == [costs[0], costs[-1]]
    assert f"SIA over 3 seeds: cost {costs[0]:.3f} to {costs[-1]:.3f}, " in as_text(found)


def test_adaptive_naive_costs_no_more_than_sia(found: Backtest) -> None:
    assert found.policies["naive_adaptive"].cost_vs_static <= found.policies["sia"].cost_vs_static


def test_text_and_page(found: Backtest) -> None:
    text = as_text(found)
    assert "600 jobs, 3 tenants" in text
    assert all(name in text for name in found.policies)
    page = as_html(found)
    assert page.count("<svg") == 4
    held = page.partition("GPUs promised, held and used")[2].partition("</svg>")[0]
    assert all(f">{name}<" in held for name in ("promised", "sia, used", "sia", "naive_adaptive"))
    assert "nan," not in page
    assert ",nan" not in page
    assert "http" not in page


def test_frontier_is_a_table_and_plots(trace: Path) -> None:
    shares = {"t0": 40, "t1": 40, "t2": 40}
    along = backtest(Options(trace=trace, frontier=True, entitlements=shares))
    figures = along.document()["frontier"]
    assert [point["cost"] for point in figures] == [0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70]
    costs = [point["sia"]["cost_vs_static"] for point in figures]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1] <= 0.70
    assert sum(line.startswith("0.") for line in as_text(along).splitlines()) == 7
    page = as_html(along)
    assert page.count("<svg") == 5
    assert "adaptive NAIVE at each cost" in page


def test_a_policy_that_ends_no_job_is_in_the_table_and_not_in_the_plots(tmp_path: Path) -> None:
    """One wide job a day: naive sharing of the mean that SIA held is always too small for it."""
    trace = tmp_path / "daily.csv"
    trace.write_text(HEADER + "".join(f"{day},t,u,{day * 86_400},18000,8,0\n" for day in range(28)))
    daily = backtest(Options(trace=trace, entitlements={"t": 8}))
    assert daily.policies["naive_same_mean"].comparison.never_ended == 28
    assert "count as infinitely slow: naive_same_mean 28" in as_text(daily)
    plots = as_html(daily).partition("</pre>")[2]
    assert plots.count("<svg") == 4
    assert "naive_same_mean" not in plots.partition("GPUs promised")[0]
    assert not any(f"{sign}{bad}" in plots for bad in ("nan", "inf") for sign in (",", " ", '"'))


def test_use_is_a_table(found: Backtest) -> None:
    text = use_as_text(analyse(found.case))
    assert "could be lent" in text


def test_entitlements_are_given_for_all_or_none(trace: Path) -> None:
    with pytest.raises(InputError, match="t1, t2"):
        backtest(Options(trace=trace, entitlements={"t0": 8}))
    fixed = backtest(Options(trace=trace, entitlements={"t0": 8, "t1": 8, "t2": 8}, fixed_capacity=True))
    assert fixed.policies["sia"].comparison.largest_delay_s <= 60 + 1e-6
    assert {"naive_same_mean", "naive_same_curve", "naive_adaptive"} <= set(fixed.policies)
    held = [fixed.policies[name].outcome for name in ("naive_same_mean", "naive_same_curve")]
    assert all(outcome and outcome.held_s == pytest.approx(24 * fixed.case.span_s) for outcome in held)


def test_jobs_larger_than_their_share_are_said(trace: Path) -> None:
    shares = backtest(Options(trace=trace, entitlements={"t0": 3, "t1": 8, "t2": 8}, fixed_capacity=True))
    assert "50 jobs are larger than what the tenant is promised" in as_text(shares)


def test_a_trace_of_minutes_is_replayed(tmp_path: Path) -> None:
    """Capacity is decided hourly: here it never is, and neither what SIA held nor the time spent waiting divides."""
    short = tmp_path / "short.csv"
    short.write_text(HEADER + "a,t,u,100,50,1,\nb,t,u,160,0,2,\nc,u,u,900,0,1,\n")
    policies = backtest(Options(trace=short)).policies
    assert {p.comparison.latency_ratio for p in policies.values()} == {1.0}
    assert policies["naive_same_curve"].cost_vs_static == policies["sia"].cost_vs_static == 1.0


def test_jobs_that_take_no_time_are_as_fast_under_every_policy(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text(HEADER + "a,t,u,100,0,1,\nb,t,u,160,0,1,\n")
    assert {p.comparison.latency_ratio for p in backtest(Options(trace=empty)).policies.values()} == {1.0}


def test_a_trace_of_one_instant_is_refused(tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text(HEADER + "a,t,u,100,50,1,\nb,t,u,100,50,1,\n")
    with pytest.raises(InputError, match="no time passes"):
        backtest(Options(trace=one))


def test_entitlements_name_the_trace_s_tenants(trace: Path) -> None:
    with pytest.raises(InputError, match=r"no entitlement for tenant t1, t2"):
        backtest(Options(trace=trace, entitlements={"t0": 1}))
    with pytest.raises(InputError, match=r"has no tenant t9. Its tenants: t0, t1, t2"):
        backtest(Options(trace=trace, entitlements={"t0": 1, "t1": 1, "t2": 1, "t9": 1}))
