"""The look ahead: needs begin and end, nodes fill and empty, and what is short is bought."""

from collections.abc import Iterable
from datetime import datetime
from heapq import heappop, heappush
from itertools import groupby

import msgspec

from broker.model.plan import Reason
from broker.purchase.buying import Basket, Buyer, hardest_first
from broker.purchase.earmarks import Earmarks
from broker.purchase.needs import Need, Standing
from broker.purchase.packing import Placement, place
from broker.purchase.yard import Yard


class Coverage(msgspec.Struct, frozen=True):
    """`short` has no supply and no offer; `outside` runs on nothing that is held."""

    short: tuple[tuple[Need, Reason], ...]
    outside: tuple[Need, ...]


def cover(
    needs: Iterable[Need], marks: Earmarks, yard: Yard, buyers: dict[str, Buyer], basket: Basket, until: datetime
) -> Coverage:
    """Place every need that begins by `until`, buying where nothing fits."""
    return _Cover(marks, yard, buyers, basket, until).run(needs)


class _Cover:
    def __init__(self, marks: Earmarks, yard: Yard, buyers: dict[str, Buyer], basket: Basket, until: datetime) -> None:
        self._marks = marks
        self._yard = yard
        self._buyers = buyers
        self._basket = basket
        self._until = until
        self._ends: list[tuple[datetime, int, Placement]] = []
        self._placed = 0
        self._failed: dict[tuple[object, ...], int] = {}
        self._short: list[tuple[Need, Reason]] = []
        self._outside: list[Need] = []
        self._marked: list[Need] = []

    def run(self, needs: Iterable[Need]) -> Coverage:
        within = sorted((need for need in needs if need.begins <= self._until), key=_order)
        doubtful = [need for need in within if need.standing is Standing.DOUBTFUL]
        certain = (need for need in within if need.standing is not Standing.DOUBTFUL)
        self._marked = [need for need in within if self._marks.of(need)]
        for begins, beginning in groupby(certain, key=lambda need: need.begins):
            self._end_by(begins)
            self._begin(list(beginning))
        for need in doubtful:
            self._put(need)
        return Coverage(tuple(self._short), tuple(self._outside))

    def _begin(self, needs: list[Need]) -> None:
        """What runs, then what waits: those not bought for yet leave alone what was bought for others, as they did
        when it was bought; then those others take their own, also those that begin later; what is left is for all.
        """
        running = [need for need in needs if need.standing is Standing.RUNNING]
        self._outside += self._put_all(running)
        waiting = [need for need in needs if need.standing is Standing.WAITING]
        rest = self._put_all([need for need in waiting if not self._marks.of(need)], sparing=True)
        self._marked = self._put_all(sorted(self._marked, key=hardest_first))
        begun = {id(need) for need in waiting}
        rest += [need for need in self._marked if id(need) in begun]
        self._marked = [need for need in self._marked if id(need) not in begun]
        rest = self._put_all(rest)
        self._short += [(need, self._taken(need)) for need in rest if self._marks.bought_for(need)]
        self._buy([need for need in rest if not self._marks.bought_for(need)])

    def _taken(self, need: Need) -> Reason:
        lots = self._marks.of(need)
        text = f"{', '.join(lot.id for lot in lots)} was bought for it and is not in use yet: not bought for again"
        return Reason(text, (("instances", str(sum(lot.count for lot in lots))),))

    def _put_all(self, needs: list[Need], *, sparing: bool = False) -> list[Need]:
        """Returns those that do not fit."""
        return [need for need in needs if self._put(need, sparing=sparing) is None]

    def _buy(self, needs: list[Need]) -> None:
        for pool, wanting in groupby(sorted(needs, key=lambda need: need.pool), key=lambda need: need.pool):
            self._short += self._buyers[pool].buy(list(wanting), self._put)

    def _put(self, need: Need, *, sparing: bool = False) -> Placement | None:
        """Place the need; one like it that did not fit is not tried again until something has changed."""
        own = self._marks.of(need)
        kind = (*self._kind(need), sparing, *(lot.key for lot in own))
        if self._failed.get(kind) == self._yard.version:
            return None
        sites = self._yard.home_sites(need.pool, own) if own else self._yard.sites(need.pool)
        placement = place(need, sites, sparing=sparing)
        if placement is None:
            self._failed[kind] = self._yard.version
            return None
        self._note(need, placement)
        return placement

    def _kind(self, need: Need) -> tuple[object, ...]:
        window = self._yard.window(need.begins, need.ends)
        size = (need.gpus, need.nodes, need.gpus_per_node)
        return (need.pool, need.standing, size, need.model, need.preemptible, need.own, window)

    def _note(self, need: Need, placement: Placement) -> None:
        for _, node, gpus in placement.parts:
            purchase = self._basket.purchases.get(node.lot)
            if purchase is not None:
                purchase.serve(need, gpus)
        if need.ends <= self._until:
            self._placed += 1
            heappush(self._ends, (need.ends, self._placed, placement))

    def _end_by(self, moment: datetime) -> None:
        while self._ends and self._ends[0][0] <= moment:
            heappop(self._ends)[2].undo()
            self._yard.version += 1


def _order(need: Need) -> tuple[object, ...]:
    """In time; what runs before what waits; then the most urgent, the widest, the oldest."""
    size = (-need.gpus_per_node, -need.nodes, -need.gpus)
    return (need.begins, need.standing, -need.priority, size, need.submit, need.tenant, need.job)
