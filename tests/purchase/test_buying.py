"""What is bought: the cheapest that fits, within every limit, for jobs that wait."""

from decimal import Decimal

import msgspec
import pytest

from broker.model.intent import IntentStatus
from broker.model.job import JobState
from broker.model.offer import Offer, Shape
from broker.model.plan import Extend, Keep, Reserve, Resize
from broker.model.policy import OwnNodes, PlaceRule, Pool
from broker.model.request import ResizeRequest
from broker.model.snapshot import Cooling
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AWS,
    AZURE,
    BIG,
    DEAR,
    EAST_A,
    EAST_B,
    EASTUS,
    GCP,
    H100,
    HOUR,
    LINEAGE,
    MINUTE,
    NOW,
    ONE,
    added,
    bought,
    held,
    intent,
    job,
    offer,
    policy,
    price,
    source,
    why_not,
    world,
)


def test_the_cheapest_offer_that_fits_is_bought_and_says_why() -> None:
    plan = decide(world(job(gpus=12), offers=(offer(), DEAR)), policy())
    (action,) = plan.actions
    assert isinstance(action, Reserve)
    assert (action.request.place, action.request.count) == (EAST_A, 2)
    assert action.usd_per_hour == Decimal(80)
    assert (action.hours, action.usd_idle_at_worst) == (Decimal(1), Decimal(80))
    assert action.jobs == ("j1",) and action.tenants == (("vision", 1.0),)
    assert "needs 12 GPUs and holds 0" in action.reasons[0].text
    assert "$5.00 per GPU-hour, cheapest of 2 offers; next best gcp/proj/us-central1" in action.reasons[1].text
    assert "dearer than" in why_not(plan, DEAR.id)


def test_an_end_is_set_only_where_it_can_be_moved() -> None:
    (action,) = decide(world(job(), offers=(offer(),)), policy()).actions
    assert isinstance(action, Reserve) and action.request.end == NOW + 24 * HOUR
    (action,) = decide(world(job(), offers=(DEAR,)), policy()).actions
    assert isinstance(action, Reserve) and action.request.end is None


def test_keys_are_short_distinct_and_the_same_for_the_same_snapshot() -> None:
    seen = world(job("a"), job("b", gpu_model=None), offers=(offer(), DEAR))
    pools = (H100, Pool(name="any", gpu_models=("h100",), places=(PlaceRule(provider=GCP.provider),), default=True))
    plan, again = decide(seen, policy(*pools)), decide(seen, policy(*pools))
    assert plan == again
    keys = [action.request.key for action in plan.changes if not isinstance(action, Keep)]
    assert len(set(keys)) == 2 and all(len(key) == 24 and key.isalnum() and key == key.lower() for key in keys)
    later = msgspec.structs.replace(seen, now=NOW + MINUTE)
    assert decide(later, policy(*pools)).id != plan.id


def test_small_jobs_share_a_large_instance_when_that_is_cheaper() -> None:
    small = offer(EAST_B, ONE, "7")
    several = [job(f"j{number}", 1) for number in range(8)]
    assert bought(decide(world(*several, offers=(offer(), small)), policy())) == [("us-east-1a", 1)]  # 40 < 8 x 7
    assert bought(decide(world(*several[:3], offers=(offer(), small)), policy())) == [("us-east-1b", 3)]  # 21 < 40
    eleven = [job(f"j{number}", 1) for number in range(11)]
    assert bought(decide(world(*eleven, offers=(offer(), small)), policy())) == [("us-east-1a", 1), ("us-east-1b", 3)]


def test_what_is_cheaper_for_each_gpu_and_not_taken_is_not_called_equal() -> None:
    plan = decide(world(job("j", 1), offers=(offer(), offer(EAST_B, ONE, "7"))), policy())
    assert bought(plan) == [("us-east-1b", 1)]
    assert "$5.00 per GPU-hour, cheaper, but fits the jobs less well than" in why_not(plan, offer().id)
    assert "1 cheaper offer fits less well" in plan.changes[0].reasons[1].text


def test_a_job_that_spans_nodes_counts_free_nodes_of_one_zone_only() -> None:
    """Two nodes are free in each of two zones; a job of four nodes fits into neither and completes the cheaper."""
    parts = (held("cr-a", 2), held("cr-b", 2, EAST_B))
    four = job(gpus=32, nodes=4, gpus_per_node=8)
    plan = decide(world(four, offers=(offer(), offer(EAST_B, usd="41")), reservations=parts), policy())
    assert bought(plan) == [("us-east-1a", 2)]


