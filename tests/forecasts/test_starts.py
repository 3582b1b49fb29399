"""The forecast of what owed starts want at once: exceeded as seldom as it says, and led by the hour of the day."""

import numpy as np

from forecasts.starts import Starts

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
