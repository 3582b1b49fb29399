"""What may be bought for a pool, cheapest GPU first; and why the rest may not."""

from datetime import datetime
from decimal import Decimal

import msgspec

from broker.model.offer import Offer, Price
from broker.model.place import ProviderName
from broker.model.plan import Reason
from broker.model.policy import Policy, Pool
from broker.model.snapshot import Cooling, Snapshot, Trust
from broker.purchase.pools import allows_place, allows_type, sells


class Dish(msgspec.Struct, frozen=True):
    """An offer that may be bought. The price is per instance-hour.

    `hinted`: the cloud named its zone when another one was full.
    """

    offer: Offer
    price: Price
    hinted: bool = False

    @property
    def usd(self) -> Decimal:
        return self.price.usd_per_hour

    @property
    def gpus(self) -> int:
        return self.offer.shape.gpus

    @property
    def usd_per_gpu(self) -> Decimal:
        return self.usd / self.gpus


class Menu(msgspec.Struct, frozen=True):
    dishes: tuple[Dish, ...]
    refused: tuple[tuple[Offer, Reason], ...]


def closed(menu: Menu, reason: Reason) -> Menu:
    """Nothing may be bought."""
    return Menu((), tuple(sorted((*menu.refused, *((dish.offer, reason) for dish in menu.dishes)), key=_by_id)))


def _by_id(refused: tuple[Offer, Reason]) -> str:
    return refused[0].id


class MenuCard:
    """Menus of all pools from one snapshot: every offer is judged once."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._policy = policy
        self._judged = _judge(snapshot, policy)
        self._hinted = _hinted(snapshot)

    def menu(self, pool: Pool) -> Menu:
        """Every offer with the pool's GPUs is either a dish or refused."""
        dishes: list[Dish] = []
        refused: list[tuple[Offer, Reason]] = []
        for offer, verdict in self._judged:
            if not sells(pool, offer):
                continue
            reason = _outside(pool, offer) or (verdict if isinstance(verdict, Reason) else None)
            if reason is not None:
                refused.append((offer, reason))
            elif isinstance(verdict, Price):
                dishes.append(Dish(offer, verdict, _zone_key(offer, offer.place.zone) in self._hinted))
        return Menu(tuple(sorted(dishes, key=lambda dish: (dish.usd_per_gpu, dish.usd, dish.offer.id))), tuple(refused))


_ZoneKey = tuple[ProviderName, str, str, str]


def _hinted(snapshot: Snapshot) -> frozenset[_ZoneKey]:
    """Where clouds said that a machine type might be had, when they refused it elsewhere."""
    cooling = _cooling(snapshot)
    offers = (offer for view in snapshot.scopes for offer in view.offers if offer.id in cooling)
    return frozenset(_zone_key(offer, zone) for offer in offers for zone in cooling[offer.id].hints)


def _zone_key(offer: Offer, zone: str) -> _ZoneKey:
    """A hint may name a zone of another region."""
    return (offer.place.scope.provider, offer.place.scope.account, zone, offer.shape.machine_type)


def _cooling(snapshot: Snapshot) -> dict[str, Cooling]:
    return {cool.offer_id: cool for cool in snapshot.cooling if cool.until > snapshot.now}


def _judge(snapshot: Snapshot, policy: Policy) -> list[tuple[Offer, Price | Reason]]:
    cooling = _cooling(snapshot)
    judged: list[tuple[Offer, Price | Reason]] = []
    for view in snapshot.scopes:
        for offer in view.offers:
            cool = cooling.get(offer.id)
            if view.trust is not Trust.COMPLETE:
                verdict: Price | Reason = Reason(f"{view.scope} could not be listed: what is held there is not known")
            elif cool is not None:
                numbers = (("until", cool.until.isoformat()), ("code", cool.code))
                verdict = Reason(
                    f"not to be had there lately ({cool.code}); not tried again until {cool.until:%H:%M} UTC", numbers
                )
            else:
                verdict = _own_merit(offer, policy, snapshot.now)
            judged.append((offer, verdict))
    return sorted(judged, key=lambda one: one[0].id)


def _own_merit(offer: Offer, policy: Policy, now: datetime) -> Price | Reason:
    if offer.excluded:
        return Reason(offer.excluded)
    if offer.shape.gpus <= 0:
        return Reason(f"{offer.shape.machine_type} holds no whole GPU")
    if offer.quota_left is not None and offer.quota_left <= 0:
        return Reason("blocked by quota: none left for new instances", (("quota_left", str(offer.quota_left)),))
    if offer.price is None:
        return Reason("no price known: nothing is bought without one")
    age = now - offer.price.as_of
    if age > policy.purchase.max_price_age:
        limit = policy.purchase.max_price_age.days
        return Reason(
            f"its price is {age.days} days old, more than {limit}: it counts as missing", (("days", str(age.days)),)
        )
    return offer.price


def _outside(pool: Pool, offer: Offer) -> Reason | None:
    if not allows_place(pool, offer.place):
        return Reason(f"{offer.place} is not among the places of pool {pool.name}")
    if not allows_type(pool, offer.shape.machine_type, offer.shape.gpu_model):
        return Reason(f"{offer.shape.machine_type} is not among the machine types of pool {pool.name}")
    return None
