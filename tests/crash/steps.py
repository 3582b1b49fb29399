"""One run of the broker as cron would start it, with the smallest decision that wants something.

Everything that could buy twice or leak is the real thing: lock, ledger, settle, adapters, apply. Only the wish is
small: so many instances in one place.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec

from broker.apply.apply import ApplyResult, admit, apply
from broker.apply.boundary import Checkpoint, go_on
from broker.apply.settle import settle
from broker.clock import FixedClock
from broker.model.intent import Intent
from broker.model.ledger import Heartbeat
from broker.model.offer import Offer, Price, Shape
from broker.model.plan import Action, Extend, Plan, Reason, Release, Reserve, Resize
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation
from broker.model.snapshot import ScopeView, Trust
from providers.base import Provider, ProviderError
from state.lock import Lock
from state.store import Store
from tests.crash.clouds import Cloud

WHY = (Reason("wanted"),)
LOCK_WAIT = timedelta(seconds=20)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run is given. `wrap` lets a test take something out of the provider or the store."""

    cloud: Cloud
    endpoint: str
    state: Path
    now: datetime
    want: int
    checkpoint: Checkpoint = go_on
    wrap: Callable[[Provider], Provider] = lambda provider: provider
    store: type[Store] = Store
    ready: Provider | None = None
    grow: bool = True
    end_ahead: timedelta | None = None

    @property
    def clock(self) -> FixedClock:
        return FixedClock(self.now)

    def provider(self) -> Provider:
        """`ready` is for a forked process alone: two that share connections would read each other's replies."""
        return self.wrap(self.ready or self.cloud.connect(self.endpoint, self.clock))


def run(world: World) -> ApplyResult:
    """Lock, settle, observe, decide, apply."""
    provider = world.provider()
    providers = {world.cloud.name: provider}
    with Lock(world.state, command="run", now=world.now, timeout=LOCK_WAIT), world.store.open(world.state) as store:
        settle(store, providers, world.clock, checkpoint=world.checkpoint, parallel=1)
        views = look(world.cloud, provider, world.now)
        store.witness(views, world.now)
        plan = decide(world, store, views)
        done = apply(plan, store, providers, world.clock, checkpoint=world.checkpoint, parallel=1)
        store.beat(Heartbeat(at=world.now, run_id=plan.id, command="run"))
        return done


def apply_saved(world: World, plan: Plan) -> ApplyResult:
    provider = world.provider()
    with Lock(world.state, command="apply", now=world.now, timeout=LOCK_WAIT), world.store.open(world.state) as store:
        admit(plan, store, world.now)
        return apply(plan, store, {world.cloud.name: provider}, world.clock, checkpoint=world.checkpoint, parallel=1)


def look(cloud: Cloud, provider: Provider, now: datetime) -> tuple[ScopeView, ...]:
    scope = cloud.place.scope
    try:
        found = provider.reservations(scope)
    except ProviderError as error:
        return (ScopeView(scope=scope, trust=Trust.UNKNOWN, reservations_at=None, problems=(str(error),)),)
    return (ScopeView(scope=scope, trust=Trust.COMPLETE, reservations_at=now, reservations=found),)


def decide(world: World, store: Store, views: Sequence[ScopeView]) -> Plan:
    """What is missing is bought, in place where one may grow; what is too much is given back; unknown is held."""
    held = [
        r
        for view in store.made_whole(views, world.now)
        for r in view.reservations
        if r.owner and r.owner.lineage == store.lineage and r.state.supplies and r.count
    ]
    moving = any(isinstance(i.request, EndRequest) for i in store.intents(open_only=True))
    trusted = not moving and all(view.trust is Trust.COMPLETE for view in views)
    short = world.want - sum(r.count for r in held) - sum(_pending(i) for i in store.intents(open_only=True))
    identity = f"{store.lineage}/{store.serial}/{world.now}/{world.want}"
    plan_id = hashlib.sha256(identity.encode()).hexdigest()[:16]
    key = hashlib.sha256(f"{store.lineage}/{plan_id}/0".encode()).hexdigest()[:24]
    actions = _actions(world, store.lineage, key, short, held) if trusted else ()
    return Plan(
        id=plan_id,
        lineage=store.lineage,
        serial=store.serial,
        made=world.now,
        expires=world.now + timedelta(minutes=30),
        snapshot_digest="",
        policy_digest="",
        actions=actions,
    )


def _pending(intent: Intent) -> int:
    request = intent.request
    if isinstance(request, ReserveRequest):
        return request.count
    return max(request.to_count - request.from_count, 0) if isinstance(request, ResizeRequest) else 0


def _actions(world: World, lineage: str, key: str, short: int, held: list[Reservation]) -> tuple[Action, ...]:
    if short > 0:
        return (
            _grown(world, lineage, key, short, held[0]) if held and world.grow else _bought(world, lineage, key, short),
        )
    if short == 0 and world.end_ahead:
        return tuple(_extended(world, lineage, key, r) for r in held if _ends_soon(r, world))[:1]
    if short < 0 and held:
        last = held[-1]
        return (_released(lineage, key, last) if last.count <= -short else _grown(world, lineage, key, short, last),)
    return ()


def _bought(world: World, lineage: str, key: str, count: int) -> Reserve:
    cloud = world.cloud
    request = ReserveRequest(
        key=key,
        lineage=lineage,
        place=cloud.place,
        machine_type=cloud.machine_type,
        count=count,
        end=world.now + world.end_ahead if world.end_ahead else None,
    )
    offer = Offer(
        place=cloud.place,
        shape=Shape(cloud.machine_type, cloud.gpu_model, 8),
        price=Price(cloud.price, "catalogue", world.now),
    )
    return Reserve(pool="gpu", reasons=WHY, usd_per_hour=cloud.price * count, request=request, offer=offer)


def _ends_soon(held: Reservation, world: World) -> bool:
    return held.ends is not None and world.end_ahead is not None and held.ends < world.now + world.end_ahead / 2


def _extended(world: World, lineage: str, key: str, held: Reservation) -> Extend:
    assert held.ends is not None and world.end_ahead is not None
    request = EndRequest(
        key=key,
        lineage=lineage,
        place=held.place,
        reservation_id=held.id,
        from_end=held.ends,
        to_end=world.now + world.end_ahead,
    )
    return Extend(pool="gpu", reasons=WHY, usd_per_hour=Decimal(0), request=request, reservation=held)


def _grown(world: World, lineage: str, key: str, by: int, held: Reservation) -> Resize:
    request = ResizeRequest(
        key=key,
        lineage=lineage,
        place=held.place,
        reservation_id=held.id,
        from_count=held.count,
        to_count=held.count + by,
    )
    return Resize(pool="gpu", reasons=WHY, usd_per_hour=world.cloud.price * by, request=request, reservation=held)


def _released(lineage: str, key: str, held: Reservation) -> Release:
    request = ReleaseRequest(key=key, lineage=lineage, place=held.place, reservation_id=held.id)
    return Release(pool="gpu", reasons=WHY, usd_per_hour=None, request=request, reservation=held)
