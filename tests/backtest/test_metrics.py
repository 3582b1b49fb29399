"""What a replay is judged by."""

import numpy as np
import pytest

from broker.backtest.metrics import compare
from broker.errors import InputError


def test_jobs_that_never_end_under_static_are_left_out_and_counted() -> None:
    submit, static = np.zeros(3), np.array([10.0, 20.0, np.inf])
    found = compare(submit, static, np.array([5.0, 10.0, 7.0]))
    assert (found.jobs, found.left_out, found.never_ended, found.latency_ratio) == (2, 1, 0, 2.0)


def test_a_job_that_only_the_policy_never_ends_is_infinitely_slow() -> None:
    submit, static = np.zeros(4), np.array([10.0, 10.0, 10.0, 0.0])
    found = compare(submit, static, np.array([5.0, np.inf, 10.0, np.inf]))
    assert (found.jobs, found.left_out, found.never_ended) == (4, 0, 2)
    assert (found.mean_latency_s, found.latency_ratio, found.largest_delay_s) == (np.inf, 0.0, np.inf)
    assert found.p_slowdown_over == {1.05: 0.5, 1.1: 0.5, 1.5: 0.5, 2.0: 0.5}
    assert found.slowdown_quantiles[0.1] == 1.0
    assert found.slowdown_quantiles[0.5] == found.slowdown_quantiles[0.999] == np.inf
    assert (found.mean_ratio, found.geometric_mean_ratio) == (0.75, 0.0)


def test_a_policy_that_ends_no_job_is_as_late_as_can_be() -> None:
    found = compare(np.zeros(2), np.array([5.0, 6.0]), np.full(2, np.inf))
    assert (found.jobs, found.never_ended, found.latency_ratio) == (2, 2, 0.0)
    assert found.p_slowdown_over[2.0] == 1.0


def test_where_no_job_ends_on_its_own_share_there_is_nothing_to_compare_and_the_way_out_is_named() -> None:
    with pytest.raises(InputError) as caught:
        compare(np.zeros(2), np.full(2, np.inf), np.array([5.0, 6.0]))
    assert "--entitlement" in caught.value.next_step