def test_fragments_serve_only_jobs_that_fit_them() -> None:
    """Eight nodes with one free GPU each are no node with eight."""
    busy = [job(f"r{number}", 7, state=JobState.RUNNING, start=NOW, nodes=1, gpus_per_node=7) for number in range(8)]
    reservations = (held(count=8, used=8),)
    wide = job(gpus=8, nodes=1, gpus_per_node=8)
    assert bought(decide(world(*busy, wide, offers=(offer(),), reservations=reservations), policy())) == [
        ("us-east-1a", 1)
    ]
    thin = job(gpus=8, nodes=8, gpus_per_node=1)
    assert bought(decide(world(*busy, thin, offers=(offer(),), reservations=reservations), policy())) == []


def test_too_wide_a_node_is_a_shortfall_with_numbers() -> None:
    plan = decide(world(job(gpus=16, nodes=1, gpus_per_node=16), offers=(offer(),)), policy())
    assert bought(plan) == []
    (short,) = plan.shortfalls
    assert (short.gpus, short.jobs) == (16, ("j1",))
    assert "needs 16 GPUs on one node; the largest instance on offer holds 8" in short.reason.text


def test_a_full_zone_cools_down_and_another_place_serves() -> None:
    cooling = (Cooling(offer().id, NOW + 20 * MINUTE, "InsufficientInstanceCapacity"),)
    plan = decide(world(job(), offers=(offer(), offer(EAST_B, usd="41")), cooling=cooling), policy())
    assert bought(plan) == [("us-east-1b", 1)]
    assert "InsufficientInstanceCapacity" in why_not(plan, offer().id) and "14:20" in why_not(plan, offer().id)
    over = (Cooling(offer().id, NOW, "InsufficientInstanceCapacity"),)
    assert bought(decide(world(job(), offers=(offer(),), cooling=over), policy())) == [("us-east-1a", 1)]


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (offer(usd=None), "no price known"),
        (msgspec.structs.replace(offer(), price=price("40", age_days=366)), "366 days old"),
        (offer(quota_left=0), "blocked by quota"),
        (offer(excluded="cannot be reserved"), "cannot be reserved"),
        (offer(shape=msgspec.structs.replace(BIG, gpus=0)), "no whole GPU"),
    ],
)
def test_an_offer_that_may_not_be_bought_is_not_and_says_why(refused: Offer, says: str) -> None:
    plan = decide(world(job(), offers=(refused,)), policy())
    assert plan.actions == ()
    assert says in why_not(plan, refused.id)
    assert says in plan.shortfalls[0].reason.text
    assert bought(decide(world(job(), offers=(refused, DEAR)), policy())) == [("us-central1-a", 1)]


def test_quota_bounds_new_purchases_and_never_what_is_held() -> None:
    two = world(job("a"), job("b"), offers=(offer(quota_left=0),), reservations=(held(count=2),))
    assert bought(decide(two, policy())) == [] and decide(two, policy()).shortfalls == ()
    zones = (offer(quota_left=1), offer(EAST_B, quota_left=1), DEAR)
    plan = decide(world(job("a"), job("b"), offers=zones), policy())
    assert bought(plan) == [("us-east-1a", 1), ("us-central1-a", 1)]
    assert "leaves 0 instances" in why_not(plan, zones[1].id)


def test_places_outside_the_pool_are_not_chosen_by_name_or_zone_id() -> None:
    only = msgspec.structs.replace(H100, places=(PlaceRule(provider=AWS.provider, zone="use1-az1"),))
    plan = decide(world(job(), offers=(offer(EAST_B, usd="1"), offer())), policy(only))
    assert bought(plan) == [("us-east-1a", 1)]
    assert "not among the places" in why_not(plan, offer(EAST_B).id)


def test_growth_in_place_comes_before_a_second_reservation() -> None:
    plan = decide(world(job("a"), job("b"), offers=(offer(),), reservations=(held(),)), policy())
    (action,) = plan.changes
    assert isinstance(action, Resize)
    assert (action.request.from_count, action.request.to_count) == (1, 2)
    assert action.usd_per_hour == Decimal(40)
    protected = decide(
        world(job("a"), job("b"), offers=(offer(),), reservations=(held(),)), policy(protect=frozenset({"cr-1"}))
    )
    assert [type(action) for action in protected.changes] == [Reserve]
    others = decide(world(job("a"), job("b"), offers=(offer(),), reservations=(held(owner=None),)), policy())
    assert [type(action) for action in others.changes] == [Reserve]


def test_idle_at_worst_is_the_rate_for_as_long_as_it_is_held_unused() -> None:
    """2 instances x $40 x 3 h, and $40 x 3 h more for the one that an existing reservation grows by."""
    rules = policy(purchase={"minimum_hold": 3 * HOUR})
    for held_now, worst in (((), 240), ((held(),), 120)):
        (action,) = decide(world(job("a"), job("b"), offers=(offer(),), reservations=held_now), rules).changes
        assert (action.hours, action.usd_idle_at_worst) == (Decimal(3), Decimal(worst))


