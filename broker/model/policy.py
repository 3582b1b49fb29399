"""What the operator wants: all that deciding and guarding take from the configuration. Pure values."""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.model.place import ProviderName


class Mode(StrEnum):
    ACT = "act"
    OBSERVE = "observe"


class PlaceRule(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pool may be served; None matches anything. Zones are matched by name or by zone id."""

    provider: ProviderName
    account: str | None = None
    region: str | None = None
    zone: str | None = None


class OwnNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity that no reservation holds (on-premises, committed VMs), in whole nodes.

    A running job whose node names match one of `node_patterns` (shell patterns) runs there: neither demand to buy
    for nor use of a reservation.
    """

    nodes: int
    gpus_per_node: int
    node_patterns: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The key that demand is grouped by: a GPU model and the places allowed to serve it.

    `gpu_models` are names of `broker.model.gpu`; a job asks for this pool if its model is satisfied by one of them,
    or if it names no model and `default` is set; `queues`, `tenants` and `constraints` (empty: all) narrow that.
    `machine_types` empty allows every type with that GPU. `match` must be equal on supply that is to count.
    """

    name: str
    gpu_models: tuple[str, ...]
    places: tuple[PlaceRule, ...]
    machine_types: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    default: bool = False
    own: tuple[OwnNodes, ...] = ()
    min_gpus: int = 0
    max_gpus: int | None = None
    match: tuple[tuple[str, str], ...] = ()


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """`weight` shares what belongs to nobody; `entitlements` are GPUs per pool, and `max_lent` those of them that
    others may use at most while they are idle. `lends` false: none; `borrows` false: it uses nobody else's.
    """

    name: str
    weight: float = 1.0
    budget_usd_per_month: Decimal | None = None
    entitlements: tuple[tuple[str, int], ...] = ()
    lends: bool = True
    borrows: bool = True
    max_lent: tuple[tuple[str, int], ...] = ()


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """How buying and giving back is decided.

    `default_runtime`: how long a job without a time limit is taken to run. `runtime_quantile`: a job is taken to run no
    longer than this part of its user's finished jobs did, whatever its limit; 0 believes every limit. `lead`: how far
    ahead demand must be covered. `minimum_hold`: never released earlier after purchase. `reacquire`: how long getting
    it back is set to take. `end_ahead`: the end that a purchase gets where the cloud can move it, renewed when less
    than half is left. `release_grace`: how long the jobs that caused a reservation may be gone before it is a candidate
    for release. `visibility_window`: how long what was bought may be missing from a cloud's list and still counts as
    supply; the longest of the providers'.
    """

    default_runtime: timedelta = timedelta(hours=24)
    runtime_quantile: float = 0.95
    lead: timedelta = timedelta(hours=1)
    minimum_hold: timedelta = timedelta(hours=1)
    cooldown: timedelta = timedelta(minutes=30)
    reacquire: timedelta = timedelta(hours=1)
    end_ahead: timedelta = timedelta(hours=24)
    release_grace: timedelta = timedelta(minutes=15)
    drain_margin: timedelta = timedelta(minutes=5)
    visibility_window: timedelta = timedelta(minutes=5)
    max_price_age: timedelta = timedelta(days=365)
    warn_price_age: timedelta = timedelta(days=90)
    targeted: bool = True
    plan_lifetime: timedelta = timedelta(minutes=30)
    tags: tuple[tuple[str, str], ...] = ()


class Guards(msgspec.Struct, frozen=True, kw_only=True):
    """None is no limit. The rate and the month cover everything held, not only what a plan adds."""

    max_usd_per_run: Decimal | None = None
    max_usd_per_hour: Decimal | None = None
    max_usd_per_month: Decimal | None = None
    max_new_instances: int | None = None
    max_released_instances: int | None = None
    max_data_age: timedelta = timedelta(minutes=30)
    allow_irreversible: bool = False


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode = Mode.ACT
    pools: tuple[Pool, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    purchase: Purchase = Purchase()
    guards: Guards = Guards()
    protect: frozenset[str] = frozenset()
