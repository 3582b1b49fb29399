import stat
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import text

from broker.errors import StateError
from broker.model.intent import IntentStatus, Outcome
from broker.model.ledger import Heartbeat
from broker.model.request import ReleaseRequest, ResizeRequest
from broker.model.reservation import ReservationState
from broker.model.snapshot import Trust
from state.cost import cost
from state.schema import PROJECTIONS
from state.store import Store
from tests.state.worlds import HOUR, LINEAGE, MINUTE, PLACE, SCOPE, T0, done, held, intent, view


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.restore(tmp_path / "state.db", now=T0, lineage=LINEAGE) as made:
        yield made


def bought(store: Store) -> None:
    store.intend(intent())
    store.conclude("k1", done(T0 + MINUTE), reservation=held())


def projections(store: Store) -> list[list[tuple[object, ...]]]:
    with store._write() as connection:
        return [sorted(tuple(row) for row in connection.execute(table.select())) for table in PROJECTIONS]


def test_a_new_state_has_its_own_lineage_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    with Store.create(tmp_path / "a.db", now=T0) as one, Store.create(tmp_path / "b.db", now=T0) as two:
        assert one.lineage != two.lineage and len(one.lineage) == 12
        assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600
    with Store.open(tmp_path / "a.db", read_only=True) as again:
        assert (again.lineage, again.serial) == (one.lineage, 0)


