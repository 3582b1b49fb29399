"""What counts as supply, and for whom: nothing is bought beside it."""

from datetime import datetime, timedelta

import msgspec
import pytest

from broker.model.intent import IntentStatus
from broker.model.request import ResizeRequest
from broker.model.reservation import ReservationState
from broker.model.snapshot import Trust
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AWS,
    DEAR,
    EAST_A,
    H100,
    HOUR,
    LINEAGE,
    MINUTE,
    NOW,
    bought,
    held,
    intent,
    job,
    offer,
    policy,
    why_not,
    world,
)


@pytest.mark.parametrize("status", [IntentStatus.PLANNED, IntentStatus.UNKNOWN])
def test_a_purchase_of_unknown_outcome_is_supply(status: IntentStatus) -> None:
    assert bought(decide(world(job(), offers=(offer(),), intents=(intent(status=status),)), policy())) == []


@pytest.mark.parametrize("status", [IntentStatus.FAILED, IntentStatus.UNFILLED, IntentStatus.REFUSED])
def test_a_purchase_that_failed_is_no_supply(status: IntentStatus) -> None:
    assert bought(decide(world(job(), offers=(offer(),), intents=(intent(status=status),)), policy())) != []


def test_a_purchase_too_young_to_be_listed_is_supply() -> None:
    young = intent(status=IntentStatus.DONE, sent=NOW - 4 * MINUTE, reservation_id="cr-9")
    assert bought(decide(world(job(), offers=(offer(),), intents=(young,)), policy())) == []
    old = intent(status=IntentStatus.DONE, sent=NOW - 6 * MINUTE, reservation_id="cr-9")
    assert bought(decide(world(job(), offers=(offer(),), intents=(old,)), policy())) == [("us-east-1a", 1)]


def test_what_is_listed_is_not_counted_again_from_the_ledger() -> None:
    known = intent(key="keycr-1", status=IntentStatus.DONE, sent=NOW - MINUTE, reservation_id="cr-1")
    plan = decide(world(job("a"), job("b"), offers=(offer(),), reservations=(held(),), intents=(known,)), policy())
    assert bought(plan) == [("us-east-1a", 1)]


def test_a_growth_of_unknown_outcome_is_supply() -> None:
    request = ResizeRequest(key="g", lineage=LINEAGE, place=EAST_A, reservation_id="cr-1", from_count=1, to_count=3)
    jobs = [job(f"j{number}") for number in range(3)]
    plan = decide(
        world(*jobs, offers=(offer(),), reservations=(held(),), intents=(intent("g", request=request),)), policy()
    )
    assert bought(plan) == []


def test_a_growth_too_young_to_be_listed_is_supply() -> None:
    request = ResizeRequest(key="g", lineage=LINEAGE, place=EAST_A, reservation_id="cr-1", from_count=1, to_count=2)
    seen = world(job("a"), job("b"), offers=(offer(),), reservations=(held(),))
    young, old = (
        intent("g", request=request, status=IntentStatus.DONE, reservation_id="cr-1", sent=NOW - minutes * MINUTE)
        for minutes in (4, 6)
    )
    assert bought(decide(msgspec.structs.replace(seen, intents=(young,)), policy())) == []
    assert bought(decide(msgspec.structs.replace(seen, intents=(old,)), policy())) == [("us-east-1a", 1)]


def test_a_cloud_that_cannot_be_read_is_neither_empty_nor_bought_in() -> None:
    """What was bought there still counts; the next cheapest cloud serves the rest."""
    mine = intent(status=IntentStatus.DONE, sent=NOW - 9 * HOUR, reservation_id="cr-9")
    seen = world(job("a"), job("b"), offers=(offer(), DEAR), intents=(mine,), trust={AWS: Trust.UNKNOWN})
    plan = decide(seen, policy())
    assert bought(plan) == [("us-central1-a", 1)]
    assert "could not be listed" in why_not(plan, offer().id)
    blind = msgspec.structs.replace(seen.scopes[0], offers=())
    assert bought(decide(msgspec.structs.replace(seen, scopes=(blind, *seen.scopes[1:])), policy())) == [
        ("us-central1-a", 1)
    ]


def test_while_a_purchase_of_unknown_size_may_exist_nothing_more_is_bought_for_its_pool() -> None:
    request = msgspec.structs.replace(intent().request, machine_type="brand-new.48xlarge")
    for pool, expected in (("h100", []), ("", []), ("other", [("us-east-1a", 1)])):
        plan = decide(world(job(), offers=(offer(),), intents=(intent(request=request, pool=pool),)), policy())
        assert bought(plan) == expected
    assert "no list says how many GPUs" in why_not(
        decide(world(job(), offers=(offer(),), intents=(intent(request=request),)), policy()), offer().id
    )


