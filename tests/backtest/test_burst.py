"""One unannounced burst: lending goes on afterwards."""

from typing import Any

import numpy as np
import pytest

from broker.backtest.hourly import Hour, Setting, replay_sia
from broker.backtest.protocols import Case, Knobs, case_of, covering, learned, whole_trace
from broker.backtest.synthetic import Recipe, synthesise
from broker.backtest.trace import Trace

DAY_S = 86_400.0
AT_S = 10 * DAY_S + 4 * 3_600 + 700


class Watched:
    """The learned hold-back, with what was held back at each hour."""

    def __init__(self, case: Case) -> None:
        self.learned = learned(case, Setting().rules, Knobs().alpha)
        self.held: list[tuple[float, int]] = []

    def __call__(self, state: Any, hour: Hour) -> None:
        self.learned(state, hour)
        self.held.append((hour.at, int(state.pool[0]["hold"])))

    def mean(self, first_s: float, last_s: float) -> float:
        return float(np.mean([gpus for at, gpus in self.held if first_s <= at < last_s]))


def with_burst(case: Case) -> tuple[Case, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Every tenant wants all that it is promised at once, for half an hour; and which jobs were there before."""
    trace, added = case.trace, case.total
    submit = np.concatenate([trace.submit_s, np.full(added, AT_S)])
    order = np.argsort(submit, kind="stable")
    columns = {
        "ids": tuple(np.array([*trace.ids, *(f"burst-{i}" for i in range(added))], dtype=object)[order]),
        "tenant": np.concatenate([trace.tenant, np.repeat(np.arange(len(trace.tenants)), case.entitlements)])[order],
        "submit_s": submit[order],
    }
    for name, value in (("user", 0), ("duration_s", 1_800.0), ("gpus", 1), ("wait_s", np.nan)):
        columns[name] = np.concatenate([getattr(trace, name), np.full(added, value)])[order]
    burst = Trace(tenants=trace.tenants, users=trace.users, **columns)  # type: ignore[arg-type]
    return case_of(burst, case.entitlements), order < len(trace)


@pytest.fixture(scope="module")
def calm() -> Case:
    return whole_trace(synthesise(1, Recipe(days=24, jobs_a_day=300.0)))


def replay(case: Case) -> tuple[Watched, Any]:
    watched = Watched(case)
    rule = covering(case, Knobs(), case.total)
    return watched, replay_sia(case.trace, case.entitlements, case.total, Setting(), rule, watched)


def test_a_day_after_a_burst_as_much_is_lent_as_before(calm: Case) -> None:
    case, own = with_burst(calm)
    watched, outcome = replay(case)
    before, after = watched.mean(AT_S - 3 * DAY_S, AT_S), watched.mean(AT_S + DAY_S, AT_S + 4 * DAY_S)
    assert after <= before + 0.06 * calm.total
    _, undisturbed = replay(calm)
    slower = (outcome.end[own] - calm.trace.submit_s).mean() / (undisturbed.end - calm.trace.submit_s).mean()
    assert slower < 1.15
