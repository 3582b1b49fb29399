"""Configured sources of entitlements -> `EntitlementView`s, side by side."""

from collections.abc import Collection
from functools import partial

from broker.clock import Clock
from broker.config.types import Config, EntitlementSource
from broker.model.snapshot import EntitlementView
from broker.queues import encoding, fetch
from broker.queues.entitlements import Wanted, entitlements
from broker.queues.parsed import Unreadable
from broker.side_by_side import side_by_side


def observe_entitlements(config: Config, clock: Clock, pools: Collection[str] = ()) -> tuple[EntitlementView, ...]:
    """`pools` empty: of all. Never raises for anything that is wrong with a source."""
    wanted = [source for source in config.entitlements if not pools or source.pool in pools]
    return tuple(side_by_side([partial(_view, config, source, clock) for source in wanted]))


def _view(config: Config, source: EntitlementSource, clock: Clock) -> EntitlementView:
    name = str(source.path.name if source.path else source.command[0])
    try:
        text = encoding.text(_fetched(source, clock), source.max_bytes)
        found = entitlements(text, source.format, _wanted(config, source.pool))
    except Unreadable as why:
        return EntitlementView(source=name, pool=source.pool, problem=_problem(name, str(why)))
    return EntitlementView(source=name, pool=source.pool, gpus=tuple(found.items()))


def _fetched(source: EntitlementSource, clock: Clock) -> bytes:
    if source.path:
        return fetch.file(source.path, source.max_bytes).raw
    return fetch.command(source.command, source.timeout.total_seconds(), source.max_bytes, clock).raw


def _wanted(config: Config, pool: str) -> Wanted:
    models = next((each.gpu_models for each in config.policy.pools if each.name == pool), ())
    stated = frozenset(tenant.name for tenant in config.policy.tenants if pool in dict(tenant.entitlements))
    return Wanted(models=models, aliases=dict(config.gpu_aliases), stated=stated)


def _problem(name: str, why: str) -> str:
    """One line, without the control characters that a file may hold: it is shown on terminals."""
    sentence = f"entitlements in {name} are not known: {why}"
    return "".join(letter if letter.isprintable() else "?" for letter in sentence)
