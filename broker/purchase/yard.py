"""All supply laid out by site, so that every pool sees the nodes it may use, and no node serves two pools."""

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime
from decimal import Decimal

from broker.model.place import Place
from broker.model.policy import Policy, Pool
from broker.purchase.holdings import Lot
from broker.purchase.packing import Audience, Bay, BayKey, Node, Site
from broker.purchase.pools import allows_place, allows_type

OPEN_START = datetime.min.replace(tzinfo=UTC)
OPEN_END = datetime.max.replace(tzinfo=UTC)

_PREFERRED = (Audience.OWN, Audience.ANY, Audience.WARM, Audience.FREE, Audience.FOREIGN)
"""What is paid for anyway comes first, so that what can be given back falls idle."""

_ORDINARY = {
    "tenancy": "default",
    "platform": "linux/unix",
    "placementgroup": "",
    "placementgrouparn": "",
    "outpost": "",
}
"""What a launch asks for when it says nothing. Supply that differs serves only a pool that asks for it by name."""


class Yard:
    """Sites by pool. Bays are shared: pools that may use the same lot compete for the same nodes.

    So many free nodes of a lot, by its key, as `kept` says stand apart. `version` changes whenever something that did
    not fit might now.
    """

    def __init__(self, lots: tuple[Lot, ...], policy: Policy, kept: dict[str, int]) -> None:
        self.nodes: dict[str, list[Node]] = {}
        self.version = 0
        self._opens = sorted({lot.opens for lot in lots if lot.opens is not None})
        self._closes = sorted({lot.closes for lot in lots if lot.closes is not None})
        self._pools = policy.pools
        self._kept = kept
        self._bays: dict[BayKey, Bay] = {}
        self._sites: dict[str, dict[tuple[Place | None, str], Site]] = {pool.name: {} for pool in policy.pools}
        self._sorted: dict[str, list[Site]] = {}
        for pool in policy.pools:
            self._add_own(pool)
        for lot in lots:
            self._add_lot(lot)

    def sites(self, pool: str) -> list[Site]:
        """In the order in which they are tried: own, in use, then by name."""
        if pool not in self._sorted:
            self._sorted[pool] = sorted(self._sites[pool].values(), key=_site_order)
        return self._sorted[pool]

    def home_sites(self, pool: str, lots: tuple[Lot, ...]) -> list[Site]:
        """The sites of these lots before all others."""
        homes = {(lot.place, lot.gpu_model) for lot in lots}
        return sorted(self.sites(pool), key=lambda site: (site.place, site.gpu_model) not in homes)

    def window(self, begins: datetime, ends: datetime) -> tuple[int, int]:
        """Needs of an equal window may use the same nodes, as far as time goes."""
        return (bisect_right(self._opens, begins), bisect_left(self._closes, ends))

    def site(self, pool: str, place: Place, gpu_model: str) -> Site | None:
        return self._sites[pool].get((place, gpu_model))

    def add_bought(self, pool: Pool, lot: Lot, first: int) -> None:
        """Nodes that a plan buys; `first` is how many of the lot there are already."""
        self.version += 1
        bay = self._bay(_lot_key(lot, Audience.FREE), (pool,))
        for index in range(lot.count):
            self._add_node(bay, lot.key, lot.gpus_per_instance, (_CHEAP_FIRST, Decimal(0), lot.key, first + index))

    def serving(self, lot: Lot) -> tuple[Pool, ...]:
        """The pools that the lot counts for."""
        return tuple(pool for pool in self._pools if counts_for(lot, pool))

    def _add_own(self, pool: Pool) -> None:
        for index, own in enumerate(pool.own):
            key = BayKey(
                place=None,
                gpu_model=pool.gpu_models[0],
                machine_type="",
                match=(),
                audience=Audience.OWN if own.node_patterns else Audience.ANY,
                opens=OPEN_START,
                closes=OPEN_END,
                own=(pool.name, index),
            )
            bay = self._bay(key, (pool,))
            for number in range(own.nodes):
                name = f"own:{pool.name}:{index}"
                self._add_node(bay, name, own.gpus_per_node, (_CHEAP_FIRST, Decimal(0), name, number))

    def _add_lot(self, lot: Lot) -> None:
        pools = self.serving(lot)
        if not pools or lot.gpus_per_instance <= 0:
            return
        warm = self._bay(_lot_key(lot, Audience.WARM if lot.ours else Audience.FOREIGN), pools) if lot.used else None
        free = self._bay(_lot_key(lot, Audience.FREE), pools)
        kept = self._bay(_lot_key(lot, Audience.FREE, kept=True), pools) if self._kept.get(lot.key) else free
        for index in range(lot.usable):
            late = index >= lot.usable - self._kept.get(lot.key, 0)
            bay = warm if warm is not None and index < lot.used else kept if late else free
            self._add_node(bay, lot.key, lot.gpus_per_instance, _rank(lot, index))

    def _add_node(self, bay: Bay, lot: str, gpus: int, rank: tuple[object, ...]) -> None:
        node = Node(gpus, lot, rank)
        self.nodes.setdefault(lot, []).append(node)
        bay.add(node)

    def _bay(self, key: BayKey, pools: tuple[Pool, ...]) -> Bay:
        bay = self._bays.setdefault(key, Bay(key))
        for pool in pools:
            self._join(pool.name, bay)
        return bay

    def _join(self, pool: str, bay: Bay) -> None:
        where = (bay.key.place, bay.key.gpu_model)
        site = self._sites[pool].setdefault(where, Site(*where))
        if bay not in site.bays:
            site.bays.append(bay)
            site.bays.sort(key=lambda one: _PREFERRED.index(one.key.audience))
            self._sorted.pop(pool, None)


