"""`schedule`: the observed queue of one pool through the allocator; nothing is started or stopped by it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broker import queue_reading
from broker.clock import WallClock
from broker.config import load
from broker.errors import InputError, UsageError
from broker.model.job import Job
from broker.model.policy import Policy, Pool
from broker.model.snapshot import SourceView, Trust
from broker.purchase.pools import pool_of
from broker.sia.live import Step, schedule
from broker.sia.machine import Terms
from broker.sia.state import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`entitlements` empty: as configured for the pool. `capacity` None: the sum of entitlements."""

    files: tuple[Path, ...] = ()
    pool: str | None = None
    entitlements: Mapping[str, int]
    keeps_to_itself: frozenset[str] = frozenset()
    does_not_borrow: frozenset[str] = frozenset()
    capacity: int | None = None
    hold: int = 0
    rules: Rules


def for_queue(path: Path, asked: Asked, *, flags: Mapping[str, str]) -> Step:
    """Decide for the queue as of its own time. A source that could not be read refuses the whole."""
    read = queue_reading.read(path, asked.files, "auto", None, flags=flags)
    unread = [view.source for view in read.sources if view.trust is Trust.UNKNOWN]
    if unread or not read.sources:
        raise InputError(f"the queue is not known: {', '.join(unread) or 'no source'}", next_step="See: broker jobs")
    policy = load(path, flags=flags, env=os.environ).policy if path.exists() else Policy()
    pool = _pool(policy, asked.pool)
    terms = _terms(policy, pool, asked)
    jobs = [job for view in read.sources for job in view.jobs if _belongs(job, policy, pool)]
    capacity = sum(t.entitlement for t in terms.values()) if asked.capacity is None else asked.capacity
    live = [job for job in jobs if job.state.live]
    return schedule(live, terms, capacity, _now_s(read.sources), asked.rules, asked.hold)


def _pool(policy: Policy, name: str | None) -> Pool | None:
    """None: no pool is configured, and all jobs are one."""
    names = [pool.name for pool in policy.pools]
    if name is None and len(policy.pools) <= 1:
        return policy.pools[0] if policy.pools else None
    if name not in names:
        raise UsageError(f"--pool {name or '(none)'}: no such pool", next_step=f"There are: {', '.join(names)}")
    return policy.pools[names.index(name)]


def _terms(policy: Policy, pool: Pool | None, asked: Asked) -> dict[str, Terms]:
    shares = dict(asked.entitlements)
    if not shares and pool is not None:
        given = {tenant.name: dict(tenant.entitlements) for tenant in policy.tenants}
        shares = {name: pools[pool.name] for name, pools in given.items() if pool.name in pools}
    if not shares:
        raise UsageError(
            "no tenant has an entitlement here", next_step="Give --entitlement TENANT=GPUS, or configure it"
        )
    return {
        name: Terms(
            entitlement=share,
            lends=0 if name in asked.keeps_to_itself else None,
            borrows=name not in asked.does_not_borrow,
        )
        for name, share in shares.items()
    }


def _belongs(job: Job, policy: Policy, pool: Pool | None) -> bool:
    return pool is None or pool_of(job, policy.pools) == pool


def _now_s(sources: Sequence[SourceView]) -> float:
    """The latest time that a source speaks of; ours where none says."""
    known = [view.as_of for view in sources if view.as_of is not None]
    return (max(known) if known else WallClock().now()).timestamp()