def test_a_purchase_is_there_after_closing_at_every_step(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store.restore(path, now=T0, lineage=LINEAGE) as store:
        store.intend(intent())
    with Store.open(path) as store:
        assert [i.status for i in store.intents(open_only=True)] == [IntentStatus.PLANNED]
        store.conclude("k1", done(T0 + MINUTE), reservation=held())
    with Store.open(path, read_only=True) as store:
        assert store.intents(open_only=True) == ()
        assert [(r.id, r.count) for r in store.reservations()] == [("res-1", 2)]
        assert [i.key for i in store.live_intents()] == ["k1"]


def test_a_key_is_intended_once(store: Store) -> None:
    store.intend(intent())
    with pytest.raises(StateError, match="sent before"):
        store.intend(intent())


def test_done_is_final_and_failed_may_still_turn_out_done(store: Store) -> None:
    store.intend(intent())
    store.conclude("k1", Outcome(status=IntentStatus.FAILED, at=T0 + MINUTE))
    assert store.conclude("k1", done(T0 + HOUR), reservation=held())
    assert not store.conclude("k1", Outcome(status=IntentStatus.FAILED, at=T0 + HOUR))
    assert store.intents()[0].status is IntentStatus.DONE


def test_an_unknown_that_stays_unknown_writes_nothing(store: Store) -> None:
    store.intend(intent())
    unknown = Outcome(status=IntentStatus.UNKNOWN, at=T0 + MINUTE, code="ReadTimeout")
    assert store.conclude("k1", unknown)
    before = store.entries()
    assert not store.conclude("k1", msgspec.structs.replace(unknown, at=T0 + HOUR))
    assert store.entries() == before


def test_the_ledger_cannot_be_rewritten(store: Store) -> None:
    bought(store)
    for statement in ("UPDATE entry SET at = 0", "DELETE FROM entry"):
        with pytest.raises(StateError, match="append-only"), store._write() as connection:
            connection.execute(text(statement))


def test_projections_come_back_from_the_ledger_alone(store: Store) -> None:
    bought(store)
    grow = ResizeRequest(key="k2", lineage=LINEAGE, place=PLACE, reservation_id="res-1", from_count=2, to_count=4)
    store.intend(intent("k2", request=grow, sent=T0 + HOUR))
    store.conclude("k2", done(T0 + HOUR + MINUTE), reservation=held(count=4))
    store.witness([view(held(count=4, used=3), held("res-9", key="k9"), at=T0 + 2 * HOUR)], T0 + 2 * HOUR)
    store.witness([view(held(count=4), at=T0 + 3 * HOUR)], T0 + 3 * HOUR)
    before = projections(store)
    store.rebuild()
    assert projections(store) == before and all(before[:4])


def test_a_look_that_shows_nothing_new_adds_nothing(store: Store) -> None:
    bought(store)
    store.witness([view(held(used=1), at=T0 + HOUR)], T0 + HOUR)
    before, serial = store.entries(), store.serial
    assert store.witness([view(held(used=1), at=T0 + 2 * HOUR)], T0 + 2 * HOUR) == ()
    assert (store.entries(), store.serial) == (before, serial)


def test_use_alone_does_not_make_a_plan_stale_but_a_new_count_does(store: Store) -> None:
    bought(store)
    serial = store.serial
    store.witness([view(held(used=1), at=T0 + HOUR)], T0 + HOUR)
    assert store.serial == serial
    store.witness([view(held(used=1, count=3), at=T0 + HOUR)], T0 + 2 * HOUR)
    assert store.serial > serial


def test_a_purchase_that_the_ledger_does_not_know_is_adopted(store: Store) -> None:
    store.witness([view(held("res-7", key="lost"), held("other", lineage="ffffffffffff"), at=T0)], T0)
    by_id = {r.id: r for r in store.reservations()}
    assert set(by_id) == {"res-7", "other"}
    assert [step.reservation_id for step in store.count_steps()] == ["res-7"]
    assert next(entry.kind for entry in store.entries()) == "adopted"


def test_a_purchase_given_up_as_failed_is_adopted_when_it_shows_up_late(store: Store) -> None:
    store.intend(intent())
    store.conclude("k1", Outcome(status=IntentStatus.FAILED, at=T0 + HOUR))
    store.witness([view(held(), at=T0 + 2 * HOUR)], T0 + 2 * HOUR)
    assert store.intents()[0].status is IntentStatus.DONE
    step = store.count_steps()[0]
    assert (step.earliest, step.latest, step.usd_per_hour_micro) == (T0, T0 + 2 * HOUR, 10_000_000)


@pytest.mark.parametrize("trust", [Trust.PARTIAL, Trust.UNKNOWN])
def test_only_a_complete_listing_shows_that_something_is_gone(store: Store, trust: Trust) -> None:
    bought(store)
    late = T0 + 2 * HOUR
    store.witness([view(at=late, trust=trust)], late)
    assert not store.reservations()[0].state.gone
    store.witness([view(at=late)], late)
    assert store.reservations()[0].state is ReservationState.RELEASED
    assert [s.count for s in store.count_steps()] == [2, 0]


def test_a_listing_that_lags_behind_our_own_call_proves_no_absence(store: Store) -> None:
    bought(store)
    soon = T0 + 3 * MINUTE
    assert store.witness([view(at=soon)], soon) == ()
    later = T0 + 7 * MINUTE
    assert [entry.kind for entry in store.witness([view(at=later)], later)] == ["gone"]
    earliest = store.count_steps()[-1].earliest
    assert earliest == T0 + MINUTE, "the last instant at which it was confirmed, not that of the lagging look"


def test_idle_since_is_when_it_was_first_seen_unused(store: Store) -> None:
    bought(store)
    for minutes, used in ((10, 1), (20, 0), (30, 0)):
        at = T0 + minutes * MINUTE
        store.witness([view(held(used=used), at=at)], at)
    unused = [level for level in store.idle() if level.used == 0]
    assert [(i.reservation_id, i.scope, i.since) for i in unused] == [("res-1", SCOPE, T0 + 20 * MINUTE)]


@pytest.mark.parametrize("told", [0, 1])
def test_use_that_ends_while_something_changes_is_idleness_from_the_next_look_on(store: Store, told: int) -> None:
    """The reply to a change may tell of use as well: it is not what the next look is compared with."""
    bought(store)
    store.witness([view(held(used=1), at=T0 + 10 * MINUTE)], T0 + 10 * MINUTE)
    shrink = ResizeRequest(key="k2", lineage=LINEAGE, place=PLACE, reservation_id="res-1", from_count=2, to_count=1)
    store.intend(intent("k2", request=shrink, sent=T0 + 20 * MINUTE))
    store.conclude("k2", done(T0 + 20 * MINUTE), reservation=held(count=1, used=told))
    for minutes in (30, 40):
        at = T0 + minutes * MINUTE
        store.witness([view(held(count=1, used=0), at=at)], at)
    assert [(level.used, level.since) for level in store.idle()] == [(0, T0 + 30 * MINUTE)]


def test_a_purchase_never_used_is_idle_from_the_start(store: Store) -> None:
    bought(store)
    assert [i.since for i in store.idle()] == [T0 + MINUTE]


def test_a_refused_offer_cools_and_then_may_be_tried_again(store: Store) -> None:
    store.intend(intent())
    store.conclude("k1", Outcome(status=IntentStatus.UNFILLED, at=T0, code="STOCKOUT", hints=("zone-f",)))
    cooling = [(c.offer_id, c.code, c.hints) for c in store.cooling(T0 + MINUTE)]
    assert cooling == [("offer-1", "STOCKOUT", ("zone-f",))]
    assert store.cooling(T0 + HOUR) == ()


def test_spend_is_weighted_by_time_and_shared_by_tenant(store: Store) -> None:
    store.intend(intent(tenants=(("vision", 3.0), ("nlp", 1.0))))
    store.conclude("k1", done(T0), reservation=held(billed_from=T0))
    grow = ResizeRequest(key="k2", lineage=LINEAGE, place=PLACE, reservation_id="res-1", from_count=2, to_count=4)
    store.intend(intent("k2", request=grow, sent=T0 + 2 * HOUR, tenants=(("nlp", 1.0),)))
    store.conclude("k2", done(T0 + 2 * HOUR), reservation=held(count=4, billed_from=T0))
    spend = store.spend(T0 + 3 * HOUR)
    assert spend.month_usd == Decimal(80)
    assert spend.by_tenant == (("nlp", Decimal(50)), ("vision", Decimal(30)))


def test_a_release_ends_the_cost_where_the_cloud_says(store: Store) -> None:
    bought(store)
    request = ReleaseRequest(key="k3", lineage=LINEAGE, place=PLACE, reservation_id="res-1")
    store.intend(intent("k3", request=request, sent=T0 + HOUR, usd_per_hour_micro=None))
    gone = held(state=ReservationState.RELEASED, billed_from=T0, billed_until=T0 + HOUR)
    store.conclude("k3", done(T0 + HOUR + MINUTE), reservation=gone)
    assert [(s.count, s.earliest, s.latest) for s in store.count_steps()] == [
        (2, T0, T0),
        (0, T0 + HOUR, T0 + HOUR),
    ]
    assert store.idle() == ()


def test_the_heartbeat_is_one_row(store: Store) -> None:
    for minutes in (0, 5):
        store.beat(Heartbeat(at=T0 + minutes * MINUTE, run_id="r", command="run"))
    found = store.heartbeat()
    assert found is not None and found.at == T0 + 5 * MINUTE
    assert store.entries() == ()


def test_what_is_partly_unused_is_known_by_level(store: Store) -> None:
    bought(store)
    for minutes, used in ((10, 2), (20, 1), (30, 0), (40, 1)):
        at = T0 + minutes * MINUTE
        store.witness([view(held(used=used), at=at)], at)
    assert [(level.used, level.since) for level in store.idle()] == [(1, T0 + 20 * MINUTE)]


def test_a_growth_that_was_never_settled_stays_within_the_bounds_of_cost(store: Store) -> None:
    bought(store)
    grow = ResizeRequest(key="k2", lineage=LINEAGE, place=PLACE, reservation_id="res-1", from_count=2, to_count=7)
    store.intend(intent("k2", request=grow, sent=T0 + HOUR))
    release = ReleaseRequest(key="k3", lineage=LINEAGE, place=PLACE, reservation_id="res-1")
    store.intend(intent("k3", request=release, sent=T0 + 2 * HOUR))
    store.conclude("k3", done(T0 + 2 * HOUR), reservation=held(state=ReservationState.RELEASED))
    found = cost(store.count_steps(), T0, T0 + 3 * HOUR)
    assert (found.low, found.high) == (round((2 * 2 - 2 / 60) * 10_000_000), (2 + 7) * 10_000_000)


@pytest.mark.parametrize(("stated_end", "low"), [(None, 0), (T0 + 24 * HOUR, 480_000_000)])
def test_a_purchase_first_seen_when_it_is_gone_cost_at_most_what_was_asked_for(
    store: Store, stated_end: datetime | None, low: int
) -> None:
    """A cloud may state no count of what has ended: then it is not known how much of it had ever been there."""
    store.intend(intent())
    ended = held(state=ReservationState.EXPIRED, count=0, billed_from=T0, billed_until=stated_end, ends=T0 + 24 * HOUR)
    store.witness([view(ended, at=T0 + 25 * HOUR)], T0 + 25 * HOUR)
    assert store.intents()[0].status is IntentStatus.DONE
    found = cost(store.count_steps(), T0, T0 + 30 * HOUR)
    assert (found.low, found.high) == (low, 2 * 24 * 10_000_000)
    assert store.reservations()[0].count == 0
