"""A saved plan against a world that has moved on: what no longer fits is left out, and says why."""

from typing import Any

import msgspec
import pytest

from broker.apply.revalidation import STALE, revalidated
from broker.model.plan import Keep, Plan, Resize
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import Snapshot, Trust
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AWS,
    EAST_A,
    HOUR,
    added,
    bought,
    given_back,
    held,
    idle,
    job,
    offer,
    policy,
    source,
    world,
)

LONG = (idle("cr-1", 5 * HOUR),)


def wanting(usd: str | None = "40", *reservations: Reservation, **given: Any) -> Snapshot:
    """Two jobs that need an instance each, beside what is held."""
    return world(job("a"), job("b"), offers=(offer(EAST_A, usd=usd, **given),), reservations=reservations)


def idling(count: int = 2, **given: Any) -> Snapshot:
    """A reservation that nothing has used for long."""
    return world(offers=(offer(),), reservations=(held(count=count, **given),), idle=LONG)


def left(saved: Plan, now: Snapshot) -> Plan:
    return revalidated(saved, now, policy())


def refused(saved: Plan, now: Snapshot) -> str:
    """Why the one change of the plan does not fit any more."""
    after = left(saved, now)
    assert after.changes == ()
    (action,), (refusal,) = saved.changes, after.refusals
    assert not isinstance(action, Keep)
    assert (refusal.guard, refusal.key) == (STALE, action.request.key)
    return refusal.reason.text


def growing() -> Plan:
    plan = decide(wanting("40", held()), policy())
    (action,) = plan.changes
    assert isinstance(action, Resize) and added(action) == 1
    return plan


def test_what_still_fits_stays_as_it_was() -> None:
    buying, growth, giving = decide(wanting(), policy()), growing(), decide(idling(), policy())
    assert left(buying, wanting("39.99")).changes == buying.changes
    assert left(growth, wanting("40", held())).changes == growth.changes
    assert left(giving, idling()).changes == giving.changes
    assert given_back(giving) == [("cr-1", 0)]


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"usd": "40.01"}, "costs $40.01/h now, $40/h when"),
        ({"usd": None}, "no known price now"),
        ({"excluded": "not in this region"}, "not to be bought now: not in this region"),
    ],
)
def test_neither_a_purchase_nor_growth_may_cost_more_than_planned(now: dict[str, Any], why: str) -> None:
    buying = decide(wanting(), policy())
    assert bought(buying) == [("us-east-1a", 2)]
    assert why in refused(buying, world(offers=(offer(EAST_A, **now),)))
    assert why in refused(growing(), world(offers=(offer(EAST_A, **now),), reservations=(held(),)))


def test_what_is_offered_no_more_is_not_bought() -> None:
    assert "is not offered now" in refused(decide(wanting(), policy()), world())
    assert "is not offered now" in refused(growing(), world(reservations=(held(),)))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (world(offers=(offer(),)), "is not listed now"),
        (idling(state=ReservationState.RELEASED), "is not listed now"),
        (idling(count=3), "has 3 instances now, 2 when"),
        (idling(used=1), "1 instances of cr-1 are in use now, 0 would be left"),
        (idling(associated=1), "1 instances of cr-1 are in use now, 0 would be left"),
        (msgspec.structs.replace(idling(), sources=(source(trust=Trust.PARTIAL),)), "job source slurm is partial"),
        (msgspec.structs.replace(idling(), sources=()), "no job source tells"),
    ],
)
def test_what_changed_meanwhile_is_not_given_back(now: Snapshot, why: str) -> None:
    assert why in refused(decide(idling(), policy()), now)


def test_a_listing_with_gaps_proves_nothing_for_a_saved_plan() -> None:
    partly = world(offers=(offer(),), reservations=(held(count=2),), idle=LONG, trust={AWS: Trust.PARTIAL})
    assert "is not listed now" in refused(decide(idling(), policy()), partly)
