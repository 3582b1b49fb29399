"""The one market behind the three faces: finite capacity, quotas, prices, reservations, instances.

Everything happens at the clock's time; what time does by itself (a pending reservation that becomes active, an end
that is reached) is caught up with before anything is read or changed, at its exact instant. Whoever calls from
another thread than the server's holds `World.lock`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from broker.clock import Clock
from broker.model.place import ProviderName
from providers.sandbox.catalogue import ALL_GPUS, Catalogue, MachineType, Pool
from providers.sandbox.holdings import BillLine, Holding, HoldingState, Instance, Stale, Step, bill_lines
from providers.sandbox.record import Effect, EffectKind, Record
from providers.sandbox.supply import PoolRule, Supply, draw
from providers.sandbox.terms import (
    MarketState,
    NoSuchHolding,
    NotSold,
    OutOfCapacity,
    OverQuota,
    PriceRule,
    QuotaRule,
    Twist,
    WrongState,
)


class Market:
    """`state` is what is saved; everything else is derived from it. `twist` is set by the server for each call."""

    def __init__(self, clock: Clock, record: Record, state: MarketState, catalogue: Catalogue | None = None) -> None:
        self.clock = clock
        self.record = record
        self.state = state
        self.catalogue = catalogue or Catalogue()
        self.supply = Supply(self.catalogue, state.seed, state.busy, state.capacity)
        self.twist = Twist()
        self.call = 0

    # -- what a script or a test sets

    def set_capacity(self, rule: PoolRule) -> None:
        """What is held already stays held; only new purchases feel it."""
        self.state.capacity.append(rule)

    def clear_capacity(self) -> None:
        """Back to the catalogue's capacity and the background tenants."""
        self.state.capacity.clear()

    def set_quota(self, rule: QuotaRule) -> None:
        self.state.quotas.append(rule)

    def set_price(self, rule: PriceRule) -> None:
        self.state.prices.append(rule)

    def set_provisioning(self, provider: ProviderName, delay: timedelta) -> None:
        """How long a new reservation is pending there."""
        self.state.provisioning_s[provider] = delay.total_seconds()

    def set_end_lag(self, provider: ProviderName, at_most: timedelta) -> None:
        """How long after its end date a reservation may go on, and is billed; each gets its own share of it."""
        self.state.end_lag_s[provider] = at_most.total_seconds()

    # -- what a face reads

    def free(self, pool: Pool) -> int:
        """Instances that could be bought there now."""
        self.settle()
        return max(self.supply.at(pool, self.clock.now()) - self._taken(pool), 0)

    def quota_limit(self, provider: ProviderName, account: str, region: str, quota: str) -> int | None:
        """In the quota's units; None where there is no such quota."""
        for rule in reversed(self.state.quotas):
            named = (rule.provider, rule.quota) == (provider, quota)
            if named and rule.account in (None, account) and rule.region in (None, region):
                return rule.limit
        return self.catalogue.quota_limits(provider, region).get(quota)

    def quota_used(self, provider: ProviderName, account: str, region: str, quota: str) -> int:
        """By live reservations, and by instances that none holds."""
        self.settle()
        in_use = self._in_use(provider, account, None if quota == ALL_GPUS else region)
        return sum(dict(machine_type.quotas).get(quota, 0) * count for machine_type, count in in_use)

    def price(self, machine_type: MachineType) -> Decimal:
        """US dollars per instance-hour."""
        for rule in reversed(self.state.prices):
            if (rule.provider, rule.region, rule.machine_type) == (
                machine_type.provider,
                machine_type.region,
                machine_type.name,
            ):
                return rule.usd_per_hour
        return machine_type.usd_per_hour

    def holdings(
        self, provider: ProviderName | None = None, account: str | None = None, region: str | None = None
    ) -> list[Holding]:
        """What reads show, oldest first, gone ones too: hidden ones are left out, stale ones are as they were."""
        self.settle()
        found = (h for h in self.state.holdings if _within(h, provider, account, region))
        return [seen for holding in found if (seen := self._seen(holding)) is not None]

    def holding(self, provider: ProviderName, account: str, region: str, id: str) -> Holding:
        """As reads show it. Raises NoSuchHolding."""
        for holding in self.holdings(provider, account, region):
            if holding.id == id:
                return holding
        raise NoSuchHolding(id)

    def true_holding(self, provider: ProviderName, account: str, region: str, id: str) -> Holding:
        """As it is, hidden or not. Raises NoSuchHolding."""
        self.settle()
        for holding in self.state.holdings:
            if _within(holding, provider, account, region) and holding.id == id:
                return holding
        raise NoSuchHolding(id)

    def instances(
        self, provider: ProviderName | None = None, account: str | None = None, region: str | None = None
    ) -> list[Instance]:
        """Running ones and ended ones, oldest first."""
        return [i for i in self.state.instances if _within(i, provider, account, region)]

    def consumers(self, holding: Holding) -> list[Instance]:
        """Running instances that consume it: may be more than its count (Azure)."""
        scope = (holding.provider, holding.account, holding.region)
        return [i for i in self.instances(*scope) if i.ended is None and i.holding == holding.id]

    def used_counts(self, provider: ProviderName, account: str, region: str | None) -> dict[str, int]:
        """Running consumers by reservation id; those without any are left out."""
        return Counter(
            i.holding for i in self.instances(provider, account, region) if i.ended is None and i.holding is not None
        )

    def bill(self) -> list[BillLine]:
        """The truth about money: who held what count from when to when at which price."""
        self.settle()
        return [line for holding in self.state.holdings for line in bill_lines(holding)]

    # -- what a face does

    def reserve(
        self,
        pool: Pool,
        account: str,
        count: int,
        *,
        id: str,
        name: str = "",
        ends: datetime | None = None,
        tags: dict[str, str] | None = None,
        details: dict[str, Any] | None = None,
    ) -> Holding:
        """Buy. Billed from when it becomes active: at once, or after the provisioning delay.

        Raises NotSold, OverQuota or OutOfCapacity. `account` is the cloud's own name for it.
        """
        self._check(pool, account, count)
        now = self.clock.now()
        holding = Holding(
            id=id,
            provider=pool.provider,
            account=account,
            region=pool.region,
            zone=pool.zone,
            machine_type=pool.machine_type,
            count=count,
            created=now,
            name=name,
            missing=self._undelivered(count),
            ready=now + self._provisioning(pool.provider),
            failure=self.twist.failure,
            ends=ends,
            tags=dict(tags or {}),
            details=dict(details or {}),
            steps=[],
        )
        if self.twist.hidden is not None:
            holding.stale = Stale(until=now + self.twist.hidden, view=None)
        self.state.holdings.append(holding)
        self._note(EffectKind.RESERVE, holding, 0, holding.billed)
        self.settle()
        return holding

    def resize(self, holding: Holding, count: int) -> Holding:
        """Set the count, 0 included; the bill changes now. Raises WrongState, OverQuota, OutOfCapacity."""
        holding = self._mine(holding)
        if not holding.state.live:
            raise WrongState(f"{holding.id} is {holding.state}")
        before = holding.billed
        if count > before:
            self._check(holding.pool, holding.account, count - before)
        self._hide(holding)
        holding.missing = self._missing_after(holding, before, count)
        holding.count = count
        if holding.started is not None and before != holding.billed:
            self._step(holding, self.clock.now(), holding.billed)
        self._note(EffectKind.RESIZE, holding, before, holding.billed)
        return holding

    def _missing_after(self, holding: Holding, before: int, count: int) -> int:
        """Google goes on lacking what it lacked; the others try all that is asked for anew."""
        lacked = max(holding.missing - max(before - count, 0), 0) if holding.provider is ProviderName.GCP else 0
        return lacked + self._undelivered(max(count - before, 0))

    def _undelivered(self, bought: int) -> int:
        return 0 if self.twist.delivers is None else max(bought - self.twist.delivers, 0)

    def set_end(self, holding: Holding, ends: datetime | None) -> Holding:
        """Raises WrongState if it is gone."""
        holding = self._mine(holding)
        if not holding.state.live:
            raise WrongState(f"{holding.id} is {holding.state}")
        self._hide(holding)
        holding.ends = ends
        self._note(EffectKind.SET_END, holding, holding.billed, holding.billed)
        return holding

    def release(self, holding: Holding) -> Holding:
        """End it now; its instances go on as plain on-demand ones. One that is gone already stays as it is."""
        holding = self._mine(holding)
        if holding.state.live:
            self._hide(holding)
            before = holding.billed
            self._end(holding, self.clock.now(), HoldingState.RELEASED)
            self._note(EffectKind.RELEASE, holding, before, 0)
        return holding

    def tag(self, holding: Holding, tags: dict[str, str]) -> Holding:
        """Replace the tags."""
        holding = self._mine(holding)
        holding.tags = dict(tags)
        self._note(EffectKind.TAG, holding, holding.billed, holding.billed)
        return holding

    def launch(
        self,
        pool: Pool,
        account: str,
        *,
        id: str,
        holding: Holding | None = None,
        beyond: bool = False,
        name: str = "",
        tags: dict[str, str] | None = None,
        details: dict[str, Any] | None = None,
    ) -> Instance:
        """Start one instance, in the reservation if one is given, else from free capacity.

        `beyond` lets it exceed the reservation's count from free capacity (Azure). Raises WrongState where the
        reservation is full or not active, and what `reserve` raises.
        """
        full = holding is None or self._mine(holding).there <= len(self.consumers(holding))
        if holding is not None and (holding.state is not HoldingState.ACTIVE or (full and not beyond)):
            raise WrongState(holding.id)
        if full:
            self._check(pool, account, 1)
        instance = Instance(
            id=id,
            provider=pool.provider,
            account=account,
            region=pool.region,
            zone=pool.zone,
            machine_type=pool.machine_type,
            launched=self.clock.now(),
            holding=holding.id if holding else None,
            name=name,
            tags=dict(tags or {}),
            details=dict(details or {}),
        )
        self.state.instances.append(instance)
        self._effect(EffectKind.LAUNCH, pool.provider, id, 0, 1, at=self.clock.now(), call=self.call)
        return instance

    def terminate(self, instance: Instance) -> Instance:
        """Repeatable."""
        if instance.ended is None:
            instance.ended = self.clock.now()
            self._effect(EffectKind.TERMINATE, instance.provider, instance.id, 1, 0, at=instance.ended, call=self.call)
        return instance

    def new_id(self, prefix: str, digits: int) -> str:
        """The next of a row of ids that the seed determines: `prefix` and hex digits."""
        self.state.made += 1
        return prefix + hashlib.sha256(f"{self.state.seed}/{self.state.made}".encode()).hexdigest()[:digits]

    # -- what time does

    def settle(self) -> None:
        """Catch up with the clock."""
        now = self.clock.now()
        for holding in self.state.holdings:
            if holding.state is HoldingState.PENDING and holding.ready <= now:
                self._become(holding, holding.ready)
            ended = self._end_of(holding)
            if holding.state.live and ended is not None and ended <= now:
                before = holding.billed
                self._end(holding, ended, HoldingState.EXPIRED)
                self._effect(EffectKind.EXPIRE, holding.provider, holding.id, before, 0, at=ended, call=0)

    def _end_of(self, holding: Holding) -> datetime | None:
        lag_s = self.state.end_lag_s.get(holding.provider, 0.0) * draw(f"{self.state.seed}/{holding.id}/end")
        return holding.ends + timedelta(seconds=lag_s) if holding.ends else None

    def _become(self, holding: Holding, ready: datetime) -> None:
        if holding.failure is not None:
            self._end(holding, ready, HoldingState.FAILED)
            return
        holding.state = HoldingState.ACTIVE
        holding.started = ready
        self._step(holding, ready, holding.billed)

    # -- helpers

    def _check(self, pool: Pool, account: str, count: int) -> None:
        machine_type = self.catalogue.find(pool.provider, pool.region, pool.machine_type)
        if machine_type is None or pool.zone not in machine_type.zones:
            raise NotSold(f"{pool.machine_type} in {pool.zone or pool.region}")
        for quota, units in machine_type.quotas:
            used = self.quota_used(pool.provider, account, pool.region, quota)
            limit = self.quota_limit(pool.provider, account, pool.region, quota)
            if limit is not None and used + units * count > limit:
                raise OverQuota(quota, limit, used)
        if count > self.free(pool):
            raise OutOfCapacity(f"{count} x {pool.machine_type} in {pool.zone or pool.region}")

    def _provisioning(self, provider: ProviderName) -> timedelta:
        if self.twist.failure is not None:
            return self.twist.fails_after
        return timedelta(seconds=self.state.provisioning_s.get(provider, 0.0))

    def _taken(self, pool: Pool) -> int:
        """By live reservations with what runs beyond them, and by instances outside of any."""
        held = [h for h in self.state.holdings if h.state.live and h.pool == pool]
        used = Counter(i.holding for i in self._running() if i.pool == pool)
        return sum(max(h.count, used.pop(h.id, 0)) for h in held) + used.total()

    def _in_use(self, provider: ProviderName, account: str, region: str | None) -> Iterator[tuple[MachineType, int]]:
        held = [h for h in self.state.holdings if h.state.live and _within(h, provider, account, region)]
        inside, used = {h.id for h in held}, self.used_counts(provider, account, region)
        counts = [(h.region, h.machine_type, max(h.count, used.get(h.id, 0))) for h in held]
        running = (i for i in self._running() if _within(i, provider, account, region) and i.holding not in inside)
        for where, name, count in [*counts, *((i.region, i.machine_type, 1) for i in running)]:
            if machine_type := self.catalogue.find(provider, where, name):
                yield machine_type, count

    def _running(self) -> Iterator[Instance]:
        return (instance for instance in self.state.instances if instance.ended is None)

    def _mine(self, holding: Holding) -> Holding:
        return self.true_holding(holding.provider, holding.account, holding.region, holding.id)

    def _seen(self, holding: Holding) -> Holding | None:
        stale = holding.stale
        if stale is None or stale.until <= self.clock.now():
            return holding
        return msgspec.structs.replace(holding, **msgspec.structs.asdict(stale.view)) if stale.view else None

    def _hide(self, holding: Holding) -> None:
        if self.twist.hidden is not None:
            holding.stale = Stale(until=self.clock.now() + self.twist.hidden, view=holding.view)

    def _end(self, holding: Holding, at: datetime, state: HoldingState) -> None:
        holding.state = state
        holding.ended = at
        if holding.started is not None:
            self._step(holding, at, 0)
        for instance in self.consumers(holding):
            instance.holding = None

    def _step(self, holding: Holding, at: datetime, count: int) -> None:
        machine_type = self.catalogue.find(holding.provider, holding.region, holding.machine_type)
        usd_per_hour = self.price(machine_type) if machine_type else Decimal(0)
        holding.steps.append(Step(at=at, count=count, usd_per_hour=usd_per_hour))

    def _note(self, kind: EffectKind, holding: Holding, before: int, after: int) -> None:
        self._effect(kind, holding.provider, holding.id, before, after, at=self.clock.now(), call=self.call)

    def _effect(
        self, kind: EffectKind, provider: ProviderName, id: str, before: int, after: int, *, at: datetime, call: int
    ) -> None:
        self.record.effects.append(
            Effect(at=at, call=call, provider=provider, kind=kind, id=id, before=before, after=after)
        )


def _within(thing: Holding | Instance, provider: ProviderName | None, account: str | None, region: str | None) -> bool:
    return provider in (None, thing.provider) and account in (None, thing.account) and region in (None, thing.region)
