"""Which pool a job asks, and what a pool allows: places, machine types, GPU models."""

import re
from fnmatch import fnmatchcase

from broker.model.gpu import satisfies
from broker.model.job import Job
from broker.model.offer import Offer
from broker.model.place import Place
from broker.model.policy import PlaceRule, Policy, Pool

_PARTS = re.compile(r"[&,|*()\[\]]+")

Asks = tuple[str | None, str | None, str, str | None]
"""All of a job that decides which pool it asks: jobs that agree in it ask the same."""


def asks(job: Job) -> Asks:
    return job.gpu_model, job.queue, job.tenant, job.constraint


def pool_of(job: Job, pools: tuple[Pool, ...]) -> Pool | None:
    """The first pool, in the order of the configuration, that the job asks; None if none serves it."""
    return next((pool for pool in pools if _asks(job, pool)), None)


def by_name(policy: Policy, name: str) -> tuple[Pool, ...]:
    """The pool of that name; none for an action that serves no pool any more."""
    return tuple(pool for pool in policy.pools if pool.name == name)


def allows_place(pool: Pool, place: Place) -> bool:
    """Whether any of the pool's rules covers the place."""
    return any(_covers(rule, place) for rule in pool.places)


def allows_type(pool: Pool, machine_type: str, gpu_model: str | None) -> bool:
    """Whether a machine type with these GPUs may serve the pool."""
    named = not pool.machine_types or machine_type in pool.machine_types
    return named and gpu_model is not None and any(satisfies(model, gpu_model) for model in pool.gpu_models)


def sells(pool: Pool, offer: Offer) -> bool:
    """Whether the offer has the pool's GPUs, wherever it is."""
    return any(satisfies(model, offer.shape.gpu_model) for model in pool.gpu_models)


def runs_on_own_nodes(job: Job, pool: Pool) -> int | None:
    """The index of the entry of `pool.own` on whose nodes the job runs."""
    for index, own in enumerate(pool.own):
        if any(fnmatchcase(name, pattern) for name in job.node_names for pattern in own.node_patterns):
            return index
    return None


def _asks(job: Job, pool: Pool) -> bool:
    return (
        _model_fits(job.gpu_model, pool)
        and (not pool.queues or job.queue in pool.queues)
        and (not pool.tenants or job.tenant in pool.tenants)
        and (not pool.constraints or _constrained(job.constraint or "", pool.constraints))
    )


def _constrained(constraint: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the node labels (`name=value`) or features that the job insists on is one of the pool's."""
    parts = _PARTS.split(constraint)
    return any(fnmatchcase(part, pattern) for part in parts if part for pattern in patterns)


def _model_fits(wanted: str | None, pool: Pool) -> bool:
    return (
        pool.default
        if wanted is None
        else any(satisfies(wanted, model) or satisfies(model, wanted) for model in pool.gpu_models)
    )


def _covers(rule: PlaceRule, place: Place) -> bool:
    scope = place.scope
    return (
        rule.provider == scope.provider
        and rule.account in (None, scope.account)
        and rule.region in (None, scope.region)
        and (rule.zone is None or rule.zone in (place.zone, place.zone_id))
    )
