"""Queue, clouds, prices and ledger -> `Snapshot`. What cannot be read is unknown and named; the rest goes on."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from broker.clock import Clock
from broker.config import Config
from broker.errors import InputError, StateError
from broker.model.offer import Offer
from broker.model.place import ProviderName, Scope
from broker.model.reservation import Reservation
from broker.model.snapshot import RunLength, ScopeView, Snapshot, SourceView, Trust
from broker.observe.drops import judged, unremembered
from broker.observe.run_lengths import run_lengths
from broker.observe.timekeeping import clock_doubt
from broker.queues.read import read_all
from broker.side_by_side import started
from providers.base import Provider, ProviderError
from providers.prices.table import PriceTable, load_prices, price_offers
from state.queue_reads import recall
from state.store import Store

T = TypeVar("T")


def observe(config: Config, store: Store, providers: Mapping[ProviderName, Provider], clock: Clock) -> Snapshot:
    """Only reads. Nothing that is wrong with a source or a cloud is raised: it is in the views' trust and problems.

    The ledger's serial is read first, so that whatever moves while we look makes a plan stale rather than wrong.
    """
    serial, intents = store.serial, store.live_intents()
    doubt = started(partial(clock_doubt, config.providers, clock))
    queued = started(partial(_queued, config, clock))
    scopes = _scopes(config, providers, clock)
    read, lengths = queued.result()
    frozen = frozen_by(config.freeze_file) or doubt.result()
    now = clock.now()
    return Snapshot(
        now=now,
        lineage=store.lineage,
        serial=serial,
        sources=read,
        scopes=scopes,
        intents=intents,
        cooling=store.cooling(now, config.policy.purchase.cooldown),
        idle=store.idle(),
        spend=store.spend(now),
        frozen_by=frozen,
        run_lengths=lengths,
    )


def _queued(config: Config, clock: Clock) -> tuple[tuple[SourceView, ...], tuple[RunLength, ...]]:
    """The job sources, and how long the jobs of their users run: a large history is read while clouds answer."""
    read = observe_queues(config, clock)
    return read, run_lengths(config, read)


def observe_queues(config: Config, clock: Clock) -> tuple[SourceView, ...]:
    """The job sources alone, no cloud. One that suddenly lost its jobs is doubted."""
    read = read_all(config.queues, clock)
    try:
        return judged(read, recall(config.state))
    except StateError as error:
        return unremembered(read, error.what)


class _Heard(NamedTuple):
    """A cloud's answer, or the line that says why there is none. `asked` is the instant before the call."""

    asked: datetime
    answer: tuple[object, ...] = ()
    problem: str = ""


def _scopes(config: Config, providers: Mapping[ProviderName, Provider], clock: Clock) -> tuple[ScopeView, ...]:
    models = tuple(dict.fromkeys(model for pool in config.policy.pools for model in pool.gpu_models))
    asked = [
        (
            scope,
            started(partial(_ask, clock, scope, "reservations", partial(provider.reservations, scope))),
            started(partial(_ask, clock, scope, "offers", partial(provider.offers, scope, models))),
        )
        for provider in providers.values()
        for scope in provider.scopes()
    ]
    prices = prices_of(config, clock.now())
    return tuple(_view(scope, reservations, offers, prices) for scope, reservations, offers in asked)


def _ask(clock: Clock, scope: Scope, what: str, call: Callable[[], tuple[object, ...]]) -> _Heard:
    asked = clock.now()
    try:
        return _Heard(asked, call())
    except ProviderError as error:
        return _Heard(asked, problem=f"{scope}: {what} are not known: {error}")
    except Exception as error:  # an adapter's bug in one scope must not cost the others
        return _Heard(asked, problem=f"{scope}: {what} are not known: {type(error).__name__}: {error}")


def _view(scope: Scope, reservations: "Future[_Heard]", offers: "Future[_Heard]", prices: "Prices") -> ScopeView:
    listed, sold = reservations.result(), offers.result()
    on_sale, warnings = priced(_all(sold.answer, Offer), prices)
    return ScopeView(
        scope=scope,
        trust=Trust.UNKNOWN if listed.problem else Trust.COMPLETE,
        reservations_at=None if listed.problem else listed.asked,
        reservations=_all(listed.answer, Reservation),
        offers=on_sale,
        offers_known=not sold.problem,
        problems=tuple(line for line in (listed.problem, sold.problem, *warnings) if line),
    )


def _all(answer: tuple[object, ...], kind: type[T]) -> tuple[T, ...]:
    return tuple(item for item in answer if isinstance(item, kind))


class Prices(NamedTuple):
    """`table` None: why not says `complaint`. `at` is the time that prices are as old as it makes them."""

    table: PriceTable | None
    at: datetime
    complaint: str = ""


def prices_of(config: Config, now: datetime) -> Prices:
    """A user's own file that cannot be read is not passed over for the list, which it corrects.

    A sandbox's calendar is its own and may lie before the day on which prices were listed.
    """
    purchase = config.policy.purchase
    try:
        table = load_prices(config.prices, max_age=purchase.max_price_age, warn_age=purchase.warn_price_age)
    except (InputError, OSError) as error:
        return Prices(None, now, f"no prices, so nothing is bought: {error}")
    newest = max(price.as_of for price in table.listed.values())
    return Prices(table, max(now, newest) if config.sandbox else now)


def priced(offers: tuple[Offer, ...], prices: Prices) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Without a table nothing has a price, and so nothing is bought."""
    if prices.table is None:
        unpriced = tuple(msgspec.structs.replace(offer, price=None) for offer in offers)
        return unpriced, (prices.complaint,) if offers else ()
    found = price_offers(offers, prices.table, prices.at)
    return found.offers, found.problems


def frozen_by(freeze_file: Path) -> str:
    """The file's name while it exists; one that cannot be looked for may exist."""
    try:
        freeze_file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{freeze_file}, which cannot be looked for ({error.strerror})"
    return str(freeze_file)
