"""A bar that is missed fails the test and is named in the line at the end."""

import pytest

from tests.measures import Measure, summary, taker

MOST = Measure("time", 2.0, 4.0, "s", least=False)
LEAST = Measure("speed", 2e6, 1e6, "jobs/s", least=True)


def test_a_share_beyond_one_misses_the_bar_either_way() -> None:
    assert MOST.share == LEAST.share == 0.5
    assert MOST._replace(value=8.0).share == 2
    assert LEAST._replace(value=1e5).share == 10
    assert LEAST._replace(value=0.0).share == float("inf")


def test_a_measure_says_its_bar() -> None:
    assert str(MOST) == "time: 2 s, at most 4 (50% of the bar)"
    assert str(LEAST) == "speed: 2,000,000 jobs/s, at least 1,000,000 (50% of the bar)"


def test_the_last_line_names_the_nearest_or_what_is_missed() -> None:
    config = pytest.Config.fromdictargs({}, [])
    assert summary(config) == ""
    take = taker(config)
    take("time", 2.0, 4.0, "s")
    take("speed", 3.0, 2.0, "x", least=True)
    nearest = "speed: 3 x, at least 2 (67% of the bar)"
    assert summary(config) == f"bench: 2 measures, all within their bars; nearest to its bar: {nearest}"
    with pytest.raises(AssertionError, match="time: 5 s, at most 4"):
        take("time", 5.0, 4.0, "s")
    assert summary(config).startswith("bench: 3 measures, 1 miss their bars: time: 5 s")
    with pytest.raises(AssertionError):
        take("time", float("nan"), 4.0, "s")
