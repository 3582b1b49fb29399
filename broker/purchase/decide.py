"""Snapshot in, plan out. Pure: no clock, no IO, no chance; the same snapshot gives the same plan."""

from collections.abc import Callable

import msgspec

from broker.model.plan import Action, Extend, Keep, Plan, Reason, Release, Reserve, Resize
from broker.model.policy import Policy, Pool
from broker.model.snapshot import Snapshot
from broker.purchase.buying import Basket, Buyer
from broker.purchase.covering import Coverage, cover
from broker.purchase.drafts import PoolNeed, growth, not_taken, purchases, shortfalls, unserved_jobs
from broker.purchase.earmarks import earmarks
from broker.purchase.holdings import Lot, holdings
from broker.purchase.identity import digest, with_keys
from broker.purchase.menu import Menu, MenuCard, closed
from broker.purchase.needs import Demand, DemandModel, Standing
from broker.purchase.notes import notes, spread
from broker.purchase.pools import allows_place
from broker.purchase.queue_demand import live_jobs, queue_demand
from broker.purchase.upkeep import Use, upkeep
from broker.purchase.yard import Yard


def decide(snapshot: Snapshot, policy: Policy, demand_model: DemandModel = queue_demand) -> Plan:
    """What should be bought, renewed, shrunk or given back, before any guard has looked at it.

    `demand_model` says what will be needed; by default what runs and waits in the queue.
    """
    demand = demand_model(snapshot, policy)
    lots = holdings(snapshot, policy)
    marks = earmarks(lots, demand.needs)
    yard = Yard(lots, policy, marks.kept)
    buyers = _buyers(snapshot, policy, yard, lots)
    until = snapshot.now + policy.purchase.lead
    coverage = cover(demand.needs, marks, yard, buyers.by_pool, buyers.basket, until)
    for buyer in buyers.by_pool.values():
        buyer.top_up(snapshot.now)
    return _plan(snapshot, policy, _Decided(demand, lots, yard, buyers, coverage))


class _Buyers(msgspec.Struct, frozen=True):
    by_pool: dict[str, Buyer]
    basket: Basket


class _Decided(msgspec.Struct, frozen=True):
    """All that a plan is made of."""

    demand: Demand
    lots: tuple[Lot, ...]
    yard: Yard
    buyers: _Buyers
    coverage: Coverage


def _buyers(snapshot: Snapshot, policy: Policy, yard: Yard, lots: tuple[Lot, ...]) -> _Buyers:
    card = MenuCard(snapshot, policy)
    basket = Basket(offer for view in snapshot.scopes for offer in view.offers)
    held = _gpus(policy, yard, lots, lambda lot: lot.gpus)
    lacking = _gpus(policy, yard, lots, lambda lot: lot.missing * lot.gpus_per_instance)
    buyers = {
        pool.name: Buyer(
            pool, _menu(card.menu(pool), pool, lots), yard, held[pool.name], basket, lacking_gpus=lacking[pool.name]
        )
        for pool in policy.pools
    }
    return _Buyers(buyers, basket)


def _menu(menu: Menu, pool: Pool, lots: tuple[Lot, ...]) -> Menu:
    """Nothing is bought for a pool while a purchase for it may exist whose size nobody can tell."""
    for lot in lots:
        concerns = lot.pool == pool.name if lot.pool else allows_place(pool, lot.place)
        if lot.ours and lot.reservation is None and not lot.gpus_per_instance and concerns:
            text = (
                f"{lot.count} x {lot.machine_type} may be held in {lot.place}, and no list says how many GPUs that is"
            )
            return closed(menu, Reason(text))
    return menu


def _gpus(policy: Policy, yard: Yard, lots: tuple[Lot, ...], of: Callable[[Lot], int]) -> dict[str, int]:
    """By pool, summed over the lots that count for it."""
    found = {pool.name: 0 for pool in policy.pools}
    for lot in lots:
        for pool in yard.serving(lot):
            found[pool.name] += of(lot)
    return found


def _plan(snapshot: Snapshot, policy: Policy, decided: _Decided) -> Plan:
    grown = growth(decided.buyers.by_pool.values(), decided.lots, policy)
    actions = [*_purchases(snapshot, policy, decided, grown), *_upkeep(snapshot, policy, decided, grown)]
    ordered = sorted(actions, key=_order)
    buyers = decided.buyers.by_pool.values()
    draft = Plan(
        id="",
        lineage=snapshot.lineage,
        serial=snapshot.serial,
        made=snapshot.now,
        expires=snapshot.now + policy.purchase.plan_lifetime,
        snapshot_digest=digest(snapshot),
        policy_digest=digest(policy),
        actions=tuple(ordered),
        not_taken=tuple(entry for buyer in buyers for entry in not_taken(buyer)),
        shortfalls=(*shortfalls(decided.coverage.short), *unserved_jobs(decided.demand.unserved)),
        notes=(
            *notes(snapshot, policy, decided.lots, decided.demand.needs, decided.coverage.outside),
            *spread(ordered, decided.demand.needs),
        ),
    )
    plan_id = digest(draft)
    return msgspec.structs.replace(draft, id=plan_id, actions=with_keys(ordered, snapshot.lineage, plan_id))


def _purchases(snapshot: Snapshot, policy: Policy, decided: _Decided, grown: dict[str, Lot]) -> list[Action]:
    wanted: dict[str, int] = {}
    until = snapshot.now + policy.purchase.lead
    for need in decided.demand.needs:
        if need.begins <= until and need.standing is not Standing.DOUBTFUL:
            wanted[need.pool] = wanted.get(need.pool, 0) + need.gpus
    return [
        action
        for name, buyer in decided.buyers.by_pool.items()
        for action in purchases(
            buyer, PoolNeed(wanted.get(name, 0), buyer.held_gpus, buyer.bought_gpus), grown, snapshot, policy
        )
    ]


def _upkeep(snapshot: Snapshot, policy: Policy, decided: _Decided, grown: dict[str, Lot]) -> list[Action]:
    growing = {lot.key for lot in grown.values()}
    yard = decided.yard
    uses = [
        Use(
            lot=lot,
            reservation=lot.reservation,
            wanted=sum(node.touched for node in yard.nodes.get(lot.key, ())),
            pools=yard.serving(lot),
            grows=lot.key in growing,
        )
        for lot in decided.lots
        if lot.reservation is not None
    ]
    live = frozenset(job.id for job in live_jobs(snapshot.sources).values())
    held = {name: buyer.held_gpus + buyer.bought_gpus for name, buyer in decided.buyers.by_pool.items()}
    return upkeep(uses, live, snapshot, policy, held)


_SEQUENCE = {Extend: 0, Reserve: 1, Resize: 2, Release: 3, Keep: 4}


def _order(action: Action) -> tuple[int, str, str, str]:
    """Renewals first, since they guard what is held; then purchases; then what gives back."""
    request = action.reservation if isinstance(action, Keep) else action.request
    name = action.offer.id if isinstance(action, Reserve) else action.reservation.id
    return (_SEQUENCE[type(action)], action.pool, str(request.place), name)
