"""What must hold for every snapshot and policy."""

from decimal import Decimal
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.guard import guard
from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.offer import Allowance
from broker.model.place import Place, Scope
from broker.model.plan import Action, Extend, Keep, Plan, Release, Reserve, Resize
from broker.model.policy import Policy
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import ScopeView, Snapshot, SourceView, Trust
from broker.purchase.decide import decide
from broker.purchase.outlay import outlay
from tests.purchase import strategies as some
from tests.purchase.worlds import (
    BIG,
    EAST_A,
    EAST_B,
    LINEAGE,
    NOW,
    ONE,
    added,
    given_back,
    held,
    job,
    offer,
    policy,
    source,
    world,
)

Examples = settings(max_examples=60)
SUPPLY = st.lists(st.tuples(some.places, st.sampled_from([1, 2, 4, 8]), st.integers(1, 3)), max_size=5)
Many = settings(max_examples=2000, deadline=None)


def purchases(plan: Plan) -> list[Reserve | Resize]:
    return [action for action in plan.actions if isinstance(action, Reserve | Resize) and added(action) > 0]


def where_and_how_many(plan: Plan) -> list[tuple[str, str, int]]:
    return [(str(action.request.place), _type(action), added(action)) for action in purchases(plan)]


def _type(action: Reserve | Resize) -> str:
    return action.request.machine_type if isinstance(action, Reserve) else action.reservation.machine_type


def _offer_id(action: Reserve | Resize) -> str:
    place = action.request.place
    return f"{place.scope}/{place.zone or 'regional'}/{_type(action)}/on-demand"


@Examples
@given(some.snapshots(), some.policies())
def test_the_same_snapshot_gives_the_same_plan(seen: Snapshot, rules: Policy) -> None:
    copy = msgspec.json.decode(msgspec.json.encode(seen), type=Snapshot)
    assert decide(copy, rules) == decide(seen, rules)


@Examples
@given(some.snapshots(), some.policies(), st.randoms(use_true_random=False))
def test_the_order_in_which_a_source_lists_its_jobs_changes_nothing(
    seen: Snapshot, rules: Policy, chance: Random
) -> None:
    def shuffled(view: SourceView) -> SourceView:
        return msgspec.structs.replace(view, jobs=tuple(chance.sample(view.jobs, len(view.jobs))))

    other = msgspec.structs.replace(seen, sources=tuple(shuffled(view) for view in seen.sources))
    one, two = decide(seen, rules), decide(other, rules)
    assert where_and_how_many(one) == where_and_how_many(two)
    assert given_back(one) == given_back(two)


@Examples
@given(some.snapshots(), some.policies())
def test_the_same_queue_fed_twice_is_bought_for_once(seen: Snapshot, rules: Policy) -> None:
    again = tuple(msgspec.structs.replace(view, source=f"{view.source}-copy") for view in seen.sources)
    twice = msgspec.structs.replace(seen, sources=(*seen.sources, *again))
    assert where_and_how_many(decide(twice, rules)) == where_and_how_many(decide(seen, rules))


@Examples
@given(some.snapshots(), some.policies())
def test_nothing_is_bought_without_a_price_a_complete_listing_or_a_whole_gpu(seen: Snapshot, rules: Policy) -> None:
    trust = {view.scope: view.trust for view in seen.scopes}
    priced = {one.id for view in seen.scopes for one in view.offers if one.price is not None and one.quota_left != 0}
    for action in purchases(decide(seen, rules)):
        assert trust[action.request.place.scope] is Trust.COMPLETE
        assert action.usd_per_hour is not None and action.usd_per_hour > 0
        assert _offer_id(action) in priced


