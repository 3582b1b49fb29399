"""The hold-back: quantiles, the choice among experts, and the promise on the share of misses."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.sia.holdback import EXPERTS, HoldBack, quantile


def test_quantile_counts_windows() -> None:
    assert quantile([{0: 90, 2: 9}, {8: 1}], 0.9) == 0
    assert quantile([{0: 90, 2: 9}, {8: 1}], 0.99) == 2
    assert quantile([{0: 90, 2: 9}, {8: 1}], 0.999) == 8


def test_starts_by_lending_nothing() -> None:
    assert HoldBack(capacity=64, windows=6).hold() == 64


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), -5.0, 0.0, 1e9])
def test_a_bad_forecast_is_left(nonsense: float) -> None:
    hold = HoldBack(capacity=64, windows=6, alpha=0.05)
    for _ in range(300):
        hold.hold(nonsense)
        hold.learn({4: 3}, 3, 0)
    best = max(range(4), key=lambda k: hold.weights[k])
    assert EXPERTS[best] != "forecast" or nonsense in (float("inf"), -5.0) or nonsense != nonsense
    assert abs(hold.standing[best] - 4) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_misses_stay_rare_when_demand_shifts_without_warning(seed: int) -> None:
    """Whatever the demand does, the share of misses comes down to alpha: the correction rises until it does."""
    rng = random.Random(seed)
    hold = HoldBack(capacity=100, windows=6, alpha=0.01)
    starts = misses = 0
    for hour in range(6000):
        held = hold.hold()
        level = 5 if hour < 1000 else rng.choice((1, 5, 40))
        wants = [rng.randint(0, level) for _ in range(6)]
        missed = sum(want > held for want in wants)
        counts = {want: wants.count(want) for want in wants if want}
        hold.learn(counts, 6, missed)
        starts, misses = starts + 6, misses + missed
    assert misses / starts <= 0.02


def test_calm_demand_frees_what_was_held() -> None:
    hold = HoldBack(capacity=100, windows=6, alpha=0.01)
    for _ in range(2000):
        hold.hold()
        hold.learn({1: 1}, 1, 0)
    assert hold.hold() <= 1


HOURS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(0, 40)), min_size=1, max_size=300)


@settings(max_examples=100, deadline=None)
@given(hours=HOURS, capacity=st.integers(1, 60), step=st.sampled_from([0.5, 1.0, 4.0]))
def test_misses_never_exceed_their_allowance_by_more_than_a_constant(
    hours: list[tuple[int, int, int]], capacity: int, step: float
) -> None:
    """Whoever makes the misses; only where nothing is lent there are none."""
    hold = HoldBack(capacity=capacity, windows=6, alpha=0.02, step=step)
    starts = misses = largest = 0
    for started, missed, wanted in hours:
        missed = min(missed, started) if hold.hold() < capacity else 0
        hold.learn({wanted: 2}, started, missed)
        starts, misses, largest = starts + started, misses + missed, max(largest, started)
        constant = (1 / step + hold.most_owed) * capacity + largest + hold.batch
        assert misses <= hold.alpha * starts + constant


def test_after_a_burst_that_nobody_foresaw_lending_goes_on_within_a_day() -> None:
    hold = HoldBack(capacity=1000, windows=60, alpha=0.003)
    for _ in range(200):
        usual = hold.hold()
        hold.learn({2: 20}, 20, 0)
    hold.learn({900: 1}, 900, 880)
    for _ in range(24):
        after = hold.hold()
        hold.learn({2: 20}, 20, 0)
    assert after <= usual + hold.sudden * hold.capacity + 2
    assert hold.owed > 800, "the misses are not forgotten"


def test_when_bursts_go_on_nothing_is_lent_until_enough_went_well() -> None:
    hold = HoldBack(capacity=100, windows=60, alpha=0.1)
    hold.learn({0: 1}, 20, 0)
    for _ in range(3):
        hold.learn({90: 1}, 90, 90)
    assert hold.hold() == 100
    held = []
    for _ in range(400):
        held.append(hold.hold())
        hold.learn({1: 1}, 20, 0)
    assert held[0] == held[30] == 100
    assert held[-1] <= 1


def test_in_a_small_pool_a_few_misses_are_acted_upon_at_once() -> None:
    hold = HoldBack(capacity=16, windows=60, alpha=0.001)
    hold.learn({0: 1}, 20, 4)
    assert hold.owed == 0
    assert hold.correction == pytest.approx(4, abs=0.1)
