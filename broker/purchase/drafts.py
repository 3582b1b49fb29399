"""Purchases, offers not taken and shortfalls, put into a plan's words with their numbers."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from broker.counted import number
from broker.model.job import Job
from broker.model.money import cents
from broker.model.offer import Price
from broker.model.plan import NotTaken, Reason, Reserve, Resize, Shortfall
from broker.model.policy import Policy
from broker.model.request import ReserveRequest
from broker.model.reservation import ReservationState
from broker.model.snapshot import Snapshot
from broker.purchase.buying import Buyer, Purchase
from broker.purchase.holdings import Lot
from broker.purchase.menu import Dish
from broker.purchase.needs import Need
from broker.purchase.upkeep import hold_hours, resize_request
from broker.purchase.yard import counts_for


class PoolNeed(msgspec.Struct, frozen=True):
    """GPUs of a pool within the look-ahead: what its needs want, what is held, and what of the needs is short."""

    wanted: int
    held: int
    bought: int


def purchases(
    buyer: Buyer, need: PoolNeed, grown: dict[str, Lot], snapshot: Snapshot, policy: Policy
) -> list[Reserve | Resize]:
    """One action for each offer that is bought: growth of what is held there already, else a new reservation."""
    return [
        _purchase(buyer, purchase, need, grown.get(purchase.lot), snapshot, policy)
        for _, purchase in sorted(buyer.purchases.items())
    ]


def not_taken(buyer: Buyer) -> list[NotTaken]:
    """A reason for every offer with the pool's GPUs that is not bought."""
    rest = [dish for dish in buyer.menu.dishes if dish.offer.id not in buyer.purchases]
    return [
        *(NotTaken(pool=buyer.pool.name, offer_id=dish.offer.id, reason=_passed_over(dish, buyer)) for dish in rest),
        *(NotTaken(pool=buyer.pool.name, offer_id=offer.id, reason=why) for offer, why in buyer.menu.refused),
    ]


def shortfalls(short: Iterable[tuple[Need, Reason]]) -> list[Shortfall]:
    """What no action serves, by pool and reason."""
    grouped: dict[tuple[str, Reason], list[Need]] = {}
    for need, reason in short:
        grouped.setdefault((need.pool, reason), []).append(need)
    return [
        Shortfall(
            pool=pool,
            gpus=sum(need.gpus for need in needs),
            jobs=tuple(need.job for need in needs if need.job),
            reason=reason,
        )
        for (pool, reason), needs in grouped.items()
    ]


def unserved_jobs(jobs: Iterable[Job]) -> list[Shortfall]:
    """Jobs that no pool serves, by what they ask for."""
    grouped: dict[str, list[Job]] = {}
    for job in jobs:
        grouped.setdefault(job.gpu_model or "", []).append(job)
    return [_unserved(model, found) for model, found in sorted(grouped.items())]


def _unserved(model: str, jobs: list[Job]) -> Shortfall:
    asked = f"GPUs of model {model}" if model else "no GPU model by name"
    would = f'a [[pool]] with gpu = ["{model}"]' if model else "a [[pool]] with default = true"
    reason = Reason(f"nothing serves jobs that ask {asked} ({len(jobs)}); {would} would", (("jobs", str(len(jobs))),))
    return Shortfall(pool="", gpus=sum(job.gpus for job in jobs), jobs=tuple(job.id for job in jobs), reason=reason)


def growth(buyers: Iterable[Buyer], lots: tuple[Lot, ...], policy: Policy) -> dict[str, Lot]:
    """The lot that each purchase makes grow, by the purchase's own lot; each grows at most once in a plan."""
    grown: dict[str, Lot] = {}
    for purchase in (purchase for buyer in buyers for _, purchase in sorted(buyer.purchases.items())):
        taken = {lot.key for lot in grown.values()}
        lot = _growable(purchase, [lot for lot in lots if lot.key not in taken], policy)
        if lot is not None:
            grown[purchase.lot] = lot
    return grown


def _growable(purchase: Purchase, lots: Iterable[Lot], policy: Policy) -> Lot | None:
    """The largest reservation of ours, of that type in that place, that can take the growth."""
    fitting = [lot for lot in lots if _takes(lot, purchase, policy)]
    return max(fitting, key=lambda lot: (lot.count, lot.id), default=None)


def _takes(lot: Lot, purchase: Purchase, policy: Policy) -> bool:
    held, offer = lot.reservation, purchase.dish.offer
    return (
        held is not None
        and lot.ours
        and lot.settled
        and not lot.missing
        and held.state is ReservationState.ACTIVE
        and held.id not in policy.protect
        and not held.interruptible
        and (held.place, held.machine_type, held.kind) == (offer.place, offer.shape.machine_type, offer.kind)
        and held.targeted == policy.purchase.targeted
        and counts_for(lot, purchase.pool)
        and held.count + purchase.count <= offer.max_count
    )


