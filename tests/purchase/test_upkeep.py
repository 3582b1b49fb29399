"""What is renewed, shrunk, given back and kept; the sums are worked by hand."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from broker.model.intent import IntentStatus
from broker.model.job import JobState
from broker.model.plan import Extend, Keep, Plan, Release, Resize
from broker.model.request import ReleaseRequest
from broker.model.reservation import Owner, ReservationState
from broker.model.snapshot import Snapshot, Trust
from broker.purchase.decide import decide
from broker.purchase.trust import doubts
from tests.purchase.worlds import (
    AWS,
    CENTRAL,
    EAST_A,
    EAST_B,
    GCP,
    H100,
    HOUR,
    LINEAGE,
    MINUTE,
    NOW,
    given_back,
    held,
    idle,
    intent,
    job,
    offer,
    policy,
    scope_view,
    source,
    world,
)

LONG_IDLE = (idle("cr-1", 2 * HOUR),)


def kept(plan: Plan, name: str = "cr-1") -> str:
    """The reasons for keeping it."""
    found = [one for one in plan.actions if isinstance(one, Keep) and one.reservation.id == name]
    return "; ".join(reason.text for one in found for reason in one.reasons)


def lonely(**given: Any) -> Snapshot:
    given.setdefault("reservations", (held(),))
    given.setdefault("idle", LONG_IDLE)
    return world(offers=(offer(),), **given)


def test_idle_cost_decides_to_the_minute_and_is_shown_in_dollars() -> None:
    """2 instances x $40 idle for 89 min cost $118.67; 90 min to get them back are worth $120.00."""
    rules = policy(purchase={"reacquire": 90 * MINUTE})
    two = (held(count=2),)
    before = decide(lonely(reservations=two, idle=(idle("cr-1", 89 * MINUTE),)), rules)
    assert given_back(before) == []
    assert kept(before) == "2 idle for 89 min, $118.67; $120.00 for 90 min is not reached"
    after = decide(lonely(reservations=two, idle=(idle("cr-1", 90 * MINUTE),)), rules)
    (action,) = after.actions
    assert isinstance(action, Release)
    assert action.usd_per_hour == Decimal(-80)
    assert action.reasons[0].text == "2 idle for 90 min, $120.00; $120.00 for 90 min is reached"


def test_the_longer_of_minimum_hold_and_reacquire_hours_rules() -> None:
    seen = lonely()
    assert given_back(decide(seen, policy(purchase={"minimum_hold": 3 * HOUR}))) == []
    assert given_back(decide(seen, policy(purchase={"reacquire": 3 * HOUR}))) == []
    assert given_back(decide(seen, policy())) == [("cr-1", 0)]


def test_nothing_is_given_back_within_the_minimum_hold_after_purchase() -> None:
    grown = intent("keycr-1", status=IntentStatus.DONE, sent=NOW - 30 * MINUTE, reservation_id="cr-1")
    plan = decide(lonely(intents=(grown,)), policy())
    assert given_back(plan) == []
    assert "bought 30 min ago: held for at least 60" in kept(plan)


def test_what_came_after_the_last_use_has_idled_only_since_it_came() -> None:
    """The reservation was last used long ago; it grew since, past the minimum hold, yet the threshold is longer."""
    grown = intent("keycr-1", status=IntentStatus.DONE, sent=NOW - 2 * HOUR, reservation_id="cr-1")
    seen = lonely(intents=(grown,), idle=(idle("cr-1", 48 * HOUR),))
    assert given_back(decide(seen, policy(purchase={"reacquire": 3 * HOUR}))) == []
    assert given_back(decide(seen, policy(purchase={"reacquire": 2 * HOUR}))) == [("cr-1", 0)]


def test_never_seen_idle_is_not_idle() -> None:
    assert given_back(decide(lonely(idle=()), policy())) == []


def test_once_its_jobs_are_gone_the_grace_must_pass_too() -> None:
    bought = intent("keycr-1", status=IntentStatus.DONE, sent=NOW - 9 * HOUR, reservation_id="cr-1", jobs=("gone",))
    rules = policy(purchase={"minimum_hold": MINUTE, "reacquire": MINUTE, "release_grace": 15 * MINUTE})
    early = lonely(intents=(bought,), idle=(idle("cr-1", 14 * MINUTE),))
    assert given_back(decide(early, rules)) == []
    assert given_back(decide(lonely(intents=(bought,), idle=(idle("cr-1", 15 * MINUTE),)), rules)) == [("cr-1", 0)]


def test_what_the_queue_wants_stays() -> None:
    plan = decide(world(job(), offers=(offer(),), reservations=(held(),), idle=LONG_IDLE), policy())
    assert given_back(plan) == []
    assert "1 wanted of 1" in kept(plan)
    doubtful = world(job(state=JobState.UNKNOWN), offers=(offer(),), reservations=(held(),), idle=LONG_IDLE)
    assert given_back(decide(doubtful, policy())) == []


def test_part_that_idles_is_shrunk_in_place() -> None:
    """Of 4 instances at most 1 was in use for 2 h, and one job wants one."""
    runs = job(state=JobState.RUNNING, start=NOW - HOUR)
    seen = world(runs, offers=(offer(),), reservations=(held(count=4, used=1),), idle=(idle("cr-1", 2 * HOUR, used=1),))
    (action,) = decide(seen, policy()).actions
    assert isinstance(action, Resize)
    assert (action.request.from_count, action.request.to_count) == (4, 1)
    assert action.usd_per_hour == Decimal(-120)
    lately = msgspec.structs.replace(seen, idle=(idle("cr-1", 2 * HOUR, used=3), idle("cr-1", 5 * MINUTE, used=1)))
    assert given_back(decide(lately, policy())) == [("cr-1", 3)]


def test_the_smaller_idle_reservation_goes_whole_before_the_larger_is_cut() -> None:
    """15 + 5 instances held, 15 wanted: one release of the 5, and nothing is bought anew."""
    jobs = [job(f"j{number}") for number in range(15)]
    seen = world(
        *jobs,
        offers=(offer(),),
        reservations=(held("cr-15", 15), held("cr-5", 5)),
        idle=(idle("cr-15", 2 * HOUR), idle("cr-5", 2 * HOUR)),
    )
    plan = decide(seen, policy())
    assert given_back(plan) == [("cr-5", 0)]
    assert len(plan.changes) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"used": 1}, "1 in use of 2"),
        ({"associated": 2}, "2 associated of 2"),
        ({"committed_count": 2, "committed_until": NOW + HOUR}, "2 committed of 2"),
    ],
)
def test_use_association_and_commitment_are_floors(given: dict[str, Any], says: str) -> None:
    levels = (idle("cr-1", 2 * HOUR), idle("cr-1", 2 * HOUR, used=1))
    plan = decide(lonely(reservations=(held(count=2, **given),), idle=levels), policy())
    assert ("cr-1", 0) not in given_back(plan)
    if not given_back(plan):
        assert says in kept(plan)
    over = held(count=2, committed_count=2, committed_until=NOW)
    assert given_back(decide(lonely(reservations=(over,)), policy())) == [("cr-1", 0)]


def test_a_pools_floor_is_kept_and_the_dearest_goes_first() -> None:
    two = (held("dear", usd_per_hour=Decimal(60)), held("cheap", place=EAST_B))
    pool = msgspec.structs.replace(H100, min_gpus=8)
    seen = lonely(reservations=two, idle=(idle("dear", 2 * HOUR), idle("cheap", 2 * HOUR)))
    assert given_back(decide(seen, policy(pool))) == [("dear", 0)]
    assert given_back(decide(seen, policy())) == [("cheap", 0), ("dear", 0)]


@pytest.mark.parametrize("trust", [Trust.PARTIAL, Trust.UNKNOWN])
def test_no_release_follows_from_a_source_that_is_not_complete(trust: Trust) -> None:
    plan = decide(lonely(sources=(source(trust=trust),)), policy())
    assert given_back(plan) == []
    assert f"kept because job source slurm is {trust}" in kept(plan)
    two = (source(), source(name="kueue", trust=trust, pools=("other",)))
    assert given_back(decide(lonely(sources=two), policy())) == [("cr-1", 0)]
    two = (source(), source(name="kueue", trust=trust, pools=("h100",)))
    assert given_back(decide(lonely(sources=two), policy())) == []


def test_no_release_follows_from_an_old_source_or_from_none() -> None:
    assert given_back(decide(lonely(sources=(source(as_of=NOW - 31 * MINUTE),)), policy())) == []
    assert given_back(decide(lonely(sources=(source(as_of=NOW + 31 * MINUTE),)), policy())) == []
    assert given_back(decide(lonely(sources=()), policy())) == []


@pytest.mark.parametrize("trust", [Trust.PARTIAL, Trust.UNKNOWN])
def test_no_release_follows_while_a_cloud_of_the_pool_is_not_complete(trust: Trust) -> None:
    assert given_back(decide(lonely(trust={AWS: trust}), policy())) == []
    elsewhere = lonely(reservations=(held(), held("g-1", place=CENTRAL)), trust={GCP: trust})
    assert given_back(decide(elsewhere, policy())) == []


@pytest.mark.parametrize("state", [ReservationState.PENDING, ReservationState.UNKNOWN, ReservationState.SCHEDULED])
def test_what_is_not_active_is_left_alone(state: ReservationState) -> None:
    assert given_back(decide(lonely(reservations=(held(state=state),)), policy())) == []


def test_what_is_protected_unsettled_or_not_ours_is_left_alone() -> None:
    assert given_back(decide(lonely(), policy(protect=frozenset({"cr-1"})))) == []
    request = ReleaseRequest(key="r", lineage=LINEAGE, place=EAST_A, reservation_id="cr-1")
    assert decide(lonely(intents=(intent("r", request=request),)), policy()).changes == ()
    for owner in (None, Owner("another", "k")):
        plan = decide(lonely(reservations=(held(owner=owner, ends=NOW + HOUR),)), policy())
        assert plan.changes == ()
        assert "shown, never changed" in kept(plan)


def test_a_reservation_that_serves_no_pool_any_more_is_given_back_when_idle() -> None:
    pool = msgspec.structs.replace(H100, name="b200", gpu_models=("b200",))
    assert given_back(decide(lonely(), policy(pool))) == [("cr-1", 0)]
    assert given_back(decide(lonely(sources=(source(trust=Trust.UNKNOWN),)), policy(pool))) == []


def test_an_end_is_renewed_when_less_than_half_is_left_and_it_is_wanted() -> None:
    def plan(left: timedelta, *jobs: Any, **given: Any) -> Plan:
        return decide(world(*jobs, offers=(offer(),), reservations=(held(ends=NOW + left),), **given), policy())

    (action,) = plan(12 * HOUR - MINUTE, job()).actions
    assert isinstance(action, Extend)
    assert (action.request.from_end, action.request.to_end) == (NOW + 12 * HOUR - MINUTE, NOW + 24 * HOUR)
    assert action.usd_per_hour == 0
    assert plan(12 * HOUR, job()).changes == ()
    assert plan(11 * HOUR).changes == ()
    in_doubt = plan(11 * HOUR, sources=(source(trust=Trust.UNKNOWN),))
    assert [type(action) for action in in_doubt.changes] == [Extend]


def test_a_protected_end_is_renewed_too() -> None:
    seen = lonely(reservations=(held(ends=NOW + HOUR),))
    assert [type(one) for one in decide(seen, policy(protect=frozenset({"cr-1"}))).changes] == [Extend]


def test_unlisted_scopes_are_doubted() -> None:
    seen = lonely(scopes=(scope_view(reservations=(held(),)), scope_view(GCP, trust=Trust.UNKNOWN)))
    assert given_back(decide(seen, policy())) == []


def test_a_scope_that_is_in_no_listing_is_doubted_too() -> None:
    rules = policy()
    elsewhere = msgspec.structs.replace(AWS, region="us-west-9")
    assert "us-west-9 was not listed" in doubts(rules.pools, elsewhere, world(sources=(source(),)), rules)
    assert doubts(rules.pools, AWS, world(sources=(source(),), offers=(offer(),)), rules) == ""
