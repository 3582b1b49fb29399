"""The policies beside SIA: what each promises of itself, on made-up traces; side by side and one by one alike."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from broker.backtest import policies
from broker.backtest.ablations import ABLATIONS, ablate, with_bursts
from broker.backtest.clairvoyant import capacity_without_waits, hourly_peaks, known_demand
from broker.backtest.hourly import HOUR_S, Hour, Setting
from broker.backtest.predicted import class_medians, wrong_by
from broker.backtest.protocols import Case, Knobs, case_of
from tests.backtest.conftest import random_trace


@pytest.fixture(scope="module")
def case() -> Case:
    trace = random_trace(4, jobs=400)
    trace = replace(trace, submit_s=trace.submit_s * 150, duration_s=trace.duration_s * 120)
    return case_of(trace, np.array([8, 8, 8, 16]))


def test_clairvoyant_holds_what_is_used_each_hour_and_nobody_waits(case: Case) -> None:
    trace = case.trace
    hours, starts, peaks = hourly_peaks(trace)
    ends = trace.submit_s + trace.duration_s
    for at, start, peak in zip(hours, starts, peaks, strict=True):
        moments = [at, *trace.submit_s[(trace.submit_s >= at) & (trace.submit_s < at + HOUR_S)]]
        used = [int(trace.gpus[(trace.submit_s <= t) & (t < ends)].sum()) for t in moments]
        assert (start, peak) == (used[0], max(used))
    policy = policies.clairvoyant(case)
    assert np.array_equal(policy.end, ends)
    work = float(np.sum(trace.gpus * (np.minimum(ends, trace.submit_s[-1]) - trace.submit_s)))
    assert work <= capacity_without_waits(trace) == pytest.approx(policy.cost_vs_static * case.total * case.span_s)


def test_known_demand_covers_the_rise_that_comes(case: Case) -> None:
    rule = known_demand(case, hours=2)
    hours, starts, peaks = hourly_peaks(case.trace)
    at = int(np.argmax(np.diff(peaks)))
    hour = Hour(float(hours[at]), 0, int(starts[at]), int(starts[at]), 8, 0)
    assert rule.goal(hour) == max(peaks[at : at + 2])
    assert rule.goal(replace(hour, claims=500)) == 500


def test_medians_are_of_what_had_ended(case: Case) -> None:
    trace = case.trace
    found = class_medians(trace, case.static_end)
    for j in (150, 250, 399):
        known = np.flatnonzero((case.static_end <= trace.submit_s[j]) & (np.arange(len(trace)) < j))
        known = known[np.argsort(case.static_end[known], kind="stable")]
        alike = known[(trace.tenant[known] == trace.tenant[j]) & (trace.gpus[known] == trace.gpus[j])][-50:]
        assert len(alike) >= 3
        assert found[j] == np.sort(trace.duration_s[alike])[len(alike) // 2]


def test_shortest_first_beats_first_come_where_classes_differ(case: Case) -> None:
    trace = replace(
        case.trace,
        duration_s=np.array([6e1, 2.4e2, 9.6e2, 3.84e3])[case.trace.tenant],
        gpus=np.ones(len(case.trace), np.int64),
    )
    tight = Case(trace=trace, entitlements=np.array([1, 1, 1, 1]), static_end=trace.submit_s + trace.duration_s)
    shortest, first = policies.naive_sjf(tight), policies.naive_fifo(tight)
    assert shortest.comparison.mean_latency_s < 0.8 * first.comparison.mean_latency_s


def test_wrong_by_a_factor_either_way() -> None:
    wrong = wrong_by(np.full(1000, 6.0), 3.0, seed=1)
    assert set(wrong.round(9)) == {2.0, 18.0}
    assert 400 < np.sum(wrong > 6) < 600


def test_bursts_are_added_to_what_was_there(case: Case) -> None:
    week = replace(case, trace=replace(case.trace, submit_s=case.trace.submit_s * 20))
    trace, own = with_bursts(week)
    assert own.sum() == len(week.trace)
    assert np.array_equal(trace.duration_s[own], week.trace.duration_s)
    assert np.all(np.diff(trace.submit_s) >= 0)
    added = trace.pick(~own)
    assert len(added) == 3 * week.total
    assert np.array_equal(np.bincount(added.tenant), 3 * week.entitlements)


@pytest.mark.parametrize("name", ABLATIONS)
def test_each_ablation_is_a_run_of_its_own(case: Case, name: str) -> None:
    policy = ablate(case, name, Setting(), Knobs())
    assert np.isfinite(policy.end).all()
    assert policy.comparison.jobs == len(case.trace)
    assert not policy.plotted


def test_without_its_guard_nothing_is_called_back(case: Case) -> None:
    policy = ablate(case, "no shadow guard", Setting(), Knobs())
    assert policy.outcome is not None
    assert policy.outcome.preemptions == 0


def test_side_by_side_is_as_one_by_one(case: Case) -> None:
    tasks = {"fifo": partial(policies.naive_fifo, case), "sia": partial(policies.sia_moving, case, Setting(), Knobs())}
    told: list[str] = []
    both, single = policies.carry_out(tasks, 2, told.append), policies.carry_out(tasks, 1, told.append)
    assert list(both) == list(single) == list(tasks)
    assert told == [*tasks, *tasks]
    for name in tasks:
        assert np.array_equal(both[name].end, single[name].end)
