"""Do exactly what a plan says. Each action: intent committed, one call, outcome committed.

No call is made inside a transaction. One failure stops one action. A process that dies anywhere leaves intents that
`broker.apply.settle` settles from the cloud; nothing is ever sent twice for a key.
"""

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event

import msgspec

from broker.apply.boundary import Boundary, Checkpoint, go_on
from broker.apply.outcomes import PARTLY, after_error, after_yes, intent_of
from broker.clock import Clock
from broker.errors import Exit, PlanError, StalePlanError
from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.place import ProviderName
from broker.model.plan import Action, Keep, Plan, Reserve
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, buys
from broker.model.reservation import Reservation
from providers.base import VISIBILITY_WINDOW, Provider
from state.store import Store

Providers = Mapping[ProviderName, Provider]

LATE = timedelta(seconds=30)
"""A purchase that could not be sent this soon after its intent was committed (a suspended machine) is not sent."""

PARALLEL = 8

Forbids = Callable[[Request], str]
"""What forbids a request at this moment, in words; "" if nothing does."""


def nothing_forbids(_request: Request) -> str:
    return ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """`sent` is false for an action that was not tried: nothing about it is in the ledger."""

    action: Action
    outcome: Outcome
    reservation: Reservation | None = None
    sent: bool = True

    @property
    def done(self) -> bool:
        return self.outcome.status is IntentStatus.DONE

    @property
    def whole(self) -> bool:
        """Done, and all of it was delivered."""
        return self.done and self.outcome.code != PARTLY


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """In the plan's order. `already` is when the plan was applied before: then nothing was done now."""

    results: tuple[Result, ...] = ()
    already: datetime | None = None

    @property
    def exit(self) -> Exit:
        return Exit.OK if all(result.whole for result in self.results) else Exit.PARTLY_DONE


def admit(plan: Plan, store: Store, now: datetime, *, window: timedelta = VISIBILITY_WINDOW) -> None:
    """Refuse a saved plan that this state has moved on from. Called before the run writes anything of its own.

    A state that was put back from a copy, or adopted, cannot tell whether an older plan was applied before: its
    serial may fit again. Such a state is quiet for a `window` from when that was found out.
    """
    _belongs(plan, store, now)
    if store.applied(plan.id) is None and plan.serial != store.serial:
        raise StalePlanError(
            f"plan {plan.id} was made at serial {plan.serial}, the state is at {store.serial}", next_step=_REPLAN
        )
    quiet = store.quiet_until
    if quiet is not None and store.applied(plan.id) is None and plan.made <= quiet - window:
        raise StalePlanError(
            f"plan {plan.id} is older than this state, which was put back or adopted since", next_step=_REPLAN
        )


def apply(
    plan: Plan,
    store: Store,
    providers: Providers,
    clock: Clock,
    *,
    checkpoint: Checkpoint = go_on,
    parallel: int = PARALLEL,
    run_id: str = "",
    forbids: Forbids = nothing_forbids,
) -> ApplyResult:
    """`forbids` is asked before each action: what is not sent by then is not sent.

    Raises PlanError (of another state), StalePlanError (expired), StateError (the ledger cannot be written).

    KeyboardInterrupt: calls that are under way end and are recorded, nothing more is sent, then it is raised.
    """
    _belongs(plan, store, clock.now())
    already = store.applied(plan.id)
    if already:
        return ApplyResult(already=already)
    run = _Run(plan, store, providers, clock, checkpoint, run_id or uuid.uuid4().hex[:12], forbids)
    results = run.all_of_it(parallel)
    if plan.changes and any(result.sent for result in results):
        checkpoint(Boundary.BEFORE_APPLIED)
        store.record_applied(plan, clock.now())
        checkpoint(Boundary.AFTER_APPLIED)
    return ApplyResult(results=results)


_REPLAN = "Make a new one: broker plan"


def _belongs(plan: Plan, store: Store, now: datetime) -> None:
    if plan.lineage != store.lineage:
        raise PlanError(f"plan {plan.id} belongs to another state ({plan.lineage})", next_step=_REPLAN)
    if store.applied(plan.id) is None and now >= plan.expires:
        raise StalePlanError(f"plan {plan.id} expired at {plan.expires:%Y-%m-%d %H:%M} UTC", next_step=_REPLAN)