@pytest.mark.parametrize("state", [ReservationState.PENDING, ReservationState.UNKNOWN, ReservationState.ACTIVE])
def test_supply_in_any_living_state_is_counted(state: ReservationState) -> None:
    assert bought(decide(world(job(), offers=(offer(),), reservations=(held(state=state),)), policy())) == []


@pytest.mark.parametrize("state", [ReservationState.CANCELLING, ReservationState.FAILED, ReservationState.EXPIRED])
def test_supply_that_is_gone_or_going_is_not(state: ReservationState) -> None:
    assert bought(decide(world(job(), offers=(offer(),), reservations=(held(state=state),)), policy())) != []


def test_supply_counts_only_within_its_window_less_the_drain_margin() -> None:
    """A block ends in 24 h: usable until 30 min before, and 5 min are kept free."""
    block = held(owner=None, usable_until=NOW + 23.5 * HOUR, ends=NOW + 24 * HOUR)
    fits = job(time_limit_s=int(timedelta(hours=23, minutes=20).total_seconds()))
    assert bought(decide(world(fits, offers=(offer(),), reservations=(block,)), policy())) == []
    too_long = job(time_limit_s=24 * 3600)
    assert bought(decide(world(too_long, offers=(offer(),), reservations=(block,)), policy())) != []
    later = held(state=ReservationState.SCHEDULED, usable_from=NOW + 2 * HOUR)
    assert bought(decide(world(fits, offers=(offer(),), reservations=(later,)), policy())) != []
    waits = job(not_before=NOW + 30 * MINUTE)
    soon = held(state=ReservationState.SCHEDULED, usable_from=NOW + 20 * MINUTE)
    assert bought(decide(world(waits, offers=(offer(),), reservations=(soon,)), policy())) == []


@pytest.mark.parametrize("was_to_begin", [None, NOW - HOUR, NOW])
def test_what_is_scheduled_and_has_not_begun_serves_no_job_that_waits_now(was_to_begin: datetime | None) -> None:
    """Delayed, or still being assessed: whatever its date says, nothing can start on it."""
    delayed = held(owner=None, state=ReservationState.SCHEDULED, usable_from=was_to_begin)
    assert bought(decide(world(job(), offers=(offer(),), reservations=(delayed,)), policy())) == [("us-east-1a", 1)]
    later = job(not_before=NOW + 30 * MINUTE)
    assert bought(decide(world(later, offers=(offer(),), reservations=(delayed,)), policy())) == []


def test_what_is_on_an_outpost_serves_nobody_in_the_region() -> None:
    outpost = held(owner=None, match=(("outpost", "arn:aws:outposts:us-east-1:1:outpost/op-1"),))
    assert bought(decide(world(job(), offers=(offer(),), reservations=(outpost,)), policy())) == [("us-east-1a", 1)]


def test_an_end_of_ours_that_can_be_moved_bounds_nothing() -> None:
    mine = held(ends=NOW + 20 * HOUR, usable_until=NOW + 20 * HOUR)
    assert bought(decide(world(job(time_limit_s=72 * 3600), offers=(offer(),), reservations=(mine,)), policy())) == []


def test_interruptible_supply_is_a_guarantee_to_nobody_who_needs_one() -> None:
    shaky = held(interruptible=True)
    assert bought(decide(world(job(), offers=(offer(),), reservations=(shaky,)), policy())) != []
    assert bought(decide(world(job(preemptible=True), offers=(offer(),), reservations=(shaky,)), policy())) == []


def test_supply_that_a_launch_would_not_match_is_not_counted_and_named() -> None:
    dedicated = held(match=(("platform", "Linux/UNIX"), ("tenancy", "dedicated")))
    plan = decide(world(job(), offers=(offer(),), reservations=(dedicated,)), policy())
    assert bought(plan) != []
    assert any("tenancy is dedicated, needed default" in note for note in plan.notes)
    asks = msgspec.structs.replace(H100, match=(("tenancy", "dedicated"),))
    assert bought(decide(world(job(), offers=(offer(),), reservations=(dedicated,)), policy(asks))) == []
    usual = held(match=(("platform", "Linux/UNIX"), ("tenancy", "default")))
    assert bought(decide(world(job(), offers=(offer(),), reservations=(usual,)), policy())) == []


def test_what_others_use_is_not_free_and_what_they_leave_is() -> None:
    other = held(owner=None, count=2, used=1)
    assert bought(decide(world(job("a"), offers=(offer(),), reservations=(other,)), policy())) == []
    assert bought(decide(world(job("a"), job("b"), offers=(offer(),), reservations=(other,)), policy())) == [
        ("us-east-1a", 1)
    ]
