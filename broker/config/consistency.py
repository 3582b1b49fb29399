"""Mistakes that no single key shows: names used twice, names of nothing, limits that contradict each other."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

from broker.config.clouds import entries, name_of
from broker.config.types import Config, QueueSource
from broker.config.values import nearest
from broker.model.place import ProviderName
from broker.model.policy import PlaceRule, Pool, Tenant
from providers.tags import OURS, refused


class Mistake(NamedTuple):
    """`rests_on` are further keys (or tables) that the sentence is about: where one of them could not be read, a
    default stands in for it, and the sentence may be false.
    """

    place: str
    sentence: str
    rests_on: tuple[str, ...] = ()


def contradictions(config: Config) -> Iterator[Mistake]:
    yield from _doubles(config)
    yield from _queues(config)
    yield from _pools(config)
    yield from _tenants(config)
    yield from _sources_of_entitlements(config)
    yield from _guards(config)
    yield from _purchase(config)
    yield from _tags(config)


def _doubles(config: Config) -> Iterator[Mistake]:
    yield from _named_twice("queue", "name", [queue.name for queue in config.queues])
    yield from _named_twice("pool", "name", [pool.name for pool in config.policy.pools])
    yield from _named_twice("tenant", "name", [tenant.name for tenant in config.policy.tenants])
    for settings, (table, key) in zip(config.providers, map(_entry_key, config.providers), strict=True):
        yield from _named_twice(table, key, [account for account, _ in entries(settings)])
    defaults = [f"pool[{index}]" for index, pool in enumerate(config.policy.pools) if pool.default]
    if len(defaults) > 1:
        yield Mistake(
            f"{defaults[1]}.default", f"is set in {defaults[0]} already; jobs without a GPU model have one pool"
        )


def _entry_key(settings: Any) -> tuple[str, str]:
    return {
        ProviderName.AWS: ("aws.account", "name"),
        ProviderName.GCP: ("gcp.project", "project"),
        ProviderName.AZURE: ("azure.subscription", "subscription"),
    }[name_of(settings)]


def _named_twice(table: str, key: str, names: list[str]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name and name in first:
            yield Mistake(f"{table}[{index}].{key}", f'"{name}" is the name of {table}[{first[name]}] already')
        first.setdefault(name, index)


def _queues(config: Config) -> Iterator[Mistake]:
    pools = [pool.name for pool in config.policy.pools]
    for index, queue in enumerate(config.queues):
        yield from _queue(f"queue[{index}]", queue)
        yield from _names_of_nothing(f"queue[{index}].pools", "pool", queue.pools, pools)


def _queue(path: str, queue: QueueSource) -> Iterator[Mistake]:
    ways = sum(map(bool, (queue.files, queue.command, queue.url, queue.live)))
    if ways > 1:
        yield Mistake(path, "has more than one of file, command, url and live; make several queues of it")
    if not ways:
        rests_on = tuple(f"{path}.{way}" for way in ("file", "command", "url", "live"))
        yield Mistake(path, "has none of file, command, url and live", rests_on)


def _names_of_nothing(path: str, kind: str, names: Iterable[str], known: list[str]) -> Iterator[Mistake]:
    for name in names:
        if name not in known:
            rests_on = tuple(f"{kind}[{index}].name" for index in range(len(known)))
            yield Mistake(path, f'there is no {kind} "{name}"{nearest(name, known)}', rests_on)


def _pools(config: Config) -> Iterator[Mistake]:
    reach = {name_of(settings): dict(entries(settings)) for settings in config.providers}
    for index, pool in enumerate(config.policy.pools):
        if pool.max_gpus is not None and pool.min_gpus > pool.max_gpus:
            yield Mistake(f"pool[{index}].min_gpus", f"{pool.min_gpus} is more than max_gpus {pool.max_gpus}")
        for number, place in enumerate(pool.places):
            yield from _place(f"pool[{index}].place[{number}]", place, reach)
    yield from _entitlements(config)


Regions = Mapping[str, tuple[str, ...]]
"""The configured regions of each account."""


def _place(path: str, place: PlaceRule, reach: Mapping[ProviderName, Regions]) -> Iterator[Mistake]:
    """The place must lie within what is configured, or no offer could ever serve it."""
    if not place.provider:
        return
    if place.provider not in reach:
        sentence = f"{place.provider} is not configured; add [{place.provider}]"
        yield Mistake(f"{path}.provider", sentence, (place.provider.value,))
        return
    accounts = reach[place.provider]
    if place.account is not None and place.account not in accounts:
        near = nearest(place.account, list(accounts))
        sentence = f'there is no {place.provider} account "{place.account}"{near}'
        yield Mistake(f"{path}.account", sentence, (place.provider.value,))
    elif place.region is not None:
        for sentence in _region(place.region, accounts, place.account):
            yield Mistake(f"{path}.region", sentence, (place.provider.value,))


def _region(region: str, accounts: Regions, account: str | None) -> Iterator[str]:
    regions = list(accounts[account] if account else chain.from_iterable(accounts.values()))
    if regions and region not in regions:
        yield f'"{region}" is not among the configured regions{nearest(region, regions)}'


def _entitlements(config: Config) -> Iterator[Mistake]:
    for index, pool in enumerate(config.policy.pools):
        promised = sum(dict(tenant.entitlements).get(pool.name, 0) for tenant in config.policy.tenants)
        held = _most(pool)
        if held is not None and promised > held:
            sentence = f"{promised} GPUs are promised to tenants, but at most {held} may be held"
            yield Mistake(f"pool[{index}].max_gpus", sentence, (f"pool[{index}].name", f"pool[{index}].own"))


def _most(pool: Pool) -> int | None:
    """The most GPUs that the pool can hold, own nodes included."""
    own = sum(nodes.nodes * nodes.gpus_per_node for nodes in pool.own)
    return None if pool.max_gpus is None else pool.max_gpus + own


def _tenants(config: Config) -> Iterator[Mistake]:
    pools = [pool.name for pool in config.policy.pools]
    month = config.policy.guards.max_usd_per_month
    for index, tenant in enumerate(config.policy.tenants):
        yield from _names_of_nothing(f"tenant[{index}].entitlements", "pool", dict(tenant.entitlements), pools)
        yield from _names_of_nothing(f"tenant[{index}].max_lent", "pool", dict(tenant.max_lent), pools)
        yield from _lending(f"tenant[{index}]", tenant, {source.pool for source in config.entitlements})
        yield from _tenant_budget(f"tenant[{index}].budget_usd_per_month", tenant, month)


def _lending(table: str, tenant: Tenant, read_elsewhere: set[str]) -> Iterator[Mistake]:
    """`read_elsewhere`: pools in which a tenant is promised what another source says, if nothing is stated here."""
    path, promised = f"{table}.max_lent", dict(tenant.entitlements)
    for pool, gpus in tenant.max_lent:
        if gpus > promised.get(pool, 0) and not (pool in read_elsewhere and pool not in promised):
            sentence = f"{gpus} of {pool} is more than the entitlement of {promised.get(pool, 0)}"
            yield Mistake(path, sentence, (f"{table}.entitlements", "entitlements"))
    if tenant.max_lent and not tenant.lends:
        yield Mistake(path, "says how much is lent, and lends = false says nothing is")


def _sources_of_entitlements(config: Config) -> Iterator[Mistake]:
    pools = [pool.name for pool in config.policy.pools]
    for index, source in enumerate(config.entitlements):
        path = f"entitlements[{index}]"
        if source.pool:
            yield from _names_of_nothing(f"{path}.pool", "pool", (source.pool,), pools)
        if source.path and source.command:
            yield Mistake(path, "has both path and command; make two of it")
        if not source.path and not source.command:
            yield Mistake(path, "has neither path nor command", (f"{path}.path", f"{path}.command"))


def _tenant_budget(path: str, tenant: Tenant, month: Decimal | None) -> Iterator[Mistake]:
    budget = tenant.budget_usd_per_month
    if budget is not None and month is not None and budget > month:
        yield Mistake(path, f"{budget} is more than guards.max_usd_per_month {month}")


def _guards(config: Config) -> Iterator[Mistake]:
    guards = config.policy.guards
    month = guards.max_usd_per_month
    for name in ("max_usd_per_run", "max_usd_per_hour"):
        limit = getattr(guards, name)
        if limit is not None and month is not None and limit > month:
            yield Mistake(f"guards.{name}", f"{limit} is more than max_usd_per_month {month}")


def _purchase(config: Config) -> Iterator[Mistake]:
    purchase = config.policy.purchase
    if purchase.warn_price_age > purchase.max_price_age:
        sentence = "is longer than max_price_age, so nothing would ever be warned about"
        yield Mistake("purchase.warn_price_age", sentence, ("purchase.max_price_age",))
    if purchase.end_ahead < purchase.minimum_hold:
        sentence = "is shorter than minimum_hold, so a purchase would end before it may be released"
        yield Mistake("purchase.end_ahead", sentence, ("purchase.minimum_hold",))


def _tags(config: Config) -> Iterator[Mistake]:
    """What a configured cloud would refuse at each purchase; and ours are what it is found again by."""
    tags = config.policy.purchase.tags
    for name in (name for name, _ in tags if name.lower().startswith(OURS)):
        yield Mistake("purchase.tags", f'"{name}" begins with {OURS}, by which the broker knows what it bought')
    for settings in config.providers:
        yield from (Mistake("purchase.tags", sentence) for sentence in refused(name_of(settings), tags))