_GIVES_NOTHING_BACK, _CHEAP_FIRST = 0, 1


def counts_for(lot: Lot, pool: Pool) -> bool:
    """Whether the pool's jobs can consume the lot."""
    return (
        allows_place(pool, lot.place)
        and allows_type(pool, lot.machine_type, lot.gpu_model)
        and not mismatch(lot.match, pool.match)
    )


def mismatch(offered: tuple[tuple[str, str], ...], wanted: tuple[tuple[str, str], ...]) -> str:
    """The property that keeps a consumer of `wanted` from using supply with `offered`; "" if none does.

    A property that the pool names must be equal; one that it does not name must be what a launch has by itself.
    """
    supply = {_folded(name): value for name, value in offered}
    asked = {_folded(name): value for name, value in wanted}
    for name in sorted(supply.keys() | asked.keys()):
        needed = asked.get(name, _ORDINARY.get(name, supply.get(name, "")))
        found = supply.get(name, _ORDINARY.get(name, ""))
        if needed.lower() != found.lower():
            return f"{name} is {found or 'none'}, needed {needed or 'none'}"
    return ""


def _folded(name: str) -> str:
    return name.replace("-", "").replace("_", "").replace(" ", "").lower()


def _lot_key(lot: Lot, audience: Audience, *, kept: bool = False) -> BayKey:
    return BayKey(
        place=lot.place,
        gpu_model=lot.gpu_model,
        machine_type=lot.machine_type,
        match=lot.match,
        audience=audience,
        opens=lot.opens or OPEN_START,
        closes=lot.closes or OPEN_END,
        interruptible=lot.interruptible,
        kept=kept,
    )


def _rank(lot: Lot, index: int) -> tuple[object, ...]:
    """Others' first, then the cheap, the large, so that what falls idle is dear and can be given back whole."""
    price = (lot.usd_per_hour or Decimal(0)) / lot.gpus_per_instance
    return (_CHEAP_FIRST if lot.ours else _GIVES_NOTHING_BACK, price, -lot.count, lot.key, index)


def _site_order(site: Site) -> tuple[int, str, str]:
    audience = min(_PREFERRED.index(bay.key.audience) for bay in site.bays)
    return (audience, str(site.place.scope if site.place else ""), f"{site.place}/{site.gpu_model}")
