"""What to buy for needs that nothing held serves: whole instances of the cheapest offers that fit."""

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from math import ceil

import msgspec

from broker.counted import number
from broker.model.gpu import satisfies
from broker.model.offer import Offer
from broker.model.plan import Reason
from broker.model.policy import Pool
from broker.purchase.holdings import Lot
from broker.purchase.menu import Dish, Menu
from broker.purchase.needs import Need, Standing
from broker.purchase.packing import Placement, free_gpus, free_nodes
from broker.purchase.yard import Yard

Place = Callable[[Need], Placement | None]


class Purchase:
    """Instances of one offer bought for one pool, and whom they serve (GPUs by tenant)."""

    def __init__(self, pool: Pool, dish: Dish) -> None:
        self.pool = pool
        self.dish = dish
        self.count = 0
        self.jobs: list[str] = []
        self.tenants: dict[str, int] = {}

    @property
    def lot(self) -> str:
        """The key of the lot that it becomes."""
        return f"{self.dish.offer.place.scope}/buy:{self.pool.name}:{self.dish.offer.id}"

    def serve(self, need: Need, gpus: int) -> None:
        """Note that so many of its GPUs are for this need."""
        self.tenants[need.tenant] = self.tenants.get(need.tenant, 0) + gpus
        if need.job and (not self.jobs or self.jobs[-1] != need.job):
            self.jobs.append(need.job)


class Bid(msgspec.Struct, frozen=True):
    """`count` more instances of the dish would serve `serves` of the needs at hand."""

    dish: Dish
    count: int
    serves: int

    @property
    def order(self) -> tuple[Decimal, Decimal, bool, str]:
        """Cheapest for each need served; equals by instance price, then where the cloud pointed, then by name."""
        return (self.dish.usd * self.count / self.serves, self.dish.usd, not self.dish.hinted, self.dish.offer.id)


