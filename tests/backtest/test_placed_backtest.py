"""A backtest on nodes: all policies placed by one allocator, figures in whole nodes, the promise kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

from broker.backtest import policies
from broker.backtest.command import Options, backtest
from broker.backtest.fifo import pooled_starts, queue_starts, static_starts
from broker.backtest.hourly import Setting, replay_naive, replay_sia
from broker.backtest.page import as_html, as_text
from broker.backtest.placed import in_cells, placed_pooled_starts, placed_static_starts
from broker.backtest.playing import placed_naive, placed_ranked_ends
from broker.backtest.protocols import FIXED, Case, Knobs, case_of, covering, knobs_of, on_nodes, run_fixed, run_moving
from broker.backtest.replay import Course
from broker.errors import InputError, UsageError
from broker.model.job import Job, JobState
from broker.sia.columns import Job as Record
from broker.sia.state import Rules, add_job, new_state
from tests.backtest.conftest import random_trace
from tests.sia.placed import placed_static_ends
from tests.sia.tiny import Instance

SHARES = np.array([8, 8, 12, 16])
RULES = Rules(reclaim_s=60, restore_s=120)


@pytest.fixture(scope="module")
def case() -> Case:
    trace = random_trace(4, jobs=400)
    trace = replace(trace, submit_s=trace.submit_s * 500, duration_s=trace.duration_s * 120)
    return on_nodes(case_of(trace, SHARES), 4, RULES.reclaim_s)


@pytest.mark.parametrize("seed", range(4))
def test_static_is_placed_as_the_definition_says(seed: int) -> None:
    trace = in_cells(random_trace(seed, jobs=120), 4)
    jobs = [Record(tenant=v, gpus=gpus) for v, gpus in zip(trace.tenant.tolist(), trace.gpus.tolist(), strict=True)]
    times = zip(trace.submit_s.tolist(), trace.duration_s.tolist(), strict=True)
    rules = Rules(reclaim_s=7.0)
    instance = Instance(SHARES.tolist(), jobs, [Course(*each) for each in times], [(0.0, 44)], rules)
    state = new_state(entitlements=SHARES.tolist(), capacity=44, rules=rules)
    for job in jobs:
        add_job(state, job, {job.gpus: 0})
    ends = placed_static_starts(trace, SHARES, 4, 7.0) + trace.duration_s
    assert ends.tolist() == placed_static_ends(instance, 4, state)


def test_on_nodes_of_one_gpu_the_baselines_are_the_pooled_ones() -> None:
    trace, shares, setting = random_trace(2), np.array([8, 9, 12, 30]), Setting(lead_s=5.0)
    assert np.array_equal(placed_static_starts(trace, shares, 1, 0.0), static_starts(trace, shares))
    assert np.array_equal(placed_pooled_starts(trace, 40, 1), pooled_starts(trace, 40))
    shortest = queue_starts(trace, 40, trace.duration_s, skip=False) + trace.duration_s
    assert np.array_equal(placed_ranked_ends(trace, 40, 1, trace.duration_s), shortest)
    spread = case_of(replace(trace, submit_s=trace.submit_s * 300, duration_s=trace.duration_s * 200), shares)
    placed, pooled = (
        replay_naive(spread.trace, 59, replace(setting, node_gpus=nodes), covering(spread, Knobs(), 59))
        for nodes in (1, 0)
    )
    assert np.array_equal(placed.end, pooled.end)
    assert placed.held_s == pooled.held_s
    assert placed.curve == pooled.curve


def test_naive_sharing_never_uses_more_than_its_nodes(case: Case) -> None:
    playing = placed_naive(case.trace, 16, 4)
    now = 0.0
    while now < np.inf:
        now = playing.until(now)
        assert playing.state.pool[0]["busy"] <= playing.state.pool[0]["capacity"] == 16
    assert np.isfinite(playing.world.plan["end"].copy()).all()


def test_a_job_larger_than_all_nodes_never_starts_and_holds_nobody_up(case: Case) -> None:
    ends = placed_ranked_ends(case.trace, 4, 4, case.trace.submit_s)
    assert np.array_equal(np.isinf(ends), case.trace.gpus > 4)


@pytest.mark.parametrize("elastic", [1, 4])
@pytest.mark.parametrize("forecast", [0.0, 1e12, np.nan])
def test_nobody_is_later_than_placed_static_and_one_reclaim(case: Case, elastic: int, forecast: float) -> None:
    setting = Setting(rules=RULES, elastic=elastic, hold_share=0.0, node_gpus=4)
    wrong = np.full(len(case.trace), forecast)
    outcome = replay_sia(case.trace, case.entitlements, case.total, setting, None, None, wrong, wrong)
    assert case.judge(outcome).largest_delay_s <= RULES.reclaim_s + 1e-3
    assert case.judge(outcome).latency_ratio > 1.2
    assert outcome.preemptions > 0


def test_capacity_moves_in_whole_nodes(case: Case) -> None:
    outcome = run_moving(case, Setting(rules=RULES, node_gpus=4, failure=0.1), Knobs())
    assert np.isfinite(outcome.end).all()
    assert 0.2 < case.cost(outcome) < 1.0
    pooled = run_moving(case, Setting(rules=RULES), Knobs())
    assert case.cost(pooled) < case.cost(outcome)
    assert outcome.used_s <= outcome.held_s


def test_learned_forecasts_read_the_plain_replay(case: Case) -> None:
    """Durations, rises and owed starts are learned from lists of records as from arrays."""
    knobs = knobs_of("learned", "learned")
    setting = Setting(rules=RULES, node_gpus=4)
    one, again = (run_moving(case, setting, knobs) for _ in range(2))
    assert np.array_equal(one.end, again.end)
    assert np.isfinite(one.end).all()
    assert run_fixed(case, setting, replace(FIXED, durations="learned")).short_s == 0.0


def test_policies_of_the_command() -> None:
    jobs = tuple(job for k in range(80) for job in (_job(k, "nlp", 1 + k % 3), _job(k, "vision", 4)))
    found = backtest(Options(history=jobs, node_gpus=4, ablations=True))
    document = json.loads(json.dumps(found.document()))
    assert document["gpus_per_node"] == 4
    assert all(gpus % 4 == 0 for gpus in document["entitlements"].values())
    names = set(document["policies"])
    assert {"static", "sia", "sia_pooled", "sia_oracle", "naive_fifo", "naive_adaptive", "no_going_home"} <= names
    assert not {"static_easy", "clairvoyant", "resizes_without_credit"} & names
    assert document["policies"]["sia"]["largest_lag_s"] <= 60.001
    assert "GPUs promised on nodes of 4" in as_text(found)
    assert "take more slots than they ask for" in as_text(found)
    assert "sia_pooled" in as_html(found)


def _job(k: int, tenant: str, gpus: int) -> Job:
    from datetime import UTC, datetime, timedelta

    submit = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=7 * k)
    start, end = submit + timedelta(minutes=1), submit + timedelta(minutes=1 + 13 * (1 + k % 9))
    return Job(id=f"{tenant}-{k}", tenant=tenant, submit=submit, start=start, end=end, gpus=gpus, state=JobState.DONE)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (Options(node_gpus=6), UsageError, "6 GPUs cannot be cut into cells"),
        (Options(node_gpus=4, firm_share=0.05), UsageError, "nothing is lent that cannot be called back"),
        (Options(node_gpus=4, entitlements={"nlp": 6, "vision": 8}), InputError, "nlp is promised 6 GPUs"),
    ],
)
def test_what_cannot_be_on_nodes_is_refused(options: Options, error: type[Exception], says: str) -> None:
    jobs = (_job(0, "nlp", 1), _job(1, "vision", 1), _job(2, "nlp", 1))
    with pytest.raises(error, match=says):
        backtest(replace(options, history=jobs))


def test_ends_of_static_are_those_of_its_own_policy(case: Case) -> None:
    assert np.array_equal(policies.static(case).end, case.static_end)