def test_what_runs_is_bought_for_by_nobody_but_takes_its_supply() -> None:
    runs = job("r", state=JobState.RUNNING, start=NOW - HOUR)
    assert bought(decide(world(runs, offers=(offer(),)), policy())) == []
    both = world(runs, job("q"), offers=(offer(),), reservations=(held(used=1),))
    assert bought(decide(both, policy())) == [("us-east-1a", 1)]
    unused = world(runs, job("q"), offers=(offer(),), reservations=(held(used=0),))
    plan = decide(unused, policy())
    assert bought(plan) == []
    assert any("reserved instances of ours that idle meanwhile: 1, at $40.00/h" in note for note in plan.notes)


def test_a_job_that_ends_within_the_lead_makes_room_for_one_that_begins_after() -> None:
    runs = job("r", state=JobState.RUNNING, start=NOW - HOUR, time_limit_s=3600 + 600)
    reservations = (held(used=1),)
    after = job("q", not_before=NOW + 20 * MINUTE)
    assert bought(decide(world(runs, after, offers=(offer(),), reservations=reservations), policy())) == []
    before = job("q", not_before=NOW + 5 * MINUTE)
    assert bought(decide(world(runs, before, offers=(offer(),), reservations=reservations), policy())) != []
    overrun = job("r", state=JobState.RUNNING, start=NOW - 3 * HOUR, time_limit_s=3600)
    assert bought(decide(world(overrun, after, offers=(offer(),), reservations=reservations), policy())) != []


def test_own_nodes_serve_first_and_hold_what_runs_on_them() -> None:
    pool = msgspec.structs.replace(H100, own=(OwnNodes(nodes=2, gpus_per_node=8, node_patterns=("gpu*",)),))
    there = job("r", state=JobState.RUNNING, start=NOW, node_names=("gpu07",))
    assert bought(decide(world(there, job("a"), offers=(offer(),)), policy(pool))) == []
    assert bought(decide(world(there, job("a"), job("b"), offers=(offer(),)), policy(pool))) == [("us-east-1a", 1)]
    spread = world(there, job("a", 16), offers=(offer(),))
    assert bought(decide(spread, policy(pool))) == [("us-east-1a", 2)]


@pytest.mark.parametrize("state", [JobState.HELD, JobState.DONE, JobState.CANCELLED, JobState.UNKNOWN])
def test_nothing_is_bought_for_jobs_that_do_not_wait(state: JobState) -> None:
    assert bought(decide(world(job(state=state), offers=(offer(),)), policy())) == []


def test_a_dependent_job_is_demand_when_what_it_waits_for_ends() -> None:
    first = job("a", state=JobState.RUNNING, start=NOW, time_limit_s=1800)
    then = job("b", depends_on=("a",))
    assert bought(decide(world(first, then, offers=(offer(),)), policy())) != []
    assert bought(decide(world(job("a", state=JobState.RUNNING, start=NOW), then, offers=(offer(),)), policy())) == []
    assert bought(decide(world(job("a", state=JobState.HELD), then, offers=(offer(),)), policy())) == []
    assert bought(decide(world(then, offers=(offer(),)), policy())) != []
    circle = (job("a", depends_on=("b",)), job("b", depends_on=("a",)))
    assert bought(decide(world(*circle, offers=(offer(),)), policy())) == []
    chain = [job(f"c{number}", depends_on=(f"c{number - 1}",)) for number in range(1, 5000)]
    assert bought(decide(world(job("c0"), *reversed(chain), offers=(offer(),)), policy())) == [("us-east-1a", 1)]


def test_a_job_seen_by_two_sources_or_twice_is_one_job() -> None:
    twice = (source(job("a")), source(job("a", cluster="c1"), name="sacct"))
    assert bought(decide(world(sources=twice, offers=(offer(),)), policy())) == [("us-east-1a", 1)]
    attempts = source(job("a"), job("a", attempt=2, submit=NOW))
    assert bought(decide(world(sources=(attempts,), offers=(offer(),)), policy())) == [("us-east-1a", 1)]
    two = (source(job("a", cluster="c1")), source(job("a", cluster="c2"), name="other"))
    assert bought(decide(world(sources=two, offers=(offer(),)), policy())) == [("us-east-1a", 2)]
    older = source(job("a"), name="old", as_of=NOW - HOUR)
    ended = source(job("a", state=JobState.DONE), name="new")
    assert bought(decide(world(sources=(ended, older), offers=(offer(),)), policy())) == []


