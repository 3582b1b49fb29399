"""Each limit, at the dollar and the instance that decides."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from broker.errors import UsageError
from broker.guard import GuardName, guard
from broker.model.intent import IntentStatus
from broker.model.plan import Extend, Keep, Plan, Release, Reversibility
from broker.model.policy import Guards, Mode, PlaceRule, Policy, Pool, Tenant
from broker.model.reservation import Owner
from broker.model.snapshot import Snapshot, Spend
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AWS,
    CENTRAL,
    EAST_B,
    GCP,
    GCP_BIG,
    HOUR,
    MINUTE,
    NOW,
    bought,
    given_back,
    held,
    idle,
    intent,
    job,
    offer,
    policy,
    source,
    world,
)

USD = Decimal


def two_pools() -> tuple[Pool, Pool]:
    places = (PlaceRule(provider=AWS.provider),), (PlaceRule(provider=GCP.provider),)
    return (
        Pool(name="a", gpu_models=("h100",), places=places[0], queues=("a",)),
        Pool(name="b", gpu_models=("h100",), places=places[1], queues=("b",)),
    )


def two_purchases(first: int = 2, **given: Any) -> Snapshot:
    """`first` instances at $40 in pool a, and one at $50 in pool b."""
    jobs = [job(f"a{number}", queue="a") for number in range(first)]
    offers = (offer(), offer(CENTRAL, GCP_BIG, "50"))
    return world(*jobs, job("b", queue="b", tenant="nlp"), offers=offers, **given)


def guarded(seen: Snapshot, rules: Policy, *force: str) -> Plan:
    return guard(decide(seen, rules), seen, rules, force)


def limited(*pools: Pool, **limits: Any) -> Policy:
    return policy(*(pools or two_pools()), guards=Guards(**limits))


def names(plan: Plan) -> list[str]:
    return [refusal.guard for refusal in plan.refusals]


def test_without_limits_nothing_is_refused() -> None:
    plan = guarded(two_purchases(), limited())
    assert bought(plan) == [("us-east-1a", 2), ("us-central1-a", 1)]
    assert plan.refusals == ()


@pytest.mark.parametrize("limit", ["max_usd_per_run", "max_usd_per_hour", "max_usd_per_month"])
def test_a_budget_holds_to_the_cent(limit: str) -> None:
    """2 x $40 + $50 for one hour at least are $130."""
    assert guarded(two_purchases(), limited(**{limit: USD(130)})).refusals == ()
    plan = guarded(two_purchases(), limited(**{limit: USD("129.99")}))
    assert bought(plan) == [("us-east-1a", 2)]
    (refusal,) = plan.refusals
    assert (refusal.guard, refusal.forceable) == (limit, False)
    assert "$130.00" in refusal.reason.text and "$80.00 before it" in refusal.reason.text
    assert ("limit_usd", "129.99") in refusal.reason.numbers


def test_together_over_the_budget_the_first_that_fit_in_plan_order_stay() -> None:
    """$80 does not fit into $60; the later $50 does."""
    assert bought(guarded(two_purchases(), limited(max_usd_per_run=USD(60)))) == [("us-central1-a", 1)]
    assert bought(guarded(two_purchases(), limited(max_usd_per_run=USD(80)))) == [("us-east-1a", 2)]
    assert bought(guarded(two_purchases(), limited(max_usd_per_run=USD(49)))) == []


def test_the_refusal_names_the_action_that_it_takes_out() -> None:
    seen, rules = two_purchases(), limited(max_usd_per_run=USD(60))
    before = decide(seen, rules)
    plan = guard(before, seen, rules)
    gone = [action for action in before.changes if action not in plan.actions]
    assert [refusal.key for refusal in plan.refusals] == [
        action.request.key for action in gone if not isinstance(action, Keep)
    ]
    assert plan.id == before.id


def test_rate_and_month_cover_what_is_held_and_what_may_be() -> None:
    """One held at $40/h and one purchase of unknown outcome at $40/h stand beside the new $50/h."""
    ours = held("cr-h", usd_per_hour=USD(40), used=1)
    open_one = intent("k9", place=EAST_B)
    seen = two_purchases(2, reservations=(ours,), intents=(open_one,))
    assert bought(decide(seen, limited())) == [("us-central1-a", 1)]
    assert guarded(seen, limited(max_usd_per_hour=USD(130))).refusals == ()
    assert names(guarded(seen, limited(max_usd_per_hour=USD("129.99")))) == ["max_usd_per_hour"]
    spent = msgspec.structs.replace(seen, spend=Spend(month_usd=USD(1000)))
    assert guarded(spent, limited(max_usd_per_month=USD(1130))).refusals == ()
    assert names(guarded(spent, limited(max_usd_per_month=USD("1129.99")))) == ["max_usd_per_month"]


def test_what_a_release_would_free_is_not_counted_on() -> None:
    idling = held("g-1", place=CENTRAL, shape=GCP_BIG, usd_per_hour=USD(50))
    pool = two_pools()[0]
    seen = world(job("a", queue="a"), offers=(offer(),), reservations=(idling,), idle=(idle("g-1", 5 * HOUR, GCP),))
    plan = guarded(seen, limited(pool, max_usd_per_hour=USD(60)))
    assert given_back(plan) == [("g-1", 0)]
    assert bought(plan) == [] and names(plan) == ["max_usd_per_hour"]


def test_an_unknown_price_among_what_is_held_is_not_zero() -> None:
    unpriced = held("x-1", place=CENTRAL, usd_per_hour=None)
    seen = world(job("a", queue="a"), offers=(offer(),), reservations=(unpriced,))
    plan = guarded(seen, limited(two_pools()[0], max_usd_per_hour=USD(1000)))
    assert bought(plan) == []
    assert "no price for x-1" in plan.refusals[0].reason.text
    assert bought(guarded(seen, limited(two_pools()[0], max_usd_per_run=USD(1000)))) != []


def test_a_tenants_budget_counts_its_share_of_what_is_bought_and_held() -> None:
    """A job of 6 GPUs and one of 2 share $40: nlp pays a quarter, $10."""
    jobs = (job("v", 6), job("n", 2, tenant="nlp"))
    spend = Spend(month_usd=USD(500), by_tenant=(("nlp", USD(90)),))
    seen = world(*jobs, offers=(offer(),), spend=spend)

    def rules(usd: str) -> Policy:
        return policy(tenants=(Tenant(name="nlp", budget_usd_per_month=USD(usd)),))

    assert guarded(seen, rules("100")).refusals == ()
    plan = guarded(seen, rules("99.99"))
    assert bought(plan) == [] and names(plan) == ["budget_usd_per_month"]
    assert "$100.00 this month for nlp" in plan.refusals[0].reason.text
    mine = intent(
        "keycr-1", status=IntentStatus.DONE, sent=NOW - 9 * HOUR, reservation_id="cr-1", tenants=(("nlp", 1.0),)
    )
    full = held(used=1)
    runs = msgspec.structs.replace(seen, scopes=world(offers=(offer(),), reservations=(full,)).scopes, intents=(mine,))
    extra = msgspec.structs.replace(runs, sources=(source(job("n", 8, tenant="nlp"), job("m", 8, tenant="nlp")),))
    assert guarded(extra, rules("170")).refusals == ()  # 90 + 40 held + 40 new
    assert names(guarded(extra, rules("169.99"))) == ["budget_usd_per_month"]


def test_the_size_of_change_is_bounded_both_ways_and_can_be_forced() -> None:
    rules = limited(max_new_instances=2)
    plan = guarded(two_purchases(), rules)
    assert bought(plan) == [("us-east-1a", 2)]
    assert names(plan) == ["max_new_instances"] and plan.refusals[0].forceable
    assert "3 new instances in one run (2 before it) are more than 2" in plan.refusals[0].reason.text
    assert guarded(two_purchases(), rules, "max_new_instances").refusals == ()

    both = world(
        offers=(offer(),),
        reservations=(held("cr-1", 2), held("cr-2")),
        idle=(idle("cr-1", 5 * HOUR), idle("cr-2", 5 * HOUR)),
    )
    plan = guarded(both, policy(guards=Guards(max_released_instances=2)))
    assert given_back(plan) == [("cr-1", 0)] and names(plan) == ["max_released_instances"]
    assert plan.refusals[0].reason.text.endswith("are more than 2")
    never = guarded(both, policy(guards=Guards(max_released_instances=1)))
    assert given_back(never) == [("cr-2", 0)]
    assert never.refusals[0].reason.text.endswith("are more than 1; by itself it is: no run will do it")


def test_on_old_observations_nothing_is_done_but_renewal() -> None:
    old = source(job("q"), job("r"), as_of=NOW - 31 * MINUTE)
    seen = world(sources=(old,), offers=(offer(),), reservations=(held(ends=NOW + HOUR, used=1),))
    plan = guarded(seen, policy())
    assert [type(action) for action in plan.changes] == [Extend]
    assert names(plan) == ["max_data_age"] and "31 min from now; at most 30" in plan.refusals[0].reason.text
    assert bought(guarded(seen, policy(), "max_data_age")) == [("us-east-1a", 1)]
    fresh = msgspec.structs.replace(seen, sources=(source(job("q"), job("r"), as_of=NOW - 30 * MINUTE),))
    assert guarded(fresh, policy()).refusals == ()
    other = (source(job("q"), job("r")), source(name="x", as_of=NOW - 5 * HOUR, pools=("elsewhere",)))
    assert guarded(msgspec.structs.replace(seen, sources=other), policy()).refusals == ()


def test_frozen_and_observing_refuse_the_whole_plan_and_show_what_is_kept() -> None:
    seen = two_purchases(reservations=(held(used=1),))
    frozen = msgspec.structs.replace(seen, frozen_by="FREEZE")
    for plan, name in (
        (guarded(frozen, limited()), "freeze_file"),
        (guarded(seen, policy(*two_pools(), mode=Mode.OBSERVE)), "mode"),
    ):
        assert plan.changes == ()
        assert [type(action) for action in plan.actions] == [Keep]
        assert [(refusal.guard, refusal.key) for refusal in plan.refusals] == [(name, "")]
    clock = guarded(msgspec.structs.replace(seen, frozen_by="this machine's clock"), limited()).refusals[0]
    assert "while it exists" not in clock.reason.text, "a wrong clock is no file"
    nothing = world(offers=(offer(),))
    assert guarded(msgspec.structs.replace(nothing, frozen_by="FREEZE"), policy()).refusals == ()


def test_what_cannot_be_undone_needs_its_flag_and_shows_the_fee() -> None:
    seen = two_purchases()
    plan = decide(seen, limited())
    forever = [msgspec.structs.replace(action, reversibility=Reversibility.IRREVERSIBLE) for action in plan.actions]
    plan = msgspec.structs.replace(plan, actions=tuple(forever))
    refused = guard(plan, seen, limited())
    assert refused.actions == ()
    assert [refusal.reason.text for refusal in refused.refusals] == [
        "it cannot be undone and costs $80.00 in all",
        "it cannot be undone and costs $50.00 in all",
    ]
    assert guard(plan, seen, limited(allow_irreversible=True)).refusals == ()


def test_a_plan_that_would_touch_what_is_protected_or_not_ours_is_refused() -> None:
    seen = world(offers=(offer(),), reservations=(held(),), idle=(idle("cr-1", 5 * HOUR),))
    plan = decide(seen, policy())
    assert names(guard(plan, seen, policy(protect=frozenset({"cr-1"})))) == ["protect"]
    (action,) = plan.actions
    assert isinstance(action, Release)
    stolen = msgspec.structs.replace(action, reservation=held(owner=Owner("another", "k")))
    assert names(guard(msgspec.structs.replace(plan, actions=(stolen,)), seen, policy())) == ["lineage"]


@pytest.mark.parametrize("name", [name for name in GuardName if not name.forceable])
def test_budgets_and_switches_cannot_be_forced(name: GuardName) -> None:
    with pytest.raises(UsageError, match=f"the guard {name} cannot be forced"):
        guarded(two_purchases(), limited(), name)


def test_an_unknown_guard_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(UsageError, match="max_data_age, max_new_instances, max_released_instances"):
        guarded(two_purchases(), limited(), "max_new_instance")


def test_a_purchase_that_lost_its_price_is_refused_even_where_no_budget_is_set() -> None:
    """As in a plan that was saved and edited, or made by another version."""
    seen, rules = two_purchases(), limited(*two_pools())
    made = decide(seen, rules)
    unpriced = tuple(msgspec.structs.replace(action, usd_per_hour=None) for action in made.changes)
    left = guard(msgspec.structs.replace(made, actions=unpriced), seen, rules)
    assert left.changes == ()
    assert {refusal.guard for refusal in left.refusals} == {GuardName.RUN_BUDGET}
