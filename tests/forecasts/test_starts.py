"""The forecast of what owed starts want at once: exceeded as seldom as it says, and led by the hour of the day."""

import numpy as np
import pytest

from broker.commands.start_memory import VERSION, StartMemory
from broker.schedule.foretold import HourOver
from forecasts.starts import Starts
from forecasts.stored import seal, unseal

ALPHA, WINDOWS = 0.002, 30


def test_is_exceeded_in_few_hours_and_keeps_little_free_where_nothing_is_wanted() -> None:
    rng, starts = np.random.default_rng(3), Starts.new(ALPHA, WINDOWS)
    said, came = [], []
    for hour in range(1500):
        morning = hour % 24 in (8, 9)
        wanted = float(rng.integers(20, 40) if morning else rng.integers(0, 4))
        came.append(wanted)
        starts.see(wanted, [], hour)
        said.append(starts.expected())
    late = range(500, 1499)
    numbers = {hour: said[hour] or 0.0 for hour in late}
    exceeded = np.mean([came[hour + 1] > numbers[hour] for hour in late])
    assert exceeded <= 2 * ALPHA * WINDOWS
    nights = np.mean([numbers[hour] for hour in late if hour % 24 in range(14, 22)])
    mornings = np.mean([numbers[hour] for hour in late if (hour + 1) % 24 in (8, 9)])
    assert nights < mornings / 3
    assert mornings > 20


def test_says_nothing_before_an_hour_was_seen() -> None:
    assert Starts.new(ALPHA, WINDOWS).expected() is None


def over(hour: int, wanted: float, pool: str = "h100") -> HourOver:
    return HourOver(pool, wanted, [wanted, 1.0, 2.0, 3.0], hour, ALPHA, WINDOWS)


def mornings(hours: int) -> list[float]:
    rng = np.random.default_rng(1)
    return [float(rng.integers(6, 9)) if 8 <= hour % 24 < 12 else 0.0 for hour in range(hours)]


def test_a_memory_that_was_written_goes_on_as_one_that_never_stopped() -> None:
    wanted = mornings(300)
    whole, resumed = StartMemory(), StartMemory()
    for hour in range(1, 300):
        expected = whole.asked(over(hour, wanted[hour - 1]))
        assert resumed.asked(over(hour, wanted[hour - 1])) == pytest.approx(expected)
        if hour % 90 == 0:
            text = seal(resumed, version=VERSION, seed=0, trained_from="a", trained_until="b")
            resumed = unseal(text, StartMemory, version=VERSION)


def test_the_same_hour_again_teaches_nothing() -> None:
    memory = StartMemory()
    memory.asked(over(5, 1.0))
    said = memory.asked(over(6, 2.0))
    assert memory.asked(over(6, 50.0)) == said
    assert memory.pools["h100"].starts.wanted == [1.0, 2.0]


def test_pools_learn_apart() -> None:
    memory = StartMemory()
    for hour in range(1, 40):
        memory.asked(over(hour, 30.0))
        memory.asked(over(hour, 0.0, "a100"))
    much, little = memory.asked(over(40, 30.0)), memory.asked(over(40, 0.0, "a100"))
    assert (much or 0.0) > 20 > 5 > (little or 0.0)


def test_what_lies_far_back_is_let_go() -> None:
    starts = Starts.new(ALPHA, WINDOWS)
    for hour in range(400):
        starts.rises.see(0.0, 1.0, [0.0], hour)
        starts.rises.expected()
        starts.rises.forget(100)
    assert len(starts.rises.levels) <= 125
    assert starts.expected() is not None