def _purchase(
    buyer: Buyer, purchase: Purchase, need: PoolNeed, lot: Lot | None, snapshot: Snapshot, policy: Policy
) -> Reserve | Resize:
    rate = purchase.dish.usd * purchase.count
    hours = hold_hours(policy)
    reasons = _reasons(buyer, purchase, need)
    if lot is not None and lot.reservation is not None:
        return Resize(
            request=resize_request(snapshot.lineage, lot.reservation, lot.reservation.count + purchase.count),
            reservation=lot.reservation,
            pool=buyer.pool.name,
            reasons=reasons,
            usd_per_hour=rate,
            usd_idle_at_worst=rate * hours,
            hours=hours,
            tenants=_shares(purchase),
            jobs=tuple(purchase.jobs),
        )
    return Reserve(
        request=_reserve_request(purchase, snapshot, policy),
        offer=purchase.dish.offer,
        pool=buyer.pool.name,
        reasons=reasons,
        usd_per_hour=rate,
        usd_idle_at_worst=rate * hours,
        hours=hours,
        tenants=_shares(purchase),
        jobs=tuple(purchase.jobs),
    )


def _reserve_request(purchase: Purchase, snapshot: Snapshot, policy: Policy) -> ReserveRequest:
    offer = purchase.dish.offer
    return ReserveRequest(
        key="",
        lineage=snapshot.lineage,
        place=offer.place,
        machine_type=offer.shape.machine_type,
        count=purchase.count,
        kind=offer.kind,
        end=snapshot.now + policy.purchase.end_ahead if offer.end_settable else None,
        targeted=policy.purchase.targeted,
        match=purchase.pool.match,
        tags=policy.purchase.tags,
    )


def _reasons(buyer: Buyer, purchase: Purchase, need: PoolNeed) -> tuple[Reason, ...]:
    gpus = purchase.count * purchase.dish.gpus
    wants = f"pool {buyer.pool.name} needs {number(need.wanted, 'GPU')} and holds {need.held}"
    text = f"{wants}: {gpus} of {need.bought} bought here"
    numbers = (
        ("wanted_gpus", str(need.wanted)),
        ("held_gpus", str(need.held)),
        ("bought_gpus", str(gpus)),
        ("jobs", str(len(purchase.jobs))),
        ("minimum_gpus", str(buyer.pool.min_gpus)),
    )
    return (Reason(text, numbers), _price_reason(buyer, purchase.dish))


def _price_reason(buyer: Buyer, dish: Dish) -> Reason:
    usd = cents(dish.usd_per_gpu)
    others = [other for other in buyer.menu.dishes if other.offer.id != dish.offer.id]
    ahead = [other for other in others if other.usd_per_gpu < dish.usd_per_gpu]
    after = next((other for other in others if other.usd_per_gpu >= dish.usd_per_gpu), None)
    following = f"; next best {after.offer.id} at ${cents(after.usd_per_gpu)}" if after else ""
    rank = (
        f"cheapest of {number(len(others) + 1, 'offer')}"
        if not ahead
        else f"{number(len(ahead), 'cheaper offer')} {_fit(len(ahead))} less well"
    )
    hint = "; the cloud named this zone when another was full" if dish.hinted else ""
    source = f"price from {dish.price.source}, {dish.price.as_of:%Y-%m-%d}{_parts(dish.price)}"
    text = f"${usd} per GPU-hour, {rank}{following}{hint} ({source})"
    return Reason(text, (("usd_per_gpu_hour", str(usd)), ("offers", str(len(others) + 1))))


def _fit(offers: int) -> str:
    return "fits" if offers == 1 else "fit"


def _parts(price: Price) -> str:
    """What the price of an instance is the sum of."""
    return ": " + " + ".join(f"{name} ${cents(usd)}/h" for name, usd in price.parts) if price.parts else ""


def _passed_over(dish: Dish, buyer: Buyer) -> Reason:
    usd = cents(dish.usd_per_gpu)
    numbers = (("usd_per_gpu_hour", str(usd)),)
    if not buyer.purchases:
        return Reason(f"${usd} per GPU-hour; pool {buyer.pool.name} buys nothing", numbers)
    left, limit = buyer.limit(dish)
    if left <= 0:
        return Reason(f"${usd} per GPU-hour, but {limit}", numbers)
    taken = min(buyer.purchases.values(), key=lambda purchase: purchase.dish.usd_per_gpu).dish
    relation = _relation(dish.usd_per_gpu, taken.usd_per_gpu)
    return Reason(f"${usd} per GPU-hour, {relation} {taken.offer.id} at ${cents(taken.usd_per_gpu)}", numbers)


def _relation(usd: Decimal, taken_usd: Decimal) -> str:
    """Per GPU; by whole jobs on whole instances, what costs less for each GPU may cost more."""
    if usd > taken_usd:
        return "dearer than"
    return "cheaper, but fits the jobs less well than" if usd < taken_usd else "fits the jobs no better than"


def _shares(purchase: Purchase) -> tuple[tuple[str, float], ...]:
    """By GPUs of the jobs that it serves; nobody's where it only holds the pool's floor."""
    total = sum(purchase.tenants.values())
    return tuple((tenant, gpus / total) for tenant, gpus in sorted(purchase.tenants.items()))
