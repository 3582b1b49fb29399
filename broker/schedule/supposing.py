"""The configuration as it would be with other entitlements or another capacity."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from broker.errors import UsageError
from broker.model.gpu import known
from broker.model.policy import OwnNodes, Policy, Pool, Tenant

_ANY_AGE = timedelta(days=36500)


def suppose(policy: Policy, named: Sequence[str], shares: Mapping[str, int], capacity: int | None) -> Policy:
    """Without a configured pool, all jobs ask one. Without capacity of its own, a pool holds what it promises.

    Raises UsageError where it is not clear which of several pools is meant.
    """
    pools = policy.pools or (Pool(name="all", gpu_models=known(), places=(), default=True),)
    chosen = _chosen(pools, named, needed=bool(shares) or capacity is not None)
    tenants = policy.tenants
    if shares and chosen:
        tenants = _promised(tenants, chosen, shares)
    pools = tuple(_with_slots(pool, tenants, capacity if pool is chosen else None) for pool in pools)
    guards = msgspec.structs.replace(policy.guards, max_data_age=_ANY_AGE)
    return msgspec.structs.replace(policy, pools=pools, tenants=tenants, guards=guards)


def entitlements(given: Sequence[str]) -> dict[str, int]:
    """TENANT=GPUS, one each. Raises UsageError."""
    found: dict[str, int] = {}
    for text in given:
        tenant, _, gpus = text.rpartition("=")
        if not tenant or not gpus.isdecimal():
            example = "For example: --entitlement nlp=64"
            raise UsageError(f"--entitlement {text!r} is not TENANT=GPUS", next_step=example)
        if found.setdefault(tenant, int(gpus)) != int(gpus):
            two = f"--entitlement gives {tenant} both {found[tenant]} and {int(gpus)}"
            raise UsageError(two, next_step="Give each tenant one")
    return found


def _chosen(pools: tuple[Pool, ...], named: Sequence[str], *, needed: bool) -> Pool | None:
    fit = [pool for pool in pools if not named or pool.name in named]
    if needed and len(fit) > 1:
        names = ", ".join(pool.name for pool in fit)
        raise UsageError("--entitlement and --capacity are of one pool", next_step=f"Name it: --pool, one of {names}")
    return fit[0] if fit else None


def _promised(tenants: tuple[Tenant, ...], pool: Pool, shares: Mapping[str, int]) -> tuple[Tenant, ...]:
    configured = {tenant.name: tenant for tenant in tenants}
    found = []
    for name in dict.fromkeys((*configured, *shares)):
        tenant = configured.get(name, Tenant(name=name))
        others = {held: gpus for held, gpus in tenant.entitlements if held != pool.name}
        promised = {**others, pool.name: shares[name]} if name in shares else others
        found.append(msgspec.structs.replace(tenant, entitlements=tuple(promised.items())))
    return tuple(found)


def _with_slots(pool: Pool, tenants: tuple[Tenant, ...], capacity: int | None) -> Pool:
    promised = sum(dict(tenant.entitlements).get(pool.name, 0) for tenant in tenants)
    if capacity is None and (pool.own or pool.places or not promised):
        return pool
    supposed = OwnNodes(nodes=promised if capacity is None else capacity, gpus_per_node=1)
    return msgspec.structs.replace(pool, own=(supposed,))
