"""The hold-back: quantiles, the choice among experts, and the promise on the share of misses."""

import random

import pytest

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
