"""The look ahead: needs begin and end, nodes fill and empty, and what is short is bought."""

from collections.abc import Iterable
from datetime import datetime
from heapq import heappop, heappush
from itertools import groupby

import msgspec

from broker.model.plan import Reason
from broker.purchase.buying import Basket, Buyer
from broker.purchase.needs import Need, Standing
from broker.purchase.packing import Placement, place
from broker.purchase.yard import Yard


class Coverage(msgspec.Struct, frozen=True):
    """`short` has no supply and no offer; `outside` runs on nothing that is held."""

    short: tuple[tuple[Need, Reason], ...]
    outside: tuple[Need, ...]


def cover(needs: Iterable[Need], yard: Yard, buyers: dict[str, Buyer], basket: Basket, until: datetime) -> Coverage:
    """Place every need that begins by `until`, buying where nothing fits; then hold the pools' floors."""
    return _Cover(yard, buyers, basket, until).run(needs)


class _Cover:
    def __init__(self, yard: Yard, buyers: dict[str, Buyer], basket: Basket, until: datetime) -> None:
        self._yard = yard
        self._buyers = buyers
        self._basket = basket
        self._until = until
        self._ends: list[tuple[datetime, int, Placement]] = []
        self._placed = 0
        self._failed: dict[tuple[object, ...], int] = {}

    def run(self, needs: Iterable[Need]) -> Coverage:
        within = sorted((need for need in needs if need.begins <= self._until), key=_order)
        doubtful = [need for need in within if need.standing is Standing.DOUBTFUL]
        outside: list[Need] = []
        short: list[tuple[Need, Reason]] = []
        certain = (need for need in within if need.standing is not Standing.DOUBTFUL)
        for begins, beginning in groupby(certain, key=lambda need: need.begins):
            self._end_by(begins)
            unplaced = [need for need in beginning if self._put(need) is None]
            outside += [need for need in unplaced if need.standing is Standing.RUNNING]
            short += self._buy([need for need in unplaced if need.standing is Standing.WAITING])
        for need in doubtful:
            self._put(need)
        return Coverage(tuple(short), tuple(outside))

    def _buy(self, needs: list[Need]) -> list[tuple[Need, Reason]]:
        short: list[tuple[Need, Reason]] = []
        for pool, wanting in groupby(sorted(needs, key=lambda need: need.pool), key=lambda need: need.pool):
            short += self._buyers[pool].buy(list(wanting), self._put)
        return short

    def _put(self, need: Need) -> Placement | None:
        """Place the need; one like it that did not fit is not tried again until something has changed."""
        kind = self._kind(need)
        if self._failed.get(kind) == self._yard.version:
            return None
        placement = place(need, self._yard.sites(need.pool))
        if placement is None:
            self._failed[kind] = self._yard.version
            return None
        self._note(need, placement)
        return placement

    def _kind(self, need: Need) -> tuple[object, ...]:
        window = (need.begins, need.ends) if self._yard.bounded else ()
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
