"""What becomes of what is held: renewed, shrunk, given back, or kept, and why.

Capacity is given back when what it has cost idle since its last use reaches what holding it for the minimum hold, or
for the hours that getting it back is set to take, would cost: renting or buying skis, decided so that regret is at
most twofold. On bad news nothing is given back.
"""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

import msgspec

from broker.model.money import cents
from broker.model.place import Scope
from broker.model.plan import Action, Extend, Keep, Reason, Release, Resize
from broker.model.policy import Policy, Pool
from broker.model.request import EndRequest, ReleaseRequest, ResizeRequest
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import Idle, Snapshot
from broker.purchase.holdings import Lot
from broker.purchase.trust import doubts

_HOUR = timedelta(hours=1)


class Use(msgspec.Struct, frozen=True):
    """A lot with a reservation, how many of its instances are wanted, and the pools that it counts for."""

    lot: Lot
    reservation: Reservation
    wanted: int
    pools: tuple[Pool, ...]
    grows: bool = False


def upkeep(
    uses: Iterable[Use], live: frozenset[str], snapshot: Snapshot, policy: Policy, held: dict[str, int]
) -> list[Action]:
    """At least one action for every reservation. `live` are ids of jobs in the queue; `held` GPUs by pool.

    The dearest GPUs are given back first, as long as the pools keep their `min_gpus`.
    """
    judge = _Judge(live, snapshot, policy, held)
    dear_first = sorted(uses, key=lambda use: (-(use.lot.usd_per_hour or Decimal(0)), str(use.lot.place), use.lot.id))
    return [action for use in dear_first for action in judge.actions(use)]


def hold_hours(policy: Policy) -> Decimal:
    """How long capacity is kept idle before it is given back."""
    return _hours(max(policy.purchase.minimum_hold, policy.purchase.reacquire))