def _drawn(seen: Snapshot, plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """By quota: what the plan's purchases take of it, and the least that was seen to be left."""
    offers = {one.id: one for view in seen.scopes for one in view.offers}
    left: dict[str, int] = {}
    for allowance in (allowance for one in offers.values() for allowance in one.allowances):
        left[allowance.quota] = min(allowance.left, left.get(allowance.quota, allowance.left))
    taken = dict.fromkeys(left, 0)
    for action in purchases(plan):
        for allowance in offers[_offer_id(action)].allowances:
            taken[allowance.quota] += allowance.per_instance * added(action)
    return taken, left


@Examples
@given(some.snapshots(complete=True), some.policies())
def test_a_plan_takes_no_more_of_any_quota_than_is_left(seen: Snapshot, rules: Policy) -> None:
    taken, left = _drawn(seen, decide(seen, rules))
    assert all(taken[quota] <= left[quota] for quota in left)


@Examples
@given(st.integers(0, 40), st.lists(st.sampled_from(["1", "7.5", "40"]), min_size=4, max_size=4))
def test_what_offers_have_in_common_is_taken_once(left: int, prices: list[str]) -> None:
    """Twelve jobs of eight GPUs, and types and zones of one region that share a quota: it is always the limit."""
    kinds = [(EAST_A, BIG), (EAST_B, BIG), (EAST_A, ONE), (EAST_B, ONE)]
    sold = tuple(
        offer(place, shape, usd, allowances=(Allowance("family", left, shape.gpus),))
        for (place, shape), usd in zip(kinds, prices, strict=True)
    )
    seen = world(*(job(f"j{n}") for n in range(12)), offers=sold)
    taken, _ = _drawn(seen, decide(seen, policy()))
    assert left - 8 < taken["family"] <= left


@Examples
@given(some.snapshots(), some.policies())
def test_only_what_bears_our_lineage_is_changed_and_the_protected_never_shrinks(seen: Snapshot, rules: Policy) -> None:
    plan = decide(seen, rules)
    for action in plan.changes:
        if isinstance(action, Reserve | Keep):
            continue
        owner = action.reservation.owner
        assert owner is not None and owner.lineage == LINEAGE == action.request.lineage
        if not isinstance(action, Extend):
            assert action.reservation.id not in rules.protect
            assert action.reservation.state is ReservationState.ACTIVE
    touched = [
        (action.reservation.place, action.reservation.id, type(action))
        for action in plan.actions
        if not isinstance(action, Reserve)
    ]
    assert len(touched) == len(set(touched))


@Examples
@given(some.snapshots(), some.policies())
def test_never_fewer_than_are_in_use(seen: Snapshot, rules: Policy) -> None:
    for action in decide(seen, rules).actions:
        if isinstance(action, Release):
            assert action.reservation.used == 0
        if isinstance(action, Resize) and not action.request.grows:
            assert 0 < action.request.to_count >= action.reservation.used


@Examples
@given(some.snapshots(complete=True), some.policies(), st.data())
def test_nothing_is_given_back_on_bad_news(seen: Snapshot, rules: Policy, data: st.DataObject) -> None:
    """One source or cloud turns unknown, with or without what it showed: what it bears on is kept."""
    bad = data.draw(st.sampled_from([Trust.PARTIAL, Trust.UNKNOWN]))
    which = data.draw(st.integers(0, 1))
    jobs = data.draw(st.sampled_from([seen.sources[which].jobs, ()]))
    sources = tuple(
        msgspec.structs.replace(view, trust=bad, jobs=jobs) if index == which else view
        for index, view in enumerate(seen.sources)
    )
    assert given_back(decide(msgspec.structs.replace(seen, sources=sources), rules)) == []
    lost = data.draw(st.sampled_from([view.scope for view in seen.scopes]))
    scopes = tuple(msgspec.structs.replace(view, trust=bad) if view.scope == lost else view for view in seen.scopes)
    assert given_back(decide(msgspec.structs.replace(seen, scopes=scopes), rules)) == []


@Examples
@given(some.snapshots(), some.policies())
def test_a_guarded_plan_exceeds_no_limit(seen: Snapshot, rules: Policy) -> None:
    """Added up here from the plan alone, beside what is held."""
    plan = guard(decide(seen, rules), seen, rules)
    limits, before = rules.guards, outlay(seen, rules)
    bought = purchases(plan)
    worst = sum((action.usd_idle_at_worst for action in bought), Decimal(0))
    rate = sum((action.usd_per_hour or Decimal(0) for action in bought), Decimal(0))
    nlp = sum(
        (action.usd_idle_at_worst * Decimal(str(dict(action.tenants).get("nlp", 0))) for action in bought), Decimal(0)
    )
    removed = sum(one.reservation.count for one in plan.actions if isinstance(one, Release)) + sum(
        one.request.from_count - one.request.to_count
        for one in plan.actions
        if isinstance(one, Resize) and not one.request.grows
    )
    if bought:
        assert _within(worst, limits.max_usd_per_run)
        assert _within(before.usd_per_hour + rate, limits.max_usd_per_hour)
        assert _within(before.usd_committed + worst, limits.max_usd_per_month)
        assert not nlp or _within(nlp, rules.tenants[0].budget_usd_per_month)
    assert _within(sum(map(added, plan.actions)), limits.max_new_instances)
    assert _within(removed, limits.max_released_instances)


def _within(value: Decimal | int, limit: Decimal | int | None) -> bool:
    return limit is None or value <= limit


@Examples
@given(some.snapshots(unlimited=True), some.policies())
def test_what_was_just_bought_is_not_bought_again(seen: Snapshot, rules: Policy) -> None:
    """Whether every outcome is unknown, or the clouds list all of it as pending: the next look buys nothing."""
    plan = decide(seen, rules)
    in_doubt = msgspec.structs.replace(seen, intents=tuple(in_doubt_intent(action) for action in purchases(plan)))
    assert purchases(decide(in_doubt, rules)) == []
    listed = msgspec.structs.replace(
        seen,
        scopes=tuple(_listing(view, plan) for view in seen.scopes),
        intents=tuple(_done(action) for action in purchases(plan)),
    )
    assert purchases(decide(listed, rules)) == []


def in_doubt_intent(action: Reserve | Resize) -> Intent:
    return Intent(
        key=action.request.key,
        plan_id="p",
        run_id="r",
        request=action.request,
        sent=NOW,
        pool=action.pool,
        jobs=action.jobs,
    )


def _done(action: Reserve | Resize) -> Intent:
    name = action.request.key if isinstance(action, Reserve) else action.request.reservation_id
    outcome = Outcome(status=IntentStatus.DONE, at=NOW, reservation_id=name)
    return msgspec.structs.replace(in_doubt_intent(action), outcome=outcome)


def _listing(view: ScopeView, plan: Plan) -> ScopeView:
    grown = {one.reservation.id: one.request.to_count for one in purchases(plan) if isinstance(one, Resize)}
    listed = [msgspec.structs.replace(one, count=grown.get(one.id, one.count)) for one in view.reservations]
    new = [one for one in purchases(plan) if isinstance(one, Reserve) and one.request.place.scope == view.scope]
    return msgspec.structs.replace(view, reservations=(*listed, *(_pending(one) for one in new)))


def _pending(action: Reserve) -> Reservation:
    request = action.request
    made = held(request.key, request.count, request.place, action.offer.shape, state=ReservationState.PENDING)
    return msgspec.structs.replace(made, owner=Owner(LINEAGE, request.key))


@Examples
@given(
    st.lists(st.tuples(some.places, st.sampled_from([1, 2, 4, 8]), st.integers(1, 3)), max_size=5),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_a_job_is_served_exactly_if_one_place_has_its_nodes(
    supply: list[tuple[Place, int, int]], nodes: int, each: int
) -> None:
    """Counted here by brute force: sums over places, and GPUs in pieces too small, are not capacity."""
    shapes = {shape.gpus: shape for shape in some.SHAPES}
    held_ones = tuple(
        held(f"r{index}", count, place, shapes[gpus]) for index, (place, gpus, count) in enumerate(supply)
    )
    fits = any(
        sum(count for place, gpus, count in supply if place == where and gpus >= each) >= nodes for where in some.PLACES
    )
    plan = decide(world(job(gpus=nodes * each, nodes=nodes, gpus_per_node=each), reservations=held_ones), policy())
    assert (plan.shortfalls == ()) == fits


@Examples
@given(st.lists(st.integers(1, 8), min_size=1, max_size=12))
def test_what_is_bought_holds_every_job_whole(sizes: list[int]) -> None:
    """Jobs of one node each: no more fits on the purchase than its nodes hold, checked against a lower bound."""
    jobs = [job(f"j{index}", size, nodes=1, gpus_per_node=size) for index, size in enumerate(sizes)]
    (action,) = decide(world(*jobs, offers=(offer(),)), policy()).actions
    assert isinstance(action, Reserve)
    large = sum(size > 4 for size in sizes)
    assert max(-(-sum(sizes) // 8), large) <= action.request.count <= len(sizes)
    assert sorted(action.jobs) == sorted(one.id for one in jobs)


@pytest.mark.deep
@Many
@given(some.snapshots(unlimited=True), some.policies())
def test_all_of_it_many_times(seen: Snapshot, rules: Policy) -> None:
    plan = decide(seen, rules)
    assert decide(seen, rules) == plan
    keys = [action.request.key for action in plan.changes if not isinstance(action, Keep)]
    assert len(keys) == len(set(keys))
    in_doubt = msgspec.structs.replace(seen, intents=tuple(in_doubt_intent(action) for action in purchases(plan)))
    assert purchases(decide(in_doubt, rules)) == []
    assert all(_explained(action) for action in plan.actions)


def _explained(action: Action) -> bool:
    return bool(action.reasons) and all(reason.text for reason in action.reasons)


def test_scopes_are_told_apart_when_ids_are_equal() -> None:
    """Two clouds may use one id: a change names its scope."""
    scopes: set[Scope] = {place.scope for place in some.PLACES}
    twins = tuple(held("same", place=place) for place in some.PLACES if place.zone != "us-east-1b")
    plan = decide(world(reservations=twins, sources=(source(),)), policy())
    assert {action.reservation.place.scope for action in plan.actions if isinstance(action, Keep)} == scopes
