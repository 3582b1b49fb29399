from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from broker.model.ledger import UseStep
from broker.model.place import ProviderName, Scope
from state.idleness import levels

T0 = datetime(2026, 3, 4, tzinfo=UTC)
SCOPE = Scope(ProviderName.AWS, "main", "us-east-1")


def history(*used: int) -> list[UseStep]:
    """One step an hour, newest first."""
    steps = [
        UseStep(reservation_id="r", scope=SCOPE, at=T0 + hour * timedelta(hours=1), used=count)
        for hour, count in enumerate(used)
    ]
    return steps[::-1]


def found(steps: list[UseStep], count: int) -> list[tuple[int, float]]:
    """(level, hours after T0 since when use has not been above it)"""
    return [(level.used, (level.since - T0) / timedelta(hours=1)) for level in levels(steps, count)]


def test_each_level_has_the_time_since_which_use_was_never_above_it() -> None:
    assert found(history(0), 2) == [(0, 0)]
    assert found(history(3, 1, 2, 0), 4) == [(0, 3), (2, 1), (3, 0)]
    assert found(history(3, 1, 2, 0), 3) == [(0, 3), (2, 1)]
    assert found(history(1, 2), 2) == []
    assert found([], 2) == []


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 4))
def test_levels_are_what_counting_hour_by_hour_gives(used: list[int], count: int) -> None:
    for level, since in found(history(*used), count):
        assert all(one <= level for one in used[int(since) :])
        assert since == 0 or used[int(since) - 1] > level
    if used[-1] < count:
        assert found(history(*used), count)[0][0] == used[-1]
