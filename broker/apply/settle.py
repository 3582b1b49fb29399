"""Find out what became of requests whose ending was not seen: from the cloud, before anything new is decided.

The rule for a purchase: what is found is adopted, whenever it appears. It becomes `failed` only when the cloud's own
record says so, or when a complete look that began later than the visibility window after it was sent shows nothing.
Until then it stays unknown and counts as pending supply. It is never sent again.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from broker.apply.apply import PARALLEL, Forbids, Providers, call, nothing_forbids
from broker.apply.boundary import Boundary, Checkpoint, go_on
from broker.apply.outcomes import CANCELLING, after_error, after_yes
from broker.clock import Clock
from broker.model.intent import NEVER_APPEARED, Intent, IntentStatus, Outcome
from broker.model.request import ReleaseRequest, Request, ResizeRequest
from broker.model.reservation import Reservation
from providers.base import VISIBILITY_WINDOW, Provider, Seen, Sighting
from state.store import Store

CUT_OFF = "cut-off"
"""The code of an intent that was committed by a run that did not live to see its outcome."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """An open intent and what a look made of it. `problem` says why the look itself failed ("" if it did not).

    `marred`: a growth was refused and left `reservation` of no use until its count is set to what it holds.
    `busy`: what was to be released is in use by now, and the cloud has not accepted the release yet.
    """

    intent: Intent
    outcome: Outcome
    reservation: Reservation | None = None
    problem: str = ""
    marred: bool = False
    busy: bool = False

    @property
    def as_settled(self) -> Intent:
        return msgspec.structs.replace(self.intent, outcome=self.outcome)


def settle(
    store: Store,
    providers: Providers,
    clock: Clock,
    *,
    checkpoint: Checkpoint = go_on,
    window: timedelta = VISIBILITY_WINDOW,
    parallel: int = PARALLEL,
    forbids: Forbids = nothing_forbids,
) -> tuple[Settled, ...]:
    """Look for every open intent and commit what is found. Releases that are not done are called again.

    Not what something `forbids`, which is asked before each: a broker that is frozen, or only observes, finds out and
    leaves it there, and what has been put under protection meanwhile is not given back.
    """
    if store.was_replaced():
        store.be_quiet(clock.now() + window)
    settling = _Settling(providers, clock, checkpoint, window, forbids)
    return settling.each(store.intents(open_only=True), parallel, lambda intent: settling.written(store, intent))


def foresee(
    intents: Iterable[Intent], providers: Providers, clock: Clock, *, window: timedelta = VISIBILITY_WINDOW
) -> tuple[Settled, ...]:
    """What settling would find, by reading alone: nothing is written, nothing is called again."""
    settling = _Settling(providers, clock, go_on, window, _only_looking)
    return settling.each(tuple(intents), PARALLEL, settling.looked)


def _only_looking(_request: Request) -> str:
    return "nothing is changed while a plan is made"


def verdict(intent: Intent, sighting: Sighting, looked: datetime, now: datetime, window: timedelta) -> Outcome:
    """What a look that began at `looked` makes of an open intent. Pure."""
    if sighting.seen is Seen.DONE and sighting.reservation is not None:
        return after_yes(intent.request, sighting.reservation, now)
    if sighting.seen is Seen.REFUSED and sighting.error is not None:
        refused = after_error(sighting.error, now)
        status = IntentStatus.FAILED if refused.status.open else refused.status
        return msgspec.structs.replace(refused, status=status)
    if looked > _last_sent(intent) + window:
        code, message = ("in-use", _IN_USE) if _busy(intent, sighting) else (NEVER_APPEARED, _NEVER)
        return Outcome(status=IntentStatus.FAILED, at=now, code=code, message=message)
    return _still_unknown(intent, now)


_IN_USE = "the release did not happen, and what it was about is in use by now: it is kept"
_NEVER = "a complete look after the visibility window showed nothing"


def _busy(intent: Intent, sighting: Sighting) -> bool:
    """A release that was decided while nothing used it must not be called again once something does.

    Where the cloud has said that it goes once it is free, calling again takes nothing from its users.
    """
    held, outcome = sighting.reservation, intent.outcome
    accepted = outcome is not None and outcome.code == CANCELLING
    release = isinstance(intent.request, ReleaseRequest) and sighting.seen is Seen.NOT_YET
    return release and not accepted and held is not None and max(held.used, held.associated) > 0


def _last_sent(intent: Intent) -> datetime:
    """The latest instant at which it may have been sent: a call that timed out was under way until then."""
    outcome = intent.outcome
    return intent.sent if outcome is None or outcome.code == CUT_OFF else max(intent.sent, outcome.at)


def _still_unknown(intent: Intent, now: datetime) -> Outcome:
    if intent.outcome is not None:
        return intent.outcome
    return Outcome(status=IntentStatus.UNKNOWN, at=now, code=CUT_OFF, message="the run ended before its outcome")


class _Settling:
    def __init__(
        self, providers: Providers, clock: Clock, checkpoint: Checkpoint, window: timedelta, forbids: Forbids
    ) -> None:
        self._providers = providers
        self._clock = clock
        self._checkpoint = checkpoint
        self._window = window
        self._forbids = forbids

    def each(
        self, intents: tuple[Intent, ...], parallel: int, settle_one: Callable[[Intent], Settled]
    ) -> tuple[Settled, ...]:
        if not intents:
            return ()
        with ThreadPoolExecutor(max_workers=min(parallel, len(intents)), thread_name_prefix="settle") as pool:
            return tuple(pool.map(settle_one, intents))

    def written(self, store: Store, intent: Intent) -> Settled:
        found = self.looked(intent)
        if not self._forbids(intent.request):
            found = self._mended(self._repeated(found))
        self._checkpoint(Boundary.BEFORE_SETTLED)
        store.conclude(intent.key, found.outcome, reservation=found.reservation)
        self._checkpoint(Boundary.AFTER_SETTLED)
        return found

    def looked(self, intent: Intent) -> Settled:
        provider = self._providers.get(intent.request.place.scope.provider)
        if provider is None:
            return self._blind(intent, f"{intent.request.place.scope.provider} is not configured any more")
        self._checkpoint(Boundary.BEFORE_LOOK)
        began = self._clock.now()
        try:
            sighting = provider.look(intent.request)
        except Exception as error:  # a look that fails proves nothing
            self._checkpoint(Boundary.AFTER_LOOK)
            return self._blind(intent, str(error))
        self._checkpoint(Boundary.AFTER_LOOK)
        outcome = verdict(intent, sighting, began, self._clock.now(), self._window)
        marred = sighting.seen is Seen.REFUSED and sighting.reservation is not None
        shown = None if sighting.seen is Seen.NOT_YET else sighting.reservation
        return Settled(intent=intent, outcome=outcome, reservation=shown, marred=marred, busy=_busy(intent, sighting))

    def _blind(self, intent: Intent, problem: str) -> Settled:
        return Settled(intent=intent, outcome=_still_unknown(intent, self._clock.now()), problem=problem)

    def _repeated(self, found: Settled) -> Settled:
        """A release may be called as often as one likes; until it is done, every run does."""
        if not isinstance(found.intent.request, ReleaseRequest) or found.outcome.status is IntentStatus.DONE:
            return found
        if found.problem or found.busy:
            return found
        self._checkpoint(Boundary.BEFORE_REPEAT)
        again = self._released(self._providers[found.intent.request.place.scope.provider], found)
        self._checkpoint(Boundary.AFTER_REPEAT)
        return again

    def _mended(self, found: Settled) -> Settled:
        """Set the count to what is held, which buys nothing. Where that fails too, whatever changes it next does it."""
        request, held = found.intent.request, found.reservation
        if not found.marred or not isinstance(request, ResizeRequest) or held is None:
            return found
        back = msgspec.structs.replace(request, from_count=held.count, to_count=held.count)
        self._checkpoint(Boundary.BEFORE_REPEAT)
        with suppress(Exception):
            found = msgspec.structs.replace(
                found, reservation=call(self._providers[request.place.scope.provider], back)
            )
        self._checkpoint(Boundary.AFTER_REPEAT)
        return found

    def _released(self, provider: Provider, found: Settled) -> Settled:
        now = self._clock.now
        try:
            reservation = call(provider, found.intent.request)
        except Exception as error:
            return msgspec.structs.replace(found, outcome=after_error(error, now()), reservation=None)
        return msgspec.structs.replace(
            found, outcome=after_yes(found.intent.request, reservation, now()), reservation=reservation
        )