class _Judge:
    def __init__(self, live: frozenset[str], snapshot: Snapshot, policy: Policy, held: dict[str, int]) -> None:
        self._live = live
        self._snapshot = snapshot
        self._policy = policy
        self._held = dict(held)
        self._idle: dict[tuple[Scope, str], list[Idle]] = {}
        for idle in snapshot.idle:
            self._idle.setdefault((idle.scope, idle.reservation_id), []).append(idle)

    def actions(self, use: Use) -> list[Action]:
        refusal = self._untouchable(use)
        if refusal:
            return [self._keep(use, Reason(refusal))]
        if use.reservation.state is ReservationState.ACTIVE:
            keep, reason = self._keep_count(use)
        else:
            state = f"it is {use.reservation.state} ({use.reservation.raw_state}), not active"
            keep, reason = use.reservation.count, Reason(state)
        change = self._give_back(use, keep, reason)
        renewal = self._renewal(use) if keep > 0 else None
        found = [action for action in (renewal, change) if action is not None]
        return found or [self._keep(use, reason)]

    def _untouchable(self, use: Use) -> str:
        lot = use.lot
        if not lot.ours:
            return "not bought from this state: shown, never changed"
        if not lot.settled:
            return "the end of an earlier request about it is not known yet"
        return ""

    def _keep_count(self, use: Use) -> tuple[int, Reason]:
        """How many instances stay, and the reason for it, with numbers."""
        count = use.reservation.count
        if use.reservation.id in self._policy.protect:
            return count, Reason("protected by the configuration")
        if use.grows:
            return count, Reason("grows in this plan")
        floor, why = self._floor(use)
        if floor >= count:
            return count, why
        doubt = doubts(use.pools, use.lot.place.scope, self._snapshot, self._policy)
        if doubt:
            return count, Reason(
                f"{count - floor} idle, kept because {doubt}", (("idle_instances", str(count - floor)),)
            )
        return self._by_idle_cost(use, floor)

    def _floor(self, use: Use) -> tuple[int, Reason]:
        """What cannot be given back whatever it costs: wanted, in use, associated, committed."""
        held = use.reservation
        committed = held.committed_count if held.committed_until and held.committed_until > self._snapshot.now else 0
        floors = {
            "wanted": use.wanted,
            "in use": held.used,
            "associated": held.associated,
            "committed": committed,
            "needed for min_gpus": self._needed_for_minimum(use),
        }
        floor = max(floors.values())
        text = ", ".join(f"{number} {name}" for name, number in floors.items() if number) or "nothing wants it"
        numbers = tuple((name.replace(" ", "_"), str(number)) for name, number in floors.items())
        return min(floor, held.count), Reason(f"{text} of {held.count}", numbers)

    def _needed_for_minimum(self, use: Use) -> int:
        each = use.lot.gpus_per_instance
        missing = [pool.min_gpus - (self._held.get(pool.name, 0) - use.lot.gpus) for pool in use.pools]
        return max((-(-gpus // each) for gpus in missing if gpus > 0), default=0) if each else 0

    def _by_idle_cost(self, use: Use, floor: int) -> tuple[int, Reason]:
        """The fewest instances, at least `floor`, whose rest has been idle for long enough."""
        count = use.reservation.count
        young = self._too_young(use)
        if young:
            return count, young
        levels = sorted(self._idle.get((use.lot.place.scope, use.reservation.id), []), key=lambda level: level.used)
        for level in levels:
            keep = max(floor, level.used)
            if keep < count and self._idle_for(use, level) >= self._threshold(use):
                return keep, self._idle_reason(use, count - keep, self._idle_for(use, level))
        longest = max((self._idle_for(use, level) for level in levels if level.used < count), default=timedelta(0))
        return count, self._idle_reason(use, count - floor, longest)

    def _idle_for(self, use: Use, level: Idle) -> timedelta:
        """Instances that came later than the last use have idled since they came."""
        since = level.since if use.lot.bought is None else max(level.since, use.lot.bought)
        return self._snapshot.now - since

    def _too_young(self, use: Use) -> Reason | None:
        bought = use.lot.bought
        hold = self._policy.purchase.minimum_hold
        if bought is None or self._snapshot.now - bought >= hold:
            return None
        age = self._snapshot.now - bought
        text = f"idle, but bought {_minutes(age)} min ago: held for at least {_minutes(hold)}"
        return Reason(text, (("age_minutes", str(_minutes(age))), ("minimum_hold_minutes", str(_minutes(hold)))))

    def _threshold(self, use: Use) -> timedelta:
        """Hours of idling that cost as much as holding on; the grace applies once all who caused it are gone."""
        purchase = self._policy.purchase
        orphaned = bool(use.lot.jobs) and not self._live.intersection(use.lot.jobs)
        return max(purchase.minimum_hold, purchase.reacquire, purchase.release_grace if orphaned else timedelta(0))

    def _idle_reason(self, use: Use, instances: int, idle: timedelta) -> Reason:
        threshold = self._threshold(use)
        rate = None if use.lot.usd_per_hour is None else use.lot.usd_per_hour * instances
        spent = "unknown" if rate is None else f"${cents(rate * _hours(idle))}"
        limit = "unknown" if rate is None else f"${cents(rate * _hours(threshold))}"
        verdict = "reached" if idle >= threshold else "not reached"
        text = f"{instances} idle for {_minutes(idle)} min, {spent}; {limit} for {_minutes(threshold)} min is {verdict}"
        numbers = (
            ("idle_instances", str(instances)),
            ("idle_minutes", str(_minutes(idle))),
            ("idle_usd", spent.removeprefix("$")),
            ("limit_usd", limit.removeprefix("$")),
        )
        return Reason(text, numbers)

    def _give_back(self, use: Use, keep: int, reason: Reason) -> Action | None:
        held, lot = use.reservation, use.lot
        if keep >= held.count:
            return None
        for pool in use.pools:
            self._held[pool.name] = self._held.get(pool.name, 0) - (held.count - keep) * lot.gpus_per_instance
        saved = None if lot.usd_per_hour is None else -lot.usd_per_hour * (held.count - keep)
        if keep == 0:
            return Release(
                request=ReleaseRequest(
                    key="", lineage=self._snapshot.lineage, place=held.place, reservation_id=held.id
                ),
                reservation=held,
                pool=_pool_name(use),
                reasons=(reason,),
                usd_per_hour=saved,
                tenants=lot.tenants,
                jobs=lot.jobs,
            )
        return Resize(
            request=resize_request(self._snapshot.lineage, held, keep),
            reservation=held,
            pool=_pool_name(use),
            reasons=(reason,),
            usd_per_hour=saved,
            tenants=lot.tenants,
            jobs=lot.jobs,
        )

    def _renewal(self, use: Use) -> Action | None:
        """A new end, when less than half of the time ahead is left and nobody can say that it is not wanted."""
        held = use.reservation
        ahead = self._policy.purchase.end_ahead
        if held.ends is None or not self._snapshot.now < held.ends < self._snapshot.now + ahead / 2:
            return None
        if not self._still_wanted(use):
            return None
        left = held.ends - self._snapshot.now
        reason = Reason(
            f"ends in {_minutes(left)} min, less than half of {_minutes(ahead)}, and is still wanted",
            (("left_minutes", str(_minutes(left))), ("end_ahead_minutes", str(_minutes(ahead)))),
        )
        request = EndRequest(
            key="",
            lineage=self._snapshot.lineage,
            place=held.place,
            reservation_id=held.id,
            from_end=held.ends,
            to_end=self._snapshot.now + ahead,
        )
        return Extend(
            request=request,
            reservation=held,
            pool=_pool_name(use),
            reasons=(reason,),
            usd_per_hour=Decimal(0),
            tenants=use.lot.tenants,
            jobs=use.lot.jobs,
        )

    def _still_wanted(self, use: Use) -> bool:
        """In doubt, yes: an end that nobody moves is a release too."""
        active = use.reservation.state is ReservationState.ACTIVE
        if use.grows or not active or use.reservation.id in self._policy.protect or self._floor(use)[0] > 0:
            return True
        return bool(doubts(use.pools, use.lot.place.scope, self._snapshot, self._policy))

    def _keep(self, use: Use, reason: Reason) -> Keep:
        rate = use.lot.usd_per_hour
        return Keep(
            reservation=use.reservation,
            pool=_pool_name(use),
            reasons=(reason,),
            usd_per_hour=None if rate is None else Decimal(0),
            tenants=use.lot.tenants,
            jobs=use.lot.jobs,
        )


def resize_request(lineage: str, held: Reservation, count: int) -> ResizeRequest:
    """Set the count in place; the key comes with the plan."""
    return ResizeRequest(
        key="",
        lineage=lineage,
        place=held.place,
        reservation_id=held.id,
        from_count=held.count,
        to_count=count,
    )


def _pool_name(use: Use) -> str:
    return use.pools[0].name if use.pools else ""


def _hours(span: timedelta) -> Decimal:
    return Decimal(span // timedelta(microseconds=1)) / (_HOUR // timedelta(microseconds=1))


def _minutes(span: timedelta) -> int:
    return int(span.total_seconds() // 60)
