"""Insurance and minimum terms in the capacity decision."""

import random

import numpy as np
import pytest

from broker.backtest.hourly import HOUR_S, Hour, Setting
from broker.backtest.insurance import MinimumTerm, quantile_to_hold
from broker.backtest.protocols import Knobs, case_of, run_moving
from broker.errors import UsageError
from tests.backtest.test_foresight import case_shares, trace

__all__ = ["trace"]


@pytest.mark.parametrize("seed", range(30))
def test_holding_up_to_the_quantile_is_cheapest(seed: int) -> None:
    """By counting: price 1 for each level held; lent when not owed; an owed level without it fails now and then."""
    rng = np.random.default_rng(seed)
    failure, missed, lent = rng.uniform(0.05, 0.9), rng.uniform(1.5, 40), rng.uniform(0, 0.95)
    demand = rng.integers(0, 30, 200)

    def cost(level: int) -> float:
        held = level - lent * np.maximum(level - demand, 0)
        short = np.maximum(demand - level, 0)
        return float(np.mean(held + short * (failure * missed + (1 - failure))))

    best = min(range(31), key=cost)
    level = int(np.quantile(demand, quantile_to_hold(failure, missed, lent), method="inverted_cdf"))
    assert cost(level) == pytest.approx(cost(best))


@pytest.mark.parametrize("wrong", [(1.1, 2.0, 0.0), (0.5, 0.9, 0.0), (0.5, 2.0, 1.1), (float("nan"), 2.0, 0.0)])
def test_nonsense_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(UsageError, match="insurance"):
        quantile_to_hold(*wrong)


class Wants:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def goal(self, hour: Hour) -> int:
        return self.chance.randint(0, 50)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("term_h", [1, 3, 24])
@pytest.mark.parametrize("lead_s", [600.0, 2.5 * HOUR_S])
def test_nothing_is_given_back_before_its_term(seed: int, term_h: int, lead_s: float) -> None:
    """A world that keeps its own book: what arrived when, and that no more is given back than is free of terms."""
    rule = MinimumTerm(rule=Wants(seed), term_s=term_h * HOUR_S)
    chance, held, ordered, arrived = random.Random(-seed), 20, list[tuple[float, int]](), list[tuple[float, int]]()
    for at in (hour * HOUR_S for hour in range(300)):
        for due, goal in [order for order in ordered if order[0] <= at]:
            if goal > held:
                arrived.append((due, goal - held))
                held = goal
        ordered = [order for order in ordered if order[0] > at]
        goal = rule.goal(Hour(at, 0, 0, 0, held, 0))
        if goal > held and chance.random() < 0.7:
            ordered.append((at + lead_s, goal))
        elif goal < held:
            held = goal
        bound = sum(gpus for since, gpus in arrived if since + term_h * HOUR_S > at)
        assert held >= bound


def test_terms_cost_capacity_in_a_replay(trace) -> None:  # type: ignore[no-untyped-def]
    case = case_of(trace, case_shares(trace))
    free, bound = (run_moving(case, Setting(), Knobs(term_s=term)) for term in (0.0, 86_400.0))
    assert bound.held_s > free.held_s
