from datetime import timedelta

import msgspec
import pytest

from broker.apply.apply import LATE, admit, apply
from broker.apply.boundary import Boundary
from broker.apply.outcomes import intent_of
from broker.clock import FixedClock
from broker.errors import Exit, PlanError, StalePlanError
from broker.model.intent import IntentStatus
from broker.model.offer import Offer, Shape
from broker.model.place import Place, ProviderName, Scope
from broker.model.plan import Plan
from broker.model.reservation import Owner, ReservationState
from providers.base import Ambiguous, Denied, QuotaExceeded, Throttled, Unfilled, Unreachable
from state.store import Store
from tests.apply.cloud import Cloud, buy, give_back, plan, resize
from tests.state.worlds import LINEAGE, T0, held


def run(made: Plan, store: Store, cloud: Cloud, clock: FixedClock, **more: object) -> list[str]:
    results = apply(made, store, {ProviderName.GCP: cloud}, clock, **more).results  # type: ignore[arg-type]
    return [result.outcome.status.value for result in results]


def test_a_purchase_is_intended_before_it_is_sent_and_concluded_after(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    seen: list[tuple[Boundary, list[str], int]] = []

    def note(boundary: Boundary) -> None:
        seen.append((boundary, [i.status.value for i in store.intents()], cloud.purchases))

    assert run(plan(buy("k1")), store, cloud, clock, checkpoint=note) == ["done"]
    assert seen == [
        (Boundary.BEFORE_INTENT, [], 0),
        (Boundary.AFTER_INTENT, ["planned"], 0),
        (Boundary.AFTER_CALL, ["planned"], 1),
        (Boundary.BEFORE_OUTCOME, ["planned"], 1),
        (Boundary.AFTER_OUTCOME, ["done"], 1),
        (Boundary.BEFORE_APPLIED, ["done"], 1),
        (Boundary.AFTER_APPLIED, ["done"], 1),
    ]


def test_one_failure_stops_one_action(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    cloud.before["k2"] = Unfilled("reserve", code="STOCKOUT", message="no H100", request_id="req-9", hints=("zone-f",))
    result = apply(plan(buy("k1"), buy("k2"), buy("k3")), store, {ProviderName.GCP: cloud}, clock)
    assert [r.outcome.status.value for r in result.results] == ["done", "unfilled", "done"]
    assert result.exit is Exit.PARTLY_DONE
    refused = result.results[1].outcome
    assert (refused.code, refused.message, refused.request_id) == ("STOCKOUT", "no H100", "req-9")
    assert {r.id for r in store.reservations()} == {"res-k1", "res-k3"}
    assert [cooled.hints for cooled in store.cooling(clock.at)] == [("zone-f",)]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unfilled("x"), IntentStatus.UNFILLED),
        (QuotaExceeded("x"), IntentStatus.REFUSED),
        (Denied("x"), IntentStatus.REFUSED),
        (Throttled("x"), IntentStatus.FAILED),
        (Unreachable("x"), IntentStatus.FAILED),
        (Ambiguous("x"), IntentStatus.UNKNOWN),
        (KeyError("a field that no adapter knows"), IntentStatus.UNKNOWN),
    ],
)
def test_an_outcome_is_typed_by_what_to_do_next(
    store: Store, cloud: Cloud, clock: FixedClock, error: Exception, status: IntentStatus
) -> None:
    cloud.before["k1"] = error
    assert run(plan(buy("k1")), store, cloud, clock) == [status.value]
    assert store.intents()[0].status is status