def test_a_pool_holds_its_floor_and_never_more_than_its_ceiling() -> None:
    floor = msgspec.structs.replace(H100, min_gpus=17)
    assert bought(decide(world(offers=(offer(),)), policy(floor))) == [("us-east-1a", 3)]
    ceiling = msgspec.structs.replace(H100, max_gpus=16)
    plan = decide(world(*[job(f"j{number}") for number in range(3)], offers=(offer(),)), policy(ceiling))
    assert bought(plan) == [("us-east-1a", 2)]
    assert [short.gpus for short in plan.shortfalls] == [8]
    assert "may hold 16 GPUs, 0 more" in plan.shortfalls[0].reason.text


def test_the_most_urgent_of_like_jobs_is_served_first() -> None:
    jobs = [job("low", priority=1), job("high", priority=9), job("middle", priority=5)]
    ceiling = msgspec.structs.replace(H100, max_gpus=16)
    plan = decide(world(*jobs, offers=(offer(),)), policy(ceiling))
    assert plan.shortfalls[0].jobs == ("low",)
    assert plan.changes[0].jobs == ("high", "middle")


def test_jobs_that_no_pool_serves_are_a_shortfall_not_a_purchase() -> None:
    plan = decide(world(job("a", gpu_model="b200"), job("b", gpu_model=None), offers=(offer(),)), policy())
    assert bought(plan) == []
    assert [(short.pool, short.jobs) for short in plan.shortfalls] == [("", ("b",)), ("", ("a",))]


def test_two_pools_never_count_one_node_twice() -> None:
    pools = (
        msgspec.structs.replace(H100, name="a", queues=("a",)),
        msgspec.structs.replace(H100, name="b", queues=("b",)),
    )
    jobs = (job("a", queue="a"), job("b", queue="b"))
    plan = decide(world(*jobs, offers=(offer(),), reservations=(held(),)), policy(*pools))
    assert bought(plan) == [("us-east-1a", 1)]


def test_shares_are_by_gpus_of_the_jobs_served() -> None:
    plan = decide(world(job("a", 6), job("b", 2, tenant="nlp"), offers=(offer(),)), policy())
    assert plan.changes[0].tenants == (("nlp", 0.25), ("vision", 0.75))


def test_a_regional_reservation_serves_a_job_that_spans_nodes() -> None:
    there = held("azr", 2, EASTUS, usd_per_hour=None)
    wide = job(gpus=16, nodes=2, gpus_per_node=8)
    assert there.place.scope == AZURE
    assert bought(decide(world(wide, offers=(offer(),), reservations=(there,)), policy())) == []


def test_no_renewal_is_drafted_for_what_has_no_end() -> None:
    plan = decide(world(job(), offers=(offer(),), reservations=(held(),)), policy())
    assert not any(isinstance(action, Extend) for action in plan.actions)


def test_what_was_bought_for_a_job_is_not_taken_by_another_and_bought_again() -> None:
    """The loose job sits on two single GPUs; the node bought for the other must not tempt it away."""
    single, double = Shape("t1", "h100", 1), Shape("t2", "h100", 2)
    loose, rigid = job("loose", 2, priority=1), job("rigid", 2, nodes=1, gpus_per_node=2)
    singles = (held("a", shape=single), held("b", shape=single))
    first = decide(world(loose, rigid, offers=(offer(shape=double),), reservations=singles), policy())
    (action,) = first.changes
    assert isinstance(action, Reserve) and action.jobs == ("rigid",)
    mine = intent(action.request.key, request=action.request, jobs=action.jobs)
    again = decide(world(loose, rigid, offers=(offer(shape=double),), reservations=singles, intents=(mine,)), policy())
    assert bought(again) == [] and again.shortfalls == ()


@pytest.mark.parametrize("status", [IntentStatus.UNFILLED, IntentStatus.REFUSED, IntentStatus.FAILED])
def test_a_job_for_which_growth_was_refused_is_bought_for_elsewhere(status: IntentStatus) -> None:
    growth = ResizeRequest(key="k2", lineage=LINEAGE, place=EAST_A, reservation_id="cr-1", from_count=1, to_count=2)
    mine = intent("k1", status=IntentStatus.DONE, reservation_id="cr-1", jobs=("a",), sent=NOW - 3 * HOUR)
    refused = intent("k2", request=growth, status=status, reservation_id="cr-1", jobs=("b",), sent=NOW - 2 * HOUR)
    seen = world(job("a"), job("b"), offers=(offer(), DEAR), reservations=(held(),), intents=(mine, refused))
    assert sum(added(action) for action in decide(seen, policy()).changes) == 1
