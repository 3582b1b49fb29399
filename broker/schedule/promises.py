"""What tenants are promised in a pool, and how many slots it has: from configuration and ledger, no cloud is asked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from broker.model.policy import OwnNodes, Policy, Pool, Tenant
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import EntitlementView
from broker.purchase.pools import allows_place, allows_type
from broker.purchase.yard import mismatch
from broker.sia.machine import Terms

EVERYBODY = "(everybody)"
"""The one tenant of a pool in which nobody is promised anything."""


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs that one source supplies now: a pool's own nodes, or a reservation by its id."""

    source: str
    gpus: int


def with_read(policy: Policy, views: Sequence[EntitlementView]) -> Policy:
    """The policy with what was read of entitlements. What a tenant's configuration states for a pool, even none, wins;
    what several sources say of one pool adds up.
    """
    configured = {tenant.name: tenant for tenant in policy.tenants}
    read: dict[str, dict[str, int]] = {name: {} for name in configured}
    for view in views:
        for name, gpus in view.gpus:
            shares = read.setdefault(name, {})
            shares[view.pool] = shares.get(view.pool, 0) + gpus
    tenants = [_with(configured.get(name) or Tenant(name=name), shares) for name, shares in read.items()]
    return msgspec.structs.replace(policy, tenants=tuple(tenants))


def _with(tenant: Tenant, read: Mapping[str, int]) -> Tenant:
    return msgspec.structs.replace(tenant, entitlements=tuple({**read, **dict(tenant.entitlements)}.items()))


def slots_of(pool: Pool, policy: Policy, reservations: Sequence[Reservation], now: datetime) -> tuple[Slots, ...]:
    """What is active now; a reservation that several pools may use counts for the first of them."""
    own = [
        Slots(source=source_of(index, nodes), gpus=nodes.nodes * nodes.gpus_per_node)
        for index, nodes in enumerate(pool.own)
    ]
    held = [Slots(source=each.id, gpus=each.usable_gpus) for each in reservations_of(pool, policy, reservations, now)]
    return (*own, *held)


def source_of(index: int, nodes: OwnNodes) -> str:
    """What a pool's own nodes are called."""
    return f"own nodes {', '.join(nodes.node_patterns) or index}"


def reservations_of(
    pool: Pool, policy: Policy, reservations: Sequence[Reservation], now: datetime
) -> list[Reservation]:
    """Those that are active now, by id; one that several pools may use counts for the first of them."""
    usable = [each for each in reservations if _usable(each, now) and _first(each, policy.pools) is pool]
    return sorted(usable, key=lambda each: each.id)


def terms_of(pool: Pool, policy: Policy, capacity: int, tenants: Iterable[str]) -> dict[str, Terms]:
    """By tenant: those who are promised something here, and those who only appear in the queue, with nothing."""
    promised = [tenant for tenant in policy.tenants if _entitlement(tenant, pool)]
    if not promised:
        return {EVERYBODY: Terms(entitlement=capacity)}
    configured = {tenant.name: tenant for tenant in policy.tenants}
    named = [tenant.name for tenant in promised]
    others = sorted(set(tenants) - set(named))
    return {name: _terms(configured.get(name) or Tenant(name=name), pool) for name in (*named, *others)}


def _terms(tenant: Tenant, pool: Pool) -> Terms:
    lends = dict(tenant.max_lent).get(pool.name) if tenant.lends else 0
    return Terms(entitlement=_entitlement(tenant, pool), lends=lends, borrows=tenant.borrows)


def _entitlement(tenant: Tenant, pool: Pool) -> int:
    return dict(tenant.entitlements).get(pool.name, 0)


def _usable(held: Reservation, now: datetime) -> bool:
    begun = held.usable_from is None or held.usable_from <= now
    ends = [end for end in (held.usable_until, held.ends) if end is not None]
    return held.state is ReservationState.ACTIVE and not held.interruptible and begun and all(now < end for end in ends)


def _first(held: Reservation, pools: tuple[Pool, ...]) -> Pool | None:
    return next((pool for pool in pools if _serves(held, pool)), None)


def _serves(held: Reservation, pool: Pool) -> bool:
    fits = allows_place(pool, held.place) and allows_type(pool, held.machine_type, held.gpu_model)
    return fits and not mismatch(held.match, pool.match)
