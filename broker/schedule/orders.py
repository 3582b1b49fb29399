"""The answer: grants, loans and reclaims that stand, and where each pool's slots are."""

from datetime import datetime

import msgspec

from broker.schedule.promises import Slots


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of a loan and whose they are; `tenant` None: promised to nobody."""

    tenant: str | None
    gpus: int


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs on a node. `named` false: the queue does not tell the node's name, and it is numbered within its source."""

    node: str
    gpus: int
    named: bool


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is grant, restart, loan, reclaim, shrink or expand. It stands since `since`, until the queue shows that it
    was done. `gpus` are those to start or to go on with; of a reclaim, those to give back.

    `lag_s` is how far the job is behind its static schedule, negative ahead. `lenders` are a loan's, `nodes` those that
    the job holds, where the queue names them, `places` a proposal of where it can start. `due` is when what a reclaim
    or a shrink frees is free at the latest.
    """

    job: str
    tenant: str
    user: str | None
    kind: str
    gpus: int
    lag_s: float
    reason: str
    since: datetime
    new: bool
    lenders: tuple[Part, ...] = ()
    nodes: tuple[str, ...] = ()
    places: tuple[Spot, ...] = ()
    due: datetime | None = None


class Loan(msgspec.Struct, frozen=True, kw_only=True):
    """A job that runs on what others leave idle. `own_gpus` of it are its tenant's own share.

    `beyond_gpus` were lent by nobody: the scheduler started the job of its own accord.
    """

    job: str
    tenant: str
    gpus: int
    own_gpus: int
    lenders: tuple[Part, ...]
    beyond_gpus: int = 0


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that were called back at `since` and are still held at this look, longer than allowed."""

    job: str
    tenant: str
    kind: str
    gpus: int
    since: datetime
    nodes: tuple[str, ...] = ()


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant in a pool, in GPUs: promised; owed to jobs; held by owed jobs; held by jobs that run early; lent out."""

    tenant: str
    entitlement_gpus: int
    may_lend_gpus: int
    borrows: bool
    owed_gpus: int
    granted_gpus: int
    early_gpus: int
    lent_gpus: int
    queued_jobs: int


class Class(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one tenant, user and queue: what was measured of them, and of how many. None: not measured yet."""

    name: str
    borrows: bool
    reclaim_s: float | None
    reclaims: int
    restore_s: float | None
    restores: int
    overdue: tuple[str, ...]


class Firm(msgspec.Struct, frozen=True, kw_only=True):
    """Loans to jobs that cannot be called back: slots lent so now, of which a claim needs some; how such loans went."""

    gpus: int = 0
    in_the_way_gpus: int = 0
    loans: int = 0
    missed: int = 0


class PoolSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """`undecided` says why nothing is decided for the pool, "" where it is. `short_gpus`: claims beyond capacity, of
    which what runs early and cannot be called back is no part. `expanded_gpus` are those of elastic jobs beyond what is
    promised to each.
    """

    pool: str
    undecided: str = ""
    capacity_gpus: int = 0
    slots: tuple[Slots, ...] = ()
    busy_gpus: int = 0
    free_gpus: int = 0
    claimed_gpus: int = 0
    short_gpus: int = 0
    held_back_gpus: int = 0
    expanded_gpus: int = 0
    firm: Firm = Firm()
    largest_lag_s: float = 0.0
    grants: tuple[Order, ...] = ()
    loans: tuple[Order, ...] = ()
    reclaims: tuple[Order, ...] = ()
    shrinks: tuple[Order, ...] = ()
    expansions: tuple[Order, ...] = ()
    lent: tuple[Loan, ...] = ()
    overdue: tuple[Overdue, ...] = ()
    tenants: tuple[Share, ...] = ()
    classes: tuple[Class, ...] = ()
    notes: tuple[str, ...] = ()


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """`since` is the first look, from which lags are counted."""

    now: datetime
    since: datetime
    pools: tuple[PoolSchedule, ...]
    notes: tuple[str, ...] = ()