class Buyer:
    """Buys for one pool within the limits of offers, quotas and the pool. `basket` is shared by all pools."""

    def __init__(
        self, pool: Pool, menu: Menu, yard: Yard, held_gpus: int, basket: "Basket", *, lacking_gpus: int = 0
    ) -> None:
        """`lacking_gpus` are paid for and not there: no supply, and yet within what the pool may hold."""
        self.pool = pool
        self.menu = menu
        self.held_gpus = held_gpus
        self.purchases: dict[str, Purchase] = {}
        self._lacking_gpus = lacking_gpus
        self._yard = yard
        self._basket = basket

    @property
    def bought_gpus(self) -> int:
        return sum(purchase.count * purchase.dish.gpus for purchase in self.purchases.values())

    def buy(self, needs: list[Need], put: Place) -> list[tuple[Need, Reason]]:
        """Serve the needs, the widest first; returns those that remain, each with its reason."""
        short: list[tuple[Need, Reason]] = []
        for _, alike in groupby(sorted(needs, key=hardest_first), key=_geometry):
            short += self._buy_alike(list(alike), put)
        return short

    def top_up(self, now: datetime) -> None:
        """Hold at least the pool's `min_gpus`, used or not."""
        missing = self.pool.min_gpus - self.held_gpus - self.bought_gpus
        while missing > 0:
            bid = self._best(_one_gpu(self.pool, now), missing, empty=True)
            if bid is None:
                return
            self._take(bid, floor=True)
            missing -= bid.count * bid.dish.gpus

    def limit(self, dish: Dish) -> tuple[int, str]:
        """How many more instances may be bought, and what limits them."""
        bought = self.purchases[dish.offer.id].count if dish.offer.id in self.purchases else 0
        limits = [(dish.offer.max_count - bought, f"one reservation holds at most {dish.offer.max_count} instances")]
        limits += [(left, f"quota {quota} leaves {left} instances") for quota, left in self._basket.left(dish.offer)]
        if self.pool.max_gpus is not None:
            room = self.pool.max_gpus - self.held_gpus - self._lacking_gpus - self.bought_gpus
            limits.append((room // dish.gpus, f"pool {self.pool.name} may hold {self.pool.max_gpus} GPUs, {room} more"))
        return min(limits)

    def _buy_alike(self, needs: list[Need], put: Place) -> list[tuple[Need, Reason]]:
        """Needs of one geometry, the most urgent first."""
        waiting = list(reversed(needs))
        while waiting:
            while waiting and put(waiting[-1]) is not None:
                waiting.pop()
            if not waiting:
                break
            bid = self._best(waiting[-1], len(waiting), empty=False)
            if bid is None:
                reason = self._why(waiting[-1])
                return [(need, reason) for need in reversed(waiting)]
            self._take(bid, floor=False)
        return []

    def _best(self, need: Need, alike: int, *, empty: bool) -> Bid | None:
        bids = (self._bid(dish, need, alike, empty=empty) for dish in self.menu.dishes)
        return min((bid for bid in bids if bid is not None), key=lambda bid: bid.order, default=None)

    def _bid(self, dish: Dish, need: Need, alike: int, *, empty: bool) -> Bid | None:
        """What it takes in the dish's place; free nodes there count, as far as they are of the same GPU model."""
        if need.model is not None and not satisfies(need.model, dish.offer.shape.gpu_model):
            return None
        site = None if empty else self._yard.site(self.pool.name, dish.offer.place, dish.offer.shape.gpu_model)
        bays = site.admitting(need) if site else []
        limit = self.limit(dish)[0]
        if not need.gpus_per_node:
            return _loose_bid(dish, need.gpus, alike, free_gpus(bays), limit)
        if dish.gpus < need.gpus_per_node:
            return None
        return _node_bid(dish, need, alike, free_nodes(bays, need.gpus_per_node), limit)

    def _take(self, bid: Bid, *, floor: bool) -> None:
        offer = bid.dish.offer
        purchase = self.purchases.setdefault(offer.id, Purchase(self.pool, bid.dish))
        lot = Lot(
            id=purchase.lot.removeprefix(f"{offer.place.scope}/"),
            place=offer.place,
            machine_type=offer.shape.machine_type,
            gpu_model=offer.shape.gpu_model,
            gpus_per_instance=offer.shape.gpus,
            count=bid.count,
            used=0,
            ours=True,
            settled=True,
            match=self.pool.match,
            usd_per_hour=bid.dish.usd,
        )
        if not floor:
            self._yard.add_bought(self.pool, lot, purchase.count)
        self._basket.add(purchase, bid.count)

    def _why(self, need: Need) -> Reason:
        """Why nothing could be bought for a need."""
        dishes = [
            dish for dish in self.menu.dishes if need.model is None or satisfies(need.model, dish.offer.shape.gpu_model)
        ]
        if not dishes:
            return self._nothing_on_offer(need)
        largest = max(dish.gpus for dish in dishes)
        if need.gpus_per_node > largest:
            wide = (("gpus_per_node", str(need.gpus_per_node)), ("largest_instance_gpus", str(largest)))
            return Reason(
                f"needs {number(need.gpus_per_node, 'GPU')} on one node; the largest instance on offer holds {largest}",
                wide,
            )
        left, limit = max(self.limit(dish) for dish in dishes)
        numbers = (("instances_left", str(left)), ("nodes", str(need.nodes)), ("gpus", str(need.gpus)))
        return Reason(
            f"needs {number(need.gpus, 'GPU')} in one zone, more than any offer may still give: {limit}", numbers
        )

    def _nothing_on_offer(self, need: Need) -> Reason:
        refused = self.menu.refused
        numbers = (("offers", "0"), ("refused", str(len(refused))))
        if not refused:
            return Reason(
                f"no cloud in the configuration offers {need.model or ' or '.join(self.pool.gpu_models)}", numbers
            )
        offer, reason = refused[0]
        return Reason(
            f"none of {number(len(refused), 'offer')} may be bought, such as {offer.id}: {reason.text}", numbers
        )


class Basket:
    """Everything bought, by the lot that it becomes, and what each quota leaves for more, in the quota's unit.

    One quota may be seen by offers that were read at different instants: the fewest seen hold.
    """

    def __init__(self, offers: Iterable[Offer]) -> None:
        self.purchases: dict[str, Purchase] = {}
        self._left: dict[str, int] = {}
        for allowance in (allowance for offer in offers for allowance in offer.allowances):
            self._left[allowance.quota] = min(allowance.left, self._left.get(allowance.quota, allowance.left))

    def left(self, offer: Offer) -> list[tuple[str, int]]:
        """Quotas, and how many more instances of the offer each allows."""
        return [(one.quota, max(self._left[one.quota], 0) // one.per_instance) for one in offer.allowances]

    def add(self, purchase: Purchase, count: int) -> None:
        purchase.count += count
        self.purchases[purchase.lot] = purchase
        for allowance in purchase.dish.offer.allowances:
            self._left[allowance.quota] -= allowance.per_instance * count


def _node_bid(dish: Dish, need: Need, alike: int, have: int, limit: int) -> Bid | None:
    """One instance holds parts of several jobs, but only one part of each."""
    missing = need.nodes - have
    if have and missing <= limit:
        return Bid(dish, missing, 1)
    served = min(alike, dish.gpus // need.gpus_per_node)
    sets = min(alike // served, limit // need.nodes)
    return Bid(dish, need.nodes * sets, served * sets) if sets > 0 else None


def _loose_bid(dish: Dish, gpus: int, alike: int, have: int, limit: int) -> Bid | None:
    """Jobs that say nothing of nodes: any nodes of one zone. Small ones share an instance, wide ones whole sets."""
    together = ceil((gpus * alike - have) / dish.gpus)
    if gpus > dish.gpus and together <= limit:
        return Bid(dish, together, alike)
    if have or gpus > dish.gpus:
        count = ceil((gpus - have) / dish.gpus)
        return Bid(dish, count, min(alike, (have + count * dish.gpus) // gpus)) if count <= limit else None
    served = min(alike, dish.gpus // gpus)
    sets = min(alike // served, limit)
    return Bid(dish, sets, served * sets) if sets > 0 else None


def _geometry(need: Need) -> tuple[int, int, int, str, bool]:
    return (need.gpus_per_node, need.nodes, need.gpus, need.model or "", need.preemptible)


def hardest_first(need: Need) -> tuple[object, ...]:
    """The hardest to place first: wide nodes, many nodes, much; within one geometry the most urgent."""
    per_node, nodes, gpus, model, preemptible = _geometry(need)
    return (-per_node, -nodes, -gpus, model, preemptible, -need.priority, need.submit, need.job)


def _one_gpu(pool: Pool, now: datetime) -> Need:
    return Need(
        pool=pool.name,
        standing=Standing.WAITING,
        begins=now,
        ends=now,
        gpus=1,
        nodes=1,
        gpus_per_node=1,
        tenant="",
        submit=now,
    )
