"""Durations: honest about what has not finished, calibrated online, learned from the past only."""

import numpy as np
import pytest

from forecasts.accuracy import OURS, duration_forecasts, of_durations
from forecasts.durations import finished_weight, train
from forecasts.expected import Expected
from forecasts.history import Submitted, rows
from forecasts.quantiles import LEVELS, Array
from forecasts.stored import dump, load

DAY = 86400.0


def some_jobs(seed: int, count: int = 2500, days: float = 40.0) -> Submitted:
    """Six users, each with a typical duration of its own, tails heavy."""
    generator = np.random.Generator(np.random.PCG64(seed))
    submit = np.sort(generator.uniform(0, days * DAY, count))
    group = generator.integers(0, 6, count).astype(float)
    duration = np.exp(5.0 + group + generator.standard_t(3, count) * 0.6)
    gpus = generator.choice([1.0, 8.0], count)
    return _columns(submit, submit + duration, gpus, group)


def _columns(submit: Array, end: Array, gpus: Array, group: Array) -> Submitted:
    none = np.full(len(submit), np.nan)
    return Submitted(submit_s=submit, start_s=submit, end_s=end, gpus=gpus, group=group, time_limit_s=none)


def test_rows_know_nothing_of_what_comes_later() -> None:
    jobs = some_jobs(1)
    half = len(jobs.submit_s) // 2
    now = jobs.submit_s[half]
    end = np.where(jobs.end_s > now, jobs.end_s + 5 * DAY, jobs.end_s)
    later = _columns(jobs.submit_s, end, jobs.gpus, jobs.group)
    assert np.array_equal(rows(jobs)[: half + 1], rows(later)[: half + 1], equal_nan=True)


def test_each_finished_job_counts_for_those_like_it_that_could_not_have_finished() -> None:
    assert finished_weight(np.array([1.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])).tolist() == pytest.approx([1.0, 2.0])


def test_weighting_undoes_the_bias_of_what_finished_lately() -> None:
    generator = np.random.Generator(np.random.PCG64(4))
    submit = np.sort(generator.uniform(0, 10.0, 20_000))
    duration = generator.exponential(4.0, 20_000)
    done = submit + duration <= 10.0
    weight = finished_weight(duration[done], 10.0 - submit)
    naive = duration[done].mean()
    weighted = np.average(duration[done], weights=weight)
    truth = duration[duration < 9.5].mean()
    assert abs(weighted - truth) < 0.3 * abs(naive - truth)


def test_training_is_deterministic_and_a_model_is_data() -> None:
    jobs = some_jobs(2)
    known = rows(jobs)
    first, second = (train(jobs, known, 30 * DAY) for _ in range(2))
    assert first is not None
    assert dump(first) == dump(second)
    restored = load(dump(first), type(first))
    assert np.array_equal(first.predict(known[-5:]), restored.predict(known[-5:]))


def test_too_few_finished_jobs_give_no_model() -> None:
    jobs = some_jobs(3, count=50)
    assert train(jobs, rows(jobs), 40 * DAY) is None


def test_what_is_left_of_a_job_grows_with_its_age_in_the_tail() -> None:
    jobs = some_jobs(2)
    known = rows(jobs)
    model = train(jobs, known, 40 * DAY)
    assert model is not None
    quantiles = model.predict(known[-1:])[0]
    young, old = (model.remaining(quantiles, quantiles[-1] * factor) for factor in (2.0, 20.0))
    assert old[LEVELS.index(0.5)] > young[LEVELS.index(0.5)] > 0


def test_the_online_forecast_beats_what_it_is_measured_against_and_is_calibrated() -> None:
    accuracy = of_durations(some_jobs(5, count=4000), 10 * DAY)
    by = {score.by: score for score in accuracy.scores}
    ours = by.pop(OURS)
    assert all(ours.pinball < score.pinball for score in by.values())
    assert abs(ours.coverage_90 - 0.9) < 0.03
    assert {part.split for part in accuracy.parts} == {"hour of day", "novelty", "burst decile"}


def test_what_happens_later_changes_no_forecast() -> None:
    jobs = some_jobs(6, count=1500)
    now = jobs.submit_s[1000]
    end = np.where(jobs.end_s > now, jobs.end_s + DAY, jobs.end_s)
    other = _columns(jobs.submit_s, end, jobs.gpus, jobs.group)
    first, second = duration_forecasts(jobs)[0], duration_forecasts(other)[0]
    assert np.array_equal(first[:1001], second[:1001], equal_nan=True)


def test_a_job_stopped_from_outside_teaches_nothing() -> None:
    online = Expected()
    silent = np.full(len(LEVELS), np.nan)
    for number in range(5):
        online.submit(str(number), float(number), 0, 1, silent)
        online.finish(str(number), number + 0.5, 0.5)
    before = dump(online.finished)
    online.submit("stopped", 10.0, 0, 1, silent)
    online.start("stopped", 10.0)
    online.cancel("stopped", 11.0)
    assert dump(online.finished) == before
    assert not online.live


def test_waiting_is_not_running() -> None:
    at_once = some_jobs(7, count=1200)
    waited = Submitted(
        submit_s=at_once.submit_s,
        start_s=at_once.start_s + 3 * DAY,
        end_s=at_once.end_s + 3 * DAY,
        gpus=at_once.gpus,
        group=at_once.group,
        time_limit_s=at_once.time_limit_s,
    )
    said, _ = duration_forecasts(waited)
    late = waited.submit_s > 20 * DAY
    assert np.nanmedian(said[late, LEVELS.index(0.5)]) < 1 * DAY
    assert abs(np.mean(waited.duration_s[late] <= said[late, LEVELS.index(0.5)]) - 0.5) < 0.1