class _Run:
    """One application of one plan. Workers share it; it holds nothing that changes but the wish to stop."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        providers: Providers,
        clock: Clock,
        checkpoint: Checkpoint,
        run_id: str,
        forbids: Forbids,
    ) -> None:
        self._plan = plan
        self._store = store
        self._providers = providers
        self._clock = clock
        self._checkpoint = checkpoint
        self._run_id = run_id
        self._forbids = forbids
        self._stop = Event()

    def all_of_it(self, parallel: int) -> tuple[Result, ...]:
        with ThreadPoolExecutor(max_workers=max(parallel, 1), thread_name_prefix="apply") as pool:
            try:
                futures = [pool.submit(self._one, action) for action in self._plan.changes]
                return tuple(future.result() for future in futures)
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _one(self, action: Action) -> Result:
        objection = self._objection(action)
        if objection:
            return self._not_sent(action, *objection)
        intent = intent_of(action, self._plan.id, self._run_id, self._clock.now())
        self._checkpoint(Boundary.BEFORE_INTENT)
        self._store.intend(intent)
        self._checkpoint(Boundary.AFTER_INTENT)
        outcome, reservation = self._sent(intent)
        self._checkpoint(Boundary.BEFORE_OUTCOME)
        self._store.conclude(intent.key, outcome, reservation=reservation)
        self._checkpoint(Boundary.AFTER_OUTCOME)
        return Result(action=action, outcome=outcome, reservation=reservation)

    def _sent(self, intent: Intent) -> tuple[Outcome, Reservation | None]:
        """The one call."""
        provider = self._providers[intent.request.place.scope.provider]
        if buys(intent.request) and self._clock.now() - intent.sent > LATE:
            return Outcome(status=IntentStatus.FAILED, at=self._clock.now(), code="late", message=_SUSPENDED), None
        try:
            reservation = call(provider, intent.request)
        except Exception as error:  # whatever it was, the intent must not stay without an outcome
            self._checkpoint(Boundary.AFTER_CALL)
            return after_error(error, self._clock.now()), None
        self._checkpoint(Boundary.AFTER_CALL)
        return after_yes(intent.request, reservation, self._clock.now()), reservation

    def _objection(self, action: Action) -> tuple[str, str] | None:
        """Why the action must not be sent, as code and message."""
        assert not isinstance(action, Keep)
        if self._stop.is_set():
            return "interrupted", "the run was interrupted before it was sent"
        if why := self._forbids(action.request):
            return "forbidden", f"{why} forbids it since this run began; not sent"
        if action.request.place.scope.provider not in self._providers:
            return "no-provider", f"{action.request.place.scope.provider} is not configured"
        if not self._is_ours(action):
            return "not-ours", "it does not bear this state's lineage"
        if self._store.has_intent(action.request.key):
            return "sent-before", "this action was sent before; it is settled, not repeated"
        if buys(action.request):
            return self._no_purchase(action)
        return None

    def _is_ours(self, action: Action) -> bool:
        lineage = self._store.lineage
        if isinstance(action, Keep | Reserve):
            return isinstance(action, Reserve) and action.request.lineage == lineage
        owner = action.reservation.owner
        return action.request.lineage == lineage and owner is not None and owner.lineage == lineage

    def _no_purchase(self, action: Action) -> tuple[str, str] | None:
        if action.usd_per_hour is None or (isinstance(action, Reserve) and action.offer.price is None):
            return "no-price", "nothing is bought without a price"
        quiet = self._store.quiet_until
        if quiet and self._clock.now() < quiet:
            return "quiet", f"nothing is bought before {quiet:%H:%M:%S} UTC: {_QUIET}"
        return None

    def _not_sent(self, action: Action, code: str, message: str) -> Result:
        outcome = Outcome(status=IntentStatus.REFUSED, at=self._clock.now(), code=code, message=message)
        return Result(action=action, outcome=outcome, sent=False)


_QUIET = "earlier purchases may not be visible yet, or be where a cloud could not be listed since"
_SUSPENDED = "too long between the intent and the call; not sent"


def call(provider: Provider, request: Request) -> Reservation:
    """The provider's method for the request."""
    if isinstance(request, ReserveRequest):
        return provider.reserve(request)
    if isinstance(request, ReleaseRequest):
        return provider.release(request)
    if isinstance(request, EndRequest):
        return provider.set_end(request)
    return provider.resize(request)