def test_a_plan_applied_twice_sends_nothing_the_second_time(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    made = plan(buy("k1"))
    admit(made, store, T0)
    run(made, store, cloud, clock)
    clock.at = T0 + timedelta(days=3)
    admit(made, store, clock.at)
    again = apply(made, store, {ProviderName.GCP: cloud}, clock)
    assert (again.already, again.results, again.exit) == (T0, (), Exit.OK)
    assert cloud.purchases == 1


def test_a_plan_that_was_cut_off_is_stale_and_its_keys_are_never_sent_again(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    class Killed(BaseException):
        pass

    def die(boundary: Boundary) -> None:
        if boundary is Boundary.AFTER_CALL:
            raise Killed

    made = plan(buy("k1"))
    with pytest.raises(Killed):
        run(made, store, cloud, clock, checkpoint=die)
    with pytest.raises(StalePlanError, match="serial"):
        admit(made, store, T0)
    assert run(made, store, cloud, clock) == ["refused"]
    assert cloud.purchases == 1


def test_a_plan_of_another_state_or_past_its_expiry_is_refused(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    with pytest.raises(PlanError, match="another state"):
        run(plan(buy("k1"), lineage="ffffffffffff"), store, cloud, clock)
    with pytest.raises(StalePlanError, match="expired"):
        run(plan(buy("k1"), expires=T0), store, cloud, clock)
    assert cloud.calls == []


def test_what_is_not_ours_is_never_touched(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    theirs = held("res-x", owner=Owner("ffffffffffff", "k"))
    nobodys = held("res-y", owner=None)
    results = run(plan(give_back("k1", theirs), resize("k2", nobodys, 5)), store, cloud, clock)
    assert results == ["refused", "refused"]
    assert (cloud.calls, store.entries()) == ([], ())


def test_nothing_is_bought_without_a_price_or_in_the_quiet_time(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    priceless = buy("k1")
    priceless = msgspec.structs.replace(priceless, offer=msgspec.structs.replace(priceless.offer, price=None))
    assert run(plan(priceless), store, cloud, clock) == ["refused"]
    store.be_quiet(T0 + timedelta(minutes=5))
    assert run(plan(buy("k2")), store, cloud, clock) == ["refused"]
    clock.at = T0 + timedelta(minutes=5)
    assert run(plan(buy("k3")), store, cloud, clock) == ["done"]
    assert cloud.calls == ["reserve k3"]


def test_growth_without_a_price_is_not_sent_and_needs_none_to_shrink(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    run(plan(buy("k1", count=2)), store, cloud, clock)
    bigger, smaller = (resize(f"r{count}", cloud.held["res-k1"], count) for count in (3, 1))
    bigger, smaller = (msgspec.structs.replace(each, usd_per_hour=None) for each in (bigger, smaller))
    assert run(plan(bigger), store, cloud, clock) == ["refused"]
    assert run(plan(smaller), store, cloud, clock) == ["done"]
    assert cloud.calls == ["reserve k1", "resize r1"]


def test_a_release_that_something_hinders_stays_open(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    run(plan(buy("k1")), store, cloud, clock)
    cloud.hinders = 1
    assert run(plan(give_back("k2", cloud.held["res-k1"])), store, cloud, clock) == ["unknown"]
    assert store.reservations()[0].state is ReservationState.CANCELLING
    assert [i.key for i in store.intents(open_only=True)] == ["k2"]


def test_growth_is_priced_from_then_on(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    run(plan(buy("k1")), store, cloud, clock)
    clock.at = T0 + timedelta(hours=1)
    run(plan(resize("k2", cloud.held["res-k1"], 3)), store, cloud, clock)
    assert [(s.count, s.usd_per_hour_micro, s.key) for s in store.count_steps()] == [
        (1, 10_000_000, "k1"),
        (3, 10_000_000, "k2"),
    ]


def test_a_machine_that_slept_between_intent_and_call_does_not_buy(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    def sleep(boundary: Boundary) -> None:
        if boundary is Boundary.AFTER_INTENT:
            clock.at = T0 + LATE + timedelta(seconds=1)

    assert run(plan(buy("k1")), store, cloud, clock, checkpoint=sleep) == ["failed"]
    assert cloud.purchases == 0


def test_ctrl_c_ends_what_is_under_way_and_sends_nothing_more(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    def interrupt(boundary: Boundary) -> None:
        if boundary is Boundary.AFTER_OUTCOME:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan(*(buy(f"k{n}") for n in range(6))), store, cloud, clock, checkpoint=interrupt, parallel=1)
    assert cloud.purchases < 6
    assert {i.status for i in store.intents()} == {IntentStatus.DONE}
    assert len(store.reservations()) == cloud.purchases


def test_a_freeze_in_the_middle_stops_what_is_not_sent_yet(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    made = plan(*(buy(f"k{n}") for n in range(6)))
    providers = {ProviderName.GCP: cloud}
    done = apply(made, store, providers, clock, parallel=1, forbids=lambda _: "FREEZE" if cloud.purchases == 2 else "")
    assert cloud.purchases == len(store.intents()) == 2
    assert [result.sent for result in done.results] == [True, True, False, False, False, False]
    assert {result.outcome.code for result in done.results[2:]} == {"forbidden"}
    assert done.exit is Exit.PARTLY_DONE


def test_many_actions_at_once_are_each_bought_once(store: Store, cloud: Cloud, clock: FixedClock) -> None:
    assert run(plan(*(buy(f"k{n}") for n in range(40))), store, cloud, clock) == ["done"] * 40
    assert cloud.purchases == len(store.reservations()) == 40
    assert {r.owner.lineage for r in store.reservations() if r.owner} == {LINEAGE}


def test_growth_that_finds_no_capacity_cools_the_offer_that_it_would_be_bought_as(
    store: Store, cloud: Cloud, clock: FixedClock
) -> None:
    """The same id for growth and for a new purchase there, also in a region without zones."""
    place = Place(Scope(ProviderName.AZURE, "sub", "eastus"), "")
    action = resize("k2", msgspec.structs.replace(held(), place=place), 3)
    intent = intent_of(action, "p", "r", T0)
    offer = Offer(place=place, shape=Shape(action.reservation.machine_type, "h100", 8), price=None)
    assert intent.offer_id == offer.id
