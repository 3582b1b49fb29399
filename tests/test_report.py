"""Figures worked by hand: 2 instances at $10/h unless a test says otherwise, in a window of ten hours."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.ledger import CountStep, UseStep
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReserveRequest
from broker.model.reservation import Reservation, ReservationState
from broker.pieces import Ledger
from broker.report import NOBODY, Bounds, By, Report, Share, report

START = datetime(2026, 3, 4, tzinfo=UTC)
SCOPE = Scope(ProviderName.AWS, "main", "us-east-1")
GCP = Scope(ProviderName.GCP, "proj", "us-central1")
TEN = 10_000_000


def hour(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def count(
    number: int,
    earliest: float,
    latest: float | None = None,
    *,
    price: int | None = TEN,
    held: str = "cr-1",
    scope: Scope = SCOPE,
    key: str = "k1",
) -> CountStep:
    return CountStep(
        reservation_id=held,
        scope=scope,
        count=number,
        earliest=hour(earliest),
        latest=hour(earliest if latest is None else latest),
        usd_per_hour_micro=price,
        key=key,
    )


def use(used: int, at: float) -> UseStep:
    return UseStep(reservation_id="cr-1", scope=SCOPE, at=hour(at), used=used)


def intent(key: str, pool: str, *tenants: tuple[str, float]) -> Intent:
    place = Place(SCOPE, "us-east-1b")
    request = ReserveRequest(key=key, lineage="0" * 12, place=place, machine_type="p5.48xlarge", count=2)
    done = Outcome(status=IntentStatus.DONE, at=START, reservation_id="cr-1")
    return Intent(
        key=key, plan_id="p", run_id="r", request=request, sent=START, outcome=done, pool=pool, tenants=tenants
    )


def made(
    counts: list[CountStep],
    uses: list[UseStep] | None = None,
    intents: list[Intent] | None = None,
    reservations: list[Reservation] | None = None,
    *,
    by: By = By.RESERVATION,
    until: float = 10,
) -> Report:
    ledger = Ledger(counts=counts, uses=uses or [], intents=intents or [], reservations=reservations or [])
    return report(ledger, since=hour(0), until=hour(until), by=by, minimum_hold=timedelta(hours=1))


def usd(low: str, high: str | None = None) -> Bounds:
    return Bounds(Decimal(low), Decimal(high if high is not None else low))


def test_exact_edges_give_one_figure() -> None:
    """2 x $10 x 6 h = $120; one of two is used for 4 h, none for 2 h: $40 used, $80 idle."""
    line = made([count(2, 1), count(0, 7)], [use(1, 1), use(0, 5)]).total
    assert (line.spent, line.used, line.idle) == (usd("120"), usd("40"), usd("80"))
    assert line.spent.exact


def test_edges_seen_late_give_bounds_that_hold_the_truth() -> None:
    """Began somewhere in 1..2, ended somewhere in 7..8: five to seven hours of 2 x $10."""
    line = made([count(2, 1, 2), count(0, 7, 8)], [use(2, 0)]).total
    assert line.spent == usd("100", "140")
    assert line.used == usd("100", "140")
    assert line.idle == usd("0")


def test_growth_and_shrink_are_each_bounded_on_their_own() -> None:
    """2 for sure in 0..10, a third from somewhere in 2..3 until somewhere in 6..8: 200 plus 30 to 60."""
    line = made([count(2, 0), count(3, 2, 3), count(2, 6, 8)]).total
    assert line.spent == usd("230", "260")


def test_use_that_no_run_has_seen_is_anything_between_none_and_all() -> None:
    """Before the first look (hour 4 of 10) 2 x $10 x 4 h = $80 may be either; after it, one of two is used."""
    line = made([count(2, 0)], [use(1, 4)]).total
    assert line.spent == usd("200")
    assert line.used == usd("60", "140")
    assert line.idle == usd("60", "140")


def test_a_missing_price_is_never_zero() -> None:
    made_report = made([count(2, 0, price=None), count(1, 0, held="cr-2")])
    assert not made_report.complete
    assert made_report.total.spent == usd("100")
    assert made_report.total.unpriced_instance_hours == Decimal(20)


def test_tenants_share_by_what_caused_the_purchase() -> None:
    made_report = made([count(2, 0)], intents=[intent("k1", "h100", ("vision", 0.75), ("nlp", 0.25))], by=By.TENANT)
    assert {line.name: line.spent for line in made_report.lines} == {"vision": usd("150"), "nlp": usd("50")}


def test_what_has_no_intent_is_shown_as_nobodys() -> None:
    assert [line.name for line in made([count(2, 0)], by=By.POOL).lines] == [NOBODY]


def test_pools_and_providers_group_what_they_hold() -> None:
    counts = [count(2, 0), count(1, 0, held="r2", scope=GCP, key="k2")]
    intents = [intent("k1", "h100"), intent("k2", "a100")]
    assert {line.name: line.spent for line in made(counts, intents=intents, by=By.POOL).lines} == {
        "h100": usd("200"),
        "a100": usd("100"),
    }
    assert [line.name for line in made(counts, by=By.PROVIDER).lines] == ["aws", "gcp"]


def test_the_same_id_in_two_scopes_is_two_reservations() -> None:
    assert made([count(2, 0), count(2, 0, scope=GCP)]).total.spent == usd("400")


def test_only_the_window_counts() -> None:
    assert made([count(2, -50), count(0, 50)], until=3).total.spent == usd("60")


def test_static_holds_each_pools_peak_from_the_first_purchase_on() -> None:
    """Peak of h100: 2 + 3 instances at once in 4..5; from hour 2 to hour 10: 5 x $10 x 8 h = $400."""
    counts = [
        count(2, 2),
        count(0, 5),
        count(3, 4, held="cr-2", key="k2"),
        count(0, 6, held="cr-2", key="k2"),
    ]
    made_report = made(counts, intents=[intent("k1", "h100"), intent("k2", "h100")])
    assert made_report.total.spent == usd("120")
    assert made_report.static.cost == usd("400")
    assert made_report.static.hours == Decimal(8)


def test_static_does_not_add_up_what_was_never_held_at_once() -> None:
    counts = [count(2, 0), count(0, 5), count(2, 5, held="cr-2"), count(0, 10, held="cr-2")]
    assert made(counts).static.cost == usd("200")


def test_committed_is_what_must_be_paid_whatever_is_decided_next() -> None:
    """Bought at 9:30, held for at least an hour: half an hour of 2 x $10 remains at 10:00."""
    reservation = Reservation(
        id="cr-1",
        place=Place(SCOPE, "us-east-1b"),
        machine_type="p5.48xlarge",
        count=2,
        state=ReservationState.ACTIVE,
        raw_state="active",
    )
    made_report = made([count(2, 9.5)], reservations=[reservation])
    assert made_report.total.committed == Decimal(10)
    assert made_report.lines[0].committed == Decimal(10)


def test_nothing_bought_is_an_empty_report() -> None:
    made_report = made([])
    assert made_report.lines == ()
    assert made_report.total.spent == usd("0")
    assert made_report.static.cost == usd("0")
    assert made_report.complete


edge = st.tuples(st.integers(0, 600), st.integers(0, 90), st.integers(0, 90), st.integers(0, 5))


@given(st.lists(edge, min_size=1, max_size=6), st.lists(st.tuples(st.integers(0, 600), st.integers(0, 5)), max_size=4))
def test_bounds_hold_the_truth_and_used_and_idle_make_up_the_spent(
    edges: list[tuple[int, int, int, int]], uses: list[tuple[int, int]]
) -> None:
    """Each edge: true minute, how much earlier and later it may have been, and the count from then on."""
    truth = sorted(edges, key=lambda each: each[0])
    ordered = [
        each
        for each, following in zip(truth, [*truth[1:], None], strict=True)
        if not following or each[0] < following[0]
    ]
    counts, last_latest = [], -1.0
    for minute, early, late, number in ordered:
        latest = max((minute + late) / 60, last_latest)
        last_latest = latest
        counts.append(count(number, (minute - early) / 60, latest))
    line = made(counts, [use(used, minute / 60) for minute, used in uses]).total
    ends = [each[0] for each in ordered[1:]] + [600]
    true_cost = sum(
        Decimal(number * 10 * (min(end, 600) - minute)) / 60
        for (minute, _, _, number), end in zip(ordered, ends, strict=True)
    )
    tolerance = Decimal("0.00001")
    assert line.spent.low - tolerance <= true_cost <= line.spent.high + tolerance
    assert line.used.low + line.idle.low <= line.spent.low + tolerance
    assert line.used.high + line.idle.high >= line.spent.high - tolerance


def test_the_share_of_use_is_of_all_that_was_used() -> None:
    """cr-1 uses one of two for ten hours; so does cr-2, by a run that first looked at hour 5."""
    counts = [count(2, 0), count(2, 0, held="cr-2")]
    known = made(counts, [use(1, 0), msgspec.structs.replace(use(1, 0), reservation_id="cr-2")])
    assert [line.used_share for line in known.lines] == [Share(Decimal("0.5"), Decimal("0.5"))] * 2
    late = made(counts, [use(1, 0), msgspec.structs.replace(use(1, 5), reservation_id="cr-2")])
    assert [line.used_share for line in late.lines] == [
        Share(Decimal("0.4"), Decimal("0.6667")),
        Share(Decimal("0.3333"), Decimal("0.6")),
    ]
    assert (
        made(counts, [use(0, 0), msgspec.structs.replace(use(0, 0), reservation_id="cr-2")]).lines[0].used_share is None
    )


def test_tenants_that_share_one_reservation_each_have_their_share_of_its_use() -> None:
    tenants = tuple((f"tenant-{number}", 1.0) for number in range(5))
    lines = made([count(500, 0)], [use(500, 0)], [intent("k1", "h100", *tenants)], by=By.TENANT).lines
    assert [line.used_share for line in lines] == [Share(Decimal("0.2"), Decimal("0.2"))] * 5
