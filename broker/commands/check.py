"""`check`: is everything in order for a run? Each finding says what, where and what to do; nothing is changed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from itertools import chain

import msgspec

from broker.commands.workplace import Workplace
from broker.config.values import nearest
from broker.counted import number
from broker.errors import BrokerError, Exit
from broker.model.place import Scope
from broker.model.policy import Mode
from broker.model.snapshot import Trust
from broker.observe.entitlements import observe_entitlements
from broker.observe.observe import frozen_by, priced, prices_of
from broker.observe.timekeeping import clock_doubt
from broker.queues.read import read_all
from providers.base import Provider, ProviderError, Quota
from state.lock import holder, lock_path
from state.store import Store
from state.upkeep import faults

_NEARLY_USED = 0.9


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    level: Level
    area: str
    what: str


def check(place: Workplace) -> tuple[Finding, ...]:
    """Everything, even after a first error."""
    scopes = [(provider, scope) for provider in place.providers.values() for scope in provider.scopes()]
    with ThreadPoolExecutor(max_workers=max(len(scopes), 1), thread_name_prefix="check") as threads:
        clouds = list(threads.map(lambda pair: list(_scope(place, *pair)), scopes))
    return (
        *_configuration(place),
        *_state(place),
        *_queues(place),
        *_entitlements(place),
        *_clock(place),
        *chain.from_iterable(clouds),
    )


def exit_code(findings: tuple[Finding, ...]) -> Exit:
    return Exit.ERROR if any(each.level is Level.ERROR for each in findings) else Exit.OK


def _ok(area: str, what: str) -> Finding:
    return Finding(level=Level.OK, area=area, what=what)


def _warning(area: str, what: str) -> Finding:
    return Finding(level=Level.WARNING, area=area, what=what)


def _error(area: str, what: str) -> Finding:
    return Finding(level=Level.ERROR, area=area, what=what)


def _configuration(place: Workplace) -> Iterator[Finding]:
    config = place.config
    counts = number(len(config.policy.pools), "pool"), number(len(config.queues), "queue")
    yield _ok("configuration", f"{config.path}: {', '.join(counts)}")
    if not config.providers:
        yield _error("configuration", "no cloud is configured; write [[aws.account]], [[gcp.project]] or another")
    if config.policy.mode is Mode.OBSERVE:
        yield _warning("configuration", 'mode is "observe": nothing is bought, changed or released')
    if frozen := frozen_by(config.freeze_file):
        yield _warning("configuration", f"frozen by {frozen}: nothing is done while it exists")


def _state(place: Workplace) -> Iterator[Finding]:
    path = place.config.state
    try:
        wrong = faults(path)
        with Store.open(path, read_only=True) as store:
            yield _ok("state", f"{path}: state {store.lineage}, serial {store.serial}")
            held = [each.id for each in store.reservations() if not each.state.gone]
            unsettled = len(store.intents(open_only=True))
    except BrokerError as error:
        yield _error("state", str(error))
        return
    if wrong:
        yield _error("state", f"{path} is damaged ({wrong[0]}); restore a backup, or: broker state adopt")
    for each in sorted(place.config.policy.protect.difference(held)):
        yield _warning("state", f"protect names {each}, which this state does not hold{nearest(each, held)}")
    if unsettled:
        yield _warning("state", f"{unsettled} requests are not settled; the next `broker run` finds out")
    if who := holder(lock_path(path)):
        yield _warning("state", f"the lock names {who}")


def _queues(place: Workplace) -> Iterator[Finding]:
    for view in read_all(place.config.queues, place.clock):
        area = f"queue {view.source}"
        problems = [problem.removeprefix(f"{area}: ") for problem in view.problems]
        if view.trust is Trust.UNKNOWN:
            yield from (_error(area, problem) for problem in problems)
        else:
            yield _ok(area, f"{view.kept} of {number(view.rows, 'row')} kept, as of {view.as_of:%Y-%m-%d %H:%M} UTC")
            yield from (_warning(area, problem) for problem in problems)


def _entitlements(place: Workplace) -> Iterator[Finding]:
    for view in observe_entitlements(place.config, place.clock):
        area = f"entitlements of {view.pool}"
        if view.problem:
            yield _error(area, view.problem)
        elif not view.gpus:
            yield _warning(area, f"{view.source} promises nobody anything")
        else:
            yield _ok(area, f"{sum(gpus for _, gpus in view.gpus)} GPUs of {len(view.gpus)} tenants in {view.source}")


def _clock(place: Workplace) -> Iterator[Finding]:
    doubt = clock_doubt(place.config.providers, place.clock)
    yield _error("clock", doubt) if doubt else _ok("clock", f"{place.clock.now():%Y-%m-%d %H:%M:%S} UTC")


def _scope(place: Workplace, provider: Provider, scope: Scope) -> Iterator[Finding]:
    """Credentials first: without them nothing else is asked."""
    area = str(scope)
    try:
        identity = provider.identify(scope)
    except ProviderError as error:
        yield _error(area, f"credentials: {error}; see docs/permissions for what is needed")
        return
    yield _ok(area, f"signed in as {identity.principal} of {identity.account}")
    for part in (_reservations, _quotas, _prices):
        try:
            yield from part(place, provider, scope)
        except (ProviderError, BrokerError) as error:
            yield _error(area, f"{part.__name__.strip('_')}: {error}")


def _reservations(_place: Workplace, provider: Provider, scope: Scope) -> Iterator[Finding]:
    yield _ok(str(scope), f"{number(len(provider.reservations(scope)), 'reservation')} can be listed")


def _quotas(_place: Workplace, provider: Provider, scope: Scope) -> Iterator[Finding]:
    quotas = provider.quotas(scope)
    full = [quota for quota in quotas if _nearly_used(quota)]
    yield _ok(str(scope), f"{len(quotas)} quotas can be read")
    yield from (_warning(str(scope), f"quota {q.name}: {q.used} of {q.limit} {q.unit} used") for q in full)


def _nearly_used(quota: Quota) -> bool:
    return quota.limit is not None and quota.used is not None and quota.used >= _NEARLY_USED * quota.limit > 0


def _prices(place: Workplace, provider: Provider, scope: Scope) -> Iterator[Finding]:
    found, problems = priced(provider.offers(scope, place.gpu_models), prices_of(place.config, place.clock.now()))
    known = sum(offer.price is not None for offer in found)
    yield _ok(str(scope), f"{known} of {number(len(found), 'offer')} with a price")
    yield from (_warning(str(scope), problem) for problem in problems)
