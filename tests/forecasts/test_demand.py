"""Demand and its forecast: read off the jobs, learned from the past only, sound whatever the experts say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasts.ahead import Ahead, Setting
from forecasts.boosting import Recipe
from forecasts.demand import Jobs, Series, cut, live_by_age, series
from forecasts.experts import Correction, Hedge
from forecasts.quantiles import LEVELS, Array
from forecasts.scenarios import paths
from forecasts.stored import dump, load

HOUR = 3600.0
QUICK = Setting(recipe=Recipe(rounds=5, leaves=4, rows_per_leaf=20))


def some_jobs(seed: int, count: int = 3000, hours: int = 500) -> Jobs:
    generator = np.random.Generator(np.random.PCG64(seed))
    submit = np.sort(generator.uniform(0, hours * HOUR, count))
    end = submit + generator.lognormal(8.0, 1.5, count)
    return Jobs(submit_s=submit, end_s=end, gpus=generator.choice([1.0, 2.0, 8.0], count))


def test_demand_counts_live_gpus_at_whole_hours_by_age() -> None:
    jobs = Jobs(submit_s=np.array([0.0, 1.5 * HOUR]), end_s=np.array([3 * HOUR, 2 * HOUR]), gpus=np.array([2.0, 8.0]))
    ages = live_by_age(jobs, 5)
    assert ages.sum(axis=1).tolist() == [2.0, 2.0, 2.0, 0.0, 0.0]
    assert ages[0, 0] == 2.0
    assert ages[2, 2] == 2.0


def test_what_happens_later_changes_no_forecast() -> None:
    whole = some_jobs(1)
    seen = whole.submit_s <= 300 * HOUR
    other = Jobs(
        submit_s=whole.submit_s[seen],
        end_s=np.where(whole.end_s[seen] > 300 * HOUR, 400 * HOUR, whole.end_s[seen]),
        gpus=whole.gpus[seen],
    )
    assert np.array_equal(_forecasts(series(whole, 301)), _forecasts(series(other, 301)), equal_nan=True)


def _forecasts(past: Series) -> Array:
    online = Ahead.new(6, QUICK)
    return np.stack([online.forecast(cut(past, hour + 1)) for hour in range(len(past.level))])


def test_a_forecaster_stored_and_loaded_goes_on_as_if_nothing_had_been() -> None:
    past = series(some_jobs(2), 330)
    online = Ahead.new(6, QUICK)
    for hour in range(300):
        online.forecast(cut(past, hour + 1))
    resumed = load(dump(online), Ahead)
    for hour in range(300, 330):
        assert np.array_equal(online.forecast(cut(past, hour + 1)), resumed.forecast(cut(past, hour + 1)))


def test_a_perfect_forecast_from_outside_is_soon_followed_and_an_absurd_one_is_not() -> None:
    past = series(some_jobs(3), 400)
    online = Ahead.new(1, Setting(recipe=QUICK.recipe, extra=3))
    absurd = [np.full(len(LEVELS), 1e9), np.full(len(LEVELS), np.nan)]
    for hour in range(398):
        perfect = np.full(len(LEVELS), past.level[hour + 1])
        online.forecast(cut(past, hour + 1), np.stack([perfect, *absurd]))
    assert (online.hedge.shares[-3] >= online.hedge.shares.max(axis=0)).all()
    assert online.hedge.shares[-2].max() < 0.02


@given(st.lists(st.sampled_from([0.0, 1e12, -1e12, np.nan, np.inf, 5.0]), min_size=30, max_size=60))
def test_shares_stay_shares_whatever_an_expert_says(values: list[float]) -> None:
    hedge = Hedge.among(2)
    for value in values:
        said = np.stack([np.full(len(LEVELS), value), np.arange(len(LEVELS), dtype=float)])
        assert np.isfinite(hedge.mix(said)).all()
        hedge.learn(said, 4.0)
        assert np.allclose(hedge.shares.sum(axis=0), 1.0)
        assert (hedge.shares > 0).all()


def test_the_correction_brings_each_level_to_what_it_says() -> None:
    generator = np.random.Generator(np.random.PCG64(0))
    correction = Correction.none()
    met = np.zeros(len(LEVELS))
    for step in range(6000):
        actual = float(abs(generator.standard_t(3))) * 10
        said = correction.apply(np.full(len(LEVELS), 3.0))
        correction.learn(said, actual)
        met += (actual <= said) * (step >= 1000)
    assert np.allclose(met / 5000, LEVELS, atol=0.04)


@settings(max_examples=50)
@given(seed=st.integers(0, 1000), hours=st.integers(1, 200))
def test_paths_start_from_today_never_fall_below_zero_and_hold_the_worst(seed: int, hours: int) -> None:
    level = series(some_jobs(seed % 5, 300), 200).level
    level[100] += 500.0
    found = paths(level, hours=hours, count=20, seed=seed, hour_of_day=3, worst_blocks=1)
    assert found.shape == (20, hours)
    assert (found >= 0).all()
    again = paths(level, hours=hours, count=20, seed=seed, hour_of_day=3, worst_blocks=1)
    assert np.array_equal(found, again)
    if hours >= 24:
        assert found[0].max() >= 300.0


def test_too_little_past_gives_paths_that_stay() -> None:
    assert paths(np.array([3.0, 4.0]), hours=5, count=2, seed=0, hour_of_day=0).tolist() == [[4.0] * 5] * 2
