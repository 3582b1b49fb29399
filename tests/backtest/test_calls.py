"""How jobs can be called back, as the trace or a flag says."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from broker.backtest.ablations import with_bursts
from broker.backtest.calls import Calls
from broker.backtest.command import Options, backtest
from broker.backtest.hourly import Setting, replay_sia
from broker.backtest.protocols import case_of
from broker.backtest.readers import read_trace
from broker.backtest.trace import Trace
from broker.errors import UsageError
from broker.sia.state import Rules
from tests.backtest.conftest import random_trace

HEADER = "job_id,tenant,user,submit_s,duration_s,gpus,reclaim_s,preemptible\n"


def read(folder: Path, rows: str, header: str = HEADER) -> Trace:
    path = folder / "trace.csv"
    path.write_text(header + rows)
    return read_trace(path)


def with_calls(trace: Trace, *, reclaim_s: npt.ArrayLike = np.nan, firm: npt.ArrayLike = False) -> Trace:
    kept = {name: getattr(trace, name) for name in trace.__slots__}
    count = len(trace)
    calls = Calls(reclaim_s=np.broadcast_to(reclaim_s, count) * 1.0, firm=np.broadcast_to(firm, count) & True)
    return Trace(**{**kept, "calls": calls})


def test_columns_are_read_and_follow_their_jobs_when_sorted(tmp_path: Path) -> None:
    trace = read(tmp_path, "b,v,u,50,10,2,30,yes\na,v,u,20,5,1,,no\nc,v,u,60,5,1,-4,maybe\n")
    assert trace.calls is not None
    assert trace.ids == ("a", "b", "c")
    np.testing.assert_equal(trace.calls.reclaim_s, [np.nan, 30.0, np.nan])
    assert trace.calls.firm.tolist() == [True, False, False]
    assert trace.notes == Counter(
        {
            "sorted by submit time": 1,
            "cannot be called back": 1,
            "preemptible is neither yes nor no: taken as not said": 1,
        }
    )
    picked = trace.pick(np.array([False, True, True])).calls
    assert picked is not None
    assert picked.firm.tolist() == [False, False]


def test_a_trace_that_says_nothing_is_as_before(tmp_path: Path) -> None:
    assert read(tmp_path, "a,v,u,20,5,1,,\n").calls is None
    trace = random_trace(1)
    case = case_of(trace, np.array([8, 8, 8, 8]))
    plain = replay_sia(trace, case.entitlements, 24, Setting())
    told = replay_sia(with_calls(trace, reclaim_s=60.0), case.entitlements, 24, Setting())
    assert np.array_equal(plain.end, told.end)


def test_queue_formats_say_it_where_some_job_does(tmp_path: Path) -> None:
    header = "id,tenant,submit,start,end,state,gpus,preemptible\n"
    row = "{},v,2026-01-01T00:00:0{}Z,2026-01-01T00:00:05Z,2026-01-01T00:01:00Z,done,1,{}\n"
    trace = read(tmp_path, row.format("a", 1, "true") + row.format("b", 2, "false"), header)
    assert trace.calls is not None
    assert trace.calls.firm.tolist() == [False, True]
    assert read(tmp_path, row.format("a", 1, "false") + row.format("b", 2, ""), header).calls is None


def test_classes_give_what_jobs_do_not_say() -> None:
    calls = Calls(reclaim_s=np.array([np.nan, np.nan, np.nan, 7.0]), firm=np.zeros(4, dtype=np.bool_))
    names = [("nlp", "ada"), ("nlp", "bob"), ("cv", "ada"), ("nlp", "ada")]
    found = calls.of_classes(names, {"nlp": 20.0, "nlp/ada": 90.0})
    np.testing.assert_equal(found.reclaim_s, [90.0, 20.0, np.nan, 7.0])
    with pytest.raises(UsageError, match="cv/bob: no job is of it"):
        calls.of_classes(names, {"cv/bob": 1.0})


def test_slow_jobs_and_those_that_cannot_be_called_back_never_start_early() -> None:
    """Alone in what is promised: no end differs from STATIC's, nobody is called back."""
    trace = random_trace(2)
    case = case_of(trace, np.array([8, 8, 8, 8]))
    for stiff in (with_calls(trace, firm=True), with_calls(trace, reclaim_s=61.0)):
        outcome = replay_sia(stiff, case.entitlements, 32, Setting())
        assert np.allclose(outcome.end, case.static_end)
        assert outcome.preemptions == 0
    assert replay_sia(trace, case.entitlements, 32, Setting()).end.mean() < case.static_end.mean()


@pytest.mark.parametrize("seed", range(8))
def test_nobody_is_later_than_the_longest_reclaim_whatever_jobs_take(seed: int) -> None:
    rng, trace = np.random.default_rng(seed), random_trace(seed)
    case = case_of(trace, np.array([8, 8, 8, 8]))
    mixed = with_calls(
        trace, reclaim_s=rng.choice([0.0, 5.0, 20.0, 60.0, 100.0], len(trace)), firm=rng.random(len(trace)) < 0.2
    )
    setting = Setting(rules=Rules(reclaim_s=60.0, restore_s=10.0))
    late = replay_sia(mixed, case.entitlements, 32, setting).end - case.static_end
    assert late.max() <= 60.0 + 1e-6
    assert late.min() < 0


def test_a_fast_class_is_called_back_faster() -> None:
    trace = random_trace(3)
    case = case_of(trace, np.array([8, 8, 8, 8]))
    slow = replay_sia(trace, case.entitlements, 32, Setting())
    quick = replay_sia(trace.called_back_in({f"t{v}": 1.0 for v in range(4)}), case.entitlements, 32, Setting())
    assert (quick.end - case.static_end).max() < (slow.end - case.static_end).max()


def test_the_command_and_bursts_keep_what_is_said(tmp_path: Path) -> None:
    rows = "".join(f"j{n},v{n % 2},u,{n * 10},50,1,{n % 3},{'yes' if n % 4 else 'no'}\n" for n in range(40))
    trace = read(tmp_path, rows)
    found = backtest(Options(trace=tmp_path / "trace.csv", reclaim_of={"v0/u": 9.0}, reclaim_s=20.0))
    assert found.notes == {"cannot be called back": 10}
    burst, own = with_bursts(replace(found.case, trace=trace))
    assert burst.calls is not None
    assert trace.calls is not None
    assert np.array_equal(burst.calls.firm[own], trace.calls.firm)
