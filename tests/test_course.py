"""How spending went over time adds up to what the report says of it."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from broker.course import course
from broker.model.ledger import CountStep, UseStep
from broker.model.place import ProviderName, Scope
from broker.pieces import Ledger
from broker.report import Bounds, By, report

T0 = datetime(2026, 3, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCOPE = Scope(ProviderName.AWS, "main", "us-east-1")


def count(at: float, number: int, *, late: float = 0, usd: int | None = 10, which: str = "cr-1") -> CountStep:
    return CountStep(
        reservation_id=which,
        scope=SCOPE,
        count=number,
        earliest=T0 + at * HOUR,
        latest=T0 + (at + late) * HOUR,
        usd_per_hour_micro=None if usd is None else usd * 1_000_000,
        key="",
    )


def use(at: float, used: int) -> UseStep:
    return UseStep(reservation_id="cr-1", scope=SCOPE, at=T0 + at * HOUR, used=used)


def exactly(usd: int) -> Bounds:
    return Bounds(Decimal(usd), Decimal(usd))


def test_rates_hold_from_one_moment_to_the_next_and_add_up() -> None:
    ledger = Ledger(counts=[count(1, 2), count(3, 0)], uses=[use(1, 0), use(2, 1)], intents=[])
    moments = course(ledger, T0, T0 + 4 * HOUR)
    assert [(each.at - T0) // HOUR for each in moments] == [0, 1, 2, 3, 4]
    assert [each.held for each in moments] == [exactly(usd) for usd in (0, 20, 20, 0, 0)]
    assert [each.used for each in moments] == [exactly(usd) for usd in (0, 0, 10, 0, 0)]
    assert [each.spent for each in moments] == [exactly(usd) for usd in (0, 0, 20, 40, 40)]


def test_what_has_no_price_is_in_no_figure_and_nothing_is_a_course_too() -> None:
    unpriced = Ledger(counts=[count(1, 2, usd=None)], uses=[], intents=[])
    assert {each.held for each in course(unpriced, T0, T0 + HOUR * 2)} == {exactly(0)}
    nothing = Ledger(counts=[], uses=[], intents=[])
    assert [each.spent for each in course(nothing, T0, T0 + HOUR)] == [exactly(0)] * 2


HOURS = st.integers(0, 48).map(lambda quarter: quarter / 4)
STEPS = st.lists(st.tuples(HOURS, st.integers(0, 5), st.sampled_from([0, 0.5]), st.integers(1, 9)), max_size=6)


@given(STEPS, st.lists(st.tuples(HOURS, st.integers(0, 5)), max_size=4), HOURS)
def test_it_ends_where_the_report_does(
    steps: list[tuple[float, int, float, int]], uses: list[tuple[float, int]], until: float
) -> None:
    counts = [count(at, number, late=late, usd=usd) for at, number, late, usd in sorted(steps)]
    ledger = Ledger(counts=counts, uses=[use(*each) for each in uses], intents=[])
    window = (T0 + HOUR, T0 + HOUR + until * HOUR)
    made = report(ledger, since=window[0], until=window[1], by=By.POOL, minimum_hold=HOUR)
    moments = course(ledger, *window)
    assert moments[-1].spent == made.total.spent
    assert all(each.held.low <= each.held.high and each.used.low <= each.used.high for each in moments)
    assert all(one.spent.high <= two.spent.high for one, two in itertools.pairwise(moments))
