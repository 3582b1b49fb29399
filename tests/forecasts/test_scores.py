"""Scores against values worked by hand."""

import numpy as np
import pytest

from forecasts.quantiles import LEVELS, given_longer_than, in_order
from forecasts.scores import autocorrelation, covered, crps, mean_pinball, pinball, tail_index


def test_pinball_charges_the_level_for_what_is_short_and_the_rest_for_excess() -> None:
    actual = np.array([10.0, 10.0])
    assert pinball(actual, np.array([6.0, 12.0]), 0.9).tolist() == pytest.approx([3.6, 0.2])


def test_a_point_forecast_has_the_absolute_error_as_crps() -> None:
    actual = np.array([10.0])
    assert crps(actual, np.full((1, len(LEVELS)), 7.0))[0] == pytest.approx(3.0)


def test_mean_pinball_of_two_levels() -> None:
    assert mean_pinball(np.array([10.0]), np.array([[8.0, 14.0]]), (0.25, 0.75)).tolist() == pytest.approx([0.75])


def test_coverage_counts_both_ends_as_inside() -> None:
    actual = np.array([1.0, 2.0, 3.0, 4.0])
    assert covered(actual, np.full(4, 2.0), np.full(4, 3.0)) == 0.5


def test_autocorrelation_of_an_alternating_error_is_negative_and_of_a_constant_none() -> None:
    assert autocorrelation(np.array([1.0, -1.0] * 50), 1) == pytest.approx(-0.99)
    assert autocorrelation(np.ones(10), 1) == 0.0


def test_tail_index_finds_the_exponent_of_a_pareto() -> None:
    sizes = (1.0 - np.arange(10_000) / 10_000.0) ** (-1 / 1.5)
    assert tail_index(sizes) == pytest.approx(1.5, rel=0.05)


def test_quantiles_are_put_in_order() -> None:
    assert in_order(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 2.0, 3.0]


def test_a_job_that_has_run_to_its_median_has_the_upper_half_ahead() -> None:
    quantiles = np.array([1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0])
    later = given_longer_than(quantiles, 50.0, 2.0)
    assert later[LEVELS.index(0.5)] == pytest.approx(75.0)
    assert (later >= 50.0).all()


def test_a_job_that_outlives_every_level_goes_on_in_proportion_to_its_age() -> None:
    quantiles = np.linspace(1.0, 100.0, len(LEVELS))
    later = given_longer_than(quantiles, 1000.0, 1.0)
    assert later[LEVELS.index(0.5)] == pytest.approx(2000.0, rel=0.01)
