"""`apply`, `run`, `release`: under the lock, settle what is open, look, and only then do what the plan says."""

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from broker.apply.apply import ApplyResult, Forbids, admit
from broker.apply.apply import apply as carry_out
from broker.apply.revalidation import revalidated
from broker.apply.settle import settle
from broker.commands.events import Acted, Decided, Ended, FoundOut, Looked, News, Proposed, Refused, Short, Tell
from broker.commands.planning import EVERYTHING, Planned, plan, planned, seen, unread, without_changes
from broker.commands.winding_down import wind_down
from broker.commands.workplace import Workplace
from broker.errors import Exit, StalePlanError, StateError, UsageError
from broker.guard import guard
from broker.model.intent import IntentStatus
from broker.model.job import JobState
from broker.model.ledger import Heartbeat
from broker.model.place import Scope
from broker.model.plan import Action, Plan, Reserve
from broker.model.policy import Mode, Policy
from broker.model.request import ReleaseRequest, Request
from broker.model.snapshot import Snapshot, Trust
from broker.observe.drops import after, unremembered
from broker.observe.observe import frozen_by, observe
from broker.purchase.notes import IDLE_BESIDE
from state import plans
from state.entries import Entry, Kind
from state.lock import Lock
from state.queue_reads import recall_or_begin, remember

ROOM_BYTES = 16 * 2**20
"""What must be free beside the state before a run begins: some thousand entries and their journal."""

Confirm = Callable[[Plan, Planned | None], bool]
"""Show the plan (with what it was made from, where it was made now) and ask."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line allows beyond the configuration, and for how long it waits for another run."""

    force: frozenset[str] = frozenset()
    allow_irreversible: bool = False


def run(place: Workplace, tell: Tell, limits: Limits, *, command: str = "broker run") -> Exit:
    """Settle, observe, plan, guard, apply. Never asks. Raises LockedError, StateError."""
    with _turn(place, command) as run_id:
        snapshot = _settled_and_seen(place, tell, run_id)
        made = planned(snapshot, _policy(place, limits), force=limits.force)
        code = _done(place, tell, made, run_id, command)
        _remember(place, tell, snapshot)
        return code


def _remember(place: Workplace, tell: Tell, snapshot: Snapshot) -> None:
    """What the queues hold goes into the history, after all else: nothing that is wrong with it may hold up a run."""
    settings = place.config.history
    if not settings.feed or not snapshot.sources:
        return
    from broker.history.feeding import feed
    from state.history.store import History, beside

    try:
        with History.open(beside(place.config.state)) as history:
            feed(history, snapshot.sources, snapshot.now, settings)
    except (StateError, OSError) as error:
        tell(News(text=f"not added to the history of jobs: {error}"))


def rehearse(place: Workplace, tell: Tell, limits: Limits) -> Exit:
    """`run --dry-run`: the same decisions; no lock, no write, no call that changes anything."""
    made = plan(place, EVERYTHING)
    made = planned(made.snapshot, _policy(place, limits), force=limits.force)
    tell(_looked(made.snapshot))
    _tell_plan(tell, made.plan)
    for action in made.plan.changes:
        tell(Proposed(action=action))
    tell(Ended(refused=len(made.plan.refusals), note="A dry run: nothing was done."))
    if not made.plan.changes and made.plan.refusals:
        return Exit.REFUSED
    return Exit.OK if made.plan.changes else without_changes(made.snapshot)


def apply_now(place: Workplace, tell: Tell, confirm: Confirm, limits: Limits) -> Exit:
    """Plan, ask, and do it if nothing has moved meanwhile: the lock is not held while a person thinks."""
    made = plan(place, EVERYTHING)
    made = planned(made.snapshot, _policy(place, limits), force=limits.force)
    if not made.plan.changes:
        tell(_looked(made.snapshot))
        _tell_plan(tell, made.plan)
        return _nothing(tell, made)
    if not confirm(made.plan, made):
        raise UsageError("nothing was done: not confirmed", next_step="Answer yes, or give --yes")
    return _apply_saved(place, tell, made.plan, limits)


def apply_file(place: Workplace, tell: Tell, confirm: Confirm, limits: Limits, file: Path) -> Exit:
    """Exactly the saved plan, less what no longer fits. Raises PlanError, StalePlanError."""
    saved = plans.load(file)
    admit(saved, place.store, place.clock.now(), window=place.visibility_window)
    if place.store.applied(saved.id):
        return _already(tell, place, saved)
    if not confirm(saved, None):
        raise UsageError("nothing was done: not confirmed", next_step="Answer yes, or give --yes")
    return _apply_saved(place, tell, saved, limits)


def _apply_saved(place: Workplace, tell: Tell, saved: Plan, limits: Limits) -> Exit:
    command = "broker apply"
    with _turn(place, command) as run_id:
        if place.store.applied(saved.id):
            return _already(tell, place, saved)
        admit(saved, place.store, place.clock.now(), window=place.visibility_window)
        snapshot = _settled_and_seen(place, tell, run_id)
        policy = _policy(place, limits)
        checked = guard(revalidated(saved, snapshot, policy), snapshot, policy, limits.force)
        return _done(place, tell, Planned(plan=checked, snapshot=snapshot, policy=policy), run_id, command)


def release(
    place: Workplace, tell: Tell, confirm: Confirm, limits: Limits, ids: Sequence[str], *, all_ours: bool
) -> Exit:
    """Give back these, or everything that bears our lineage. Raises UsageError for an id that is not ours."""
    asked = _guarded_release(place, seen(place), limits, ids, all_ours=all_ours)
    if asked.plan.changes and not confirm(asked.plan, asked):
        raise UsageError("nothing was done: not confirmed", next_step="Answer yes, or give --yes")
    command = "broker release"
    with _turn(place, command) as run_id:
        snapshot = _settled_and_seen(place, tell, run_id)
        made = _guarded_release(place, snapshot, limits, ids, all_ours=all_ours)
        _only_what_was_shown(asked.plan, made.plan)
        return _done(place, tell, made, run_id, command)


def unheard_of(place: Workplace, ids: Sequence[str]) -> tuple[str, ...]:
    """Those that the ledger does not hold: mistyped, or bought a moment ago by a run that could not write it down."""
    held = {each.id for each in place.store.reservations() if not each.state.gone}
    return tuple(each for each in ids if each not in held)


def _only_what_was_shown(shown: Plan, now: Plan) -> None:
    """Another run may have bought or changed something while a person thought. Raises StalePlanError."""
    confirmed = {_given_back(action) for action in shown.changes}
    for action in now.changes:
        if _given_back(action) not in confirmed:
            what = f"{_given_back(action)[1]} has changed since this was shown; nothing was given back"
            raise StalePlanError(what, next_step="Look again and repeat it: broker release")


def _given_back(action: Action) -> tuple[Scope, str, int]:
    """Which reservation, and how large it is."""
    assert not isinstance(action, Reserve)
    held = action.reservation
    return held.place.scope, held.id, held.count


def _guarded_release(
    place: Workplace, snapshot: Snapshot, limits: Limits, ids: Sequence[str], *, all_ours: bool
) -> Planned:
    policy = _policy(place, limits)
    wanted = wind_down(snapshot, policy, ids, all_ours=all_ours)
    return Planned(plan=guard(wanted, snapshot, policy, limits.force), snapshot=snapshot, policy=policy)


@contextmanager
def _turn(place: Workplace, command: str) -> Iterator[str]:
    """Hold the lock, under a run id of its own; where outcomes could not be written, nothing is begun."""
    _room(place.config.state)
    timeout = place.config.lock_timeout
    with Lock(place.config.state, command=command, now=place.clock.now(), timeout=timeout):
        yield uuid.uuid4().hex[:12]


def _room(state: Path) -> None:
    """Raises StateError where the disk could not take a run's entries: a purchase must not outlive its record."""
    free = shutil.disk_usage(state.parent).free if state.parent.exists() else ROOM_BYTES
    if free < ROOM_BYTES:
        what = f"the disk of {state} is full: {free // 2**20} MiB are left, {ROOM_BYTES // 2**20} are wanted"
        raise StateError(what, next_step="Free some space and run again; nothing was done and nothing is lost")


def _policy(place: Workplace, limits: Limits) -> Policy:
    policy = place.config.policy
    if not limits.allow_irreversible:
        return policy
    guards = msgspec.structs.replace(policy.guards, allow_irreversible=True)
    return msgspec.structs.replace(policy, guards=guards)


def _settled_and_seen(place: Workplace, tell: Tell, run_id: str) -> Snapshot:
    """Open intents settled, the clouds listed, and what they show committed: then nothing is older than this run."""
    place.set_clock_right()
    store, window = place.store, place.visibility_window
    for found in settle(store, place.providers, place.clock, window=window, forbids=_brake(place)):
        tell(FoundOut(settled=found))
    snapshot = _sizes_kept(observe(place.config, store, place.providers, place.clock), place.config.state)
    tell(_looked(snapshot))
    for entry in store.witness(snapshot.scopes, snapshot.now, window=window, run_id=run_id):
        tell(News(text=_news(entry)))
    _stay_quiet(place, snapshot)
    return _as_the_ledger_knows(snapshot, place)


def _sizes_kept(snapshot: Snapshot, state: Path) -> Snapshot:
    """How large the queues were is what the next run notices a sudden drop by: where it cannot be kept, this run buys
    and renews, and gives nothing back.
    """
    try:
        remember(state, after(snapshot.sources, recall_or_begin(state)))
    except StateError as error:
        return msgspec.structs.replace(snapshot, sources=unremembered(snapshot.sources, error.what))
    return snapshot


def _brake(place: Workplace) -> Forbids:
    """The freeze file may appear at any moment, also while a run is under way; and a release that is not done yet may
    be of what is protected by now.
    """
    policy = place.config.policy

    def why(request: Request) -> str:
        if isinstance(request, ReleaseRequest) and request.reservation_id in policy.protect:
            return "protect"
        return frozen_by(place.config.freeze_file) or ("" if policy.mode is Mode.ACT else "observe mode")

    return why


def _stay_quiet(place: Workplace, snapshot: Snapshot) -> None:
    """A state that was put back or adopted buys nothing until every cloud was listed once after its window.

    What it does not know of may be in the very one that cannot be listed.
    """
    store, quiet = place.store, place.store.quiet_until
    unread = [view.scope for view in snapshot.scopes if view.trust is not Trust.COMPLETE]
    if quiet and not all(store.seen_since(scope, quiet) for scope in unread):
        store.be_quiet(snapshot.now + place.visibility_window)


def _as_the_ledger_knows(snapshot: Snapshot, place: Workplace) -> Snapshot:
    """With the news committed, and with our own fresh changes in listings that may lag behind them."""
    store = place.store
    return msgspec.structs.replace(
        snapshot,
        serial=store.serial,
        scopes=store.made_whole(snapshot.scopes, snapshot.now, window=place.visibility_window),
        intents=store.live_intents(),
        idle=store.idle(),
        spend=store.spend(snapshot.now),
    )


_NEWS = {
    Kind.ADOPTED: "adopted: a purchase of ours that the ledger did not know",
    Kind.SEEN: "changed without us",
    Kind.GONE: "gone",
    Kind.USE: "use changed",
}


def _news(entry: Entry) -> str:
    return f"{entry.reservation_id} in {entry.scope}: {_NEWS.get(entry.kind, entry.kind.value)}"


def _looked(snapshot: Snapshot) -> Looked:
    waiting = (JobState.PENDING, JobState.HELD)
    problems = [line for source in snapshot.sources for line in source.problems]
    problems += [line for view in snapshot.scopes for line in view.problems]
    return Looked(
        queued_jobs=sum(job.state in waiting for source in snapshot.sources for job in source.jobs),
        reservations=sum(not each.state.gone for view in snapshot.scopes for each in view.reservations),
        offers=sum(len(view.offers) for view in snapshot.scopes),
        problems=tuple(dict.fromkeys(problems)),
    )


def _tell_plan(tell: Tell, made: Plan) -> None:
    tell(Decided(plan=made))
    for refusal in made.refusals:
        tell(Refused(refusal=refusal))
    for shortfall in made.shortfalls:
        tell(Short(shortfall=shortfall))


def _already(tell: Tell, place: Workplace, saved: Plan) -> Exit:
    at = place.store.applied(saved.id)
    tell(Ended(note=f"This plan is already applied ({at:%Y-%m-%d %H:%M} UTC)." if at else ""))
    return Exit.OK


def _nothing(tell: Tell, made: Planned) -> Exit:
    code = Exit.REFUSED if made.plan.refusals else without_changes(made.snapshot)
    unknown = ", ".join(unread(made.snapshot))
    note = f"Nothing is decided about what could not be read: {unknown}." if unknown else ""
    tell(Ended(refused=len(made.plan.refusals), exit_code=code, note=note))
    return code


def _done(place: Workplace, tell: Tell, made: Planned, run_id: str, command: str) -> Exit:
    """Carry the plan out, tell how each action ended, and leave word that a run was here."""
    _tell_plan(tell, made.plan)
    if not made.plan.changes:
        code = _nothing(tell, made)
        _beat(place, made.plan, run_id, command, "nothing to do")
        return code
    done = _carried_out(place, made.plan, run_id)
    for result in done.results:
        tell(Acted(result=result))
    ended = _ended(made, done)
    tell(ended)
    _beat(place, made.plan, run_id, command, f"{ended.done} of {len(done.results)} done")
    return Exit(ended.exit_code)


class UnrecordedError(StateError):
    """Something was sent, and the ledger could not take its outcome: the intent is there, and is settled later."""

    exit = Exit.PARTLY_DONE


def _carried_out(place: Workplace, made: Plan, run_id: str) -> ApplyResult:
    try:
        return carry_out(made, place.store, place.providers, place.clock, run_id=run_id, forbids=_brake(place))
    except StateError as error:
        if not place.store.intents(open_only=True):
            raise
        next_step = f"{error.next_step}; the next run finds out what became of what was sent"
        raise UnrecordedError(error.what, next_step=next_step) from error


def _beat(place: Workplace, made: Plan, run_id: str, command: str, summary: str) -> None:
    idle = tuple(note for note in made.notes if IDLE_BESIDE in note)
    beat = Heartbeat(at=place.clock.now(), run_id=run_id, command=command, summary=summary, idle=idle)
    place.store.beat(beat)


def _ended(made: Planned, done: ApplyResult) -> Ended:
    counts = dict.fromkeys(IntentStatus, 0)
    for result in done.results:
        counts[result.outcome.status] += result.sent
    whole = done.exit is Exit.OK and not unread(made.snapshot) and not made.plan.refusals
    return Ended(
        done=counts[IntentStatus.DONE],
        unfilled=counts[IntentStatus.UNFILLED],
        failed=counts[IntentStatus.FAILED] + counts[IntentStatus.REFUSED],
        unknown=counts[IntentStatus.UNKNOWN],
        not_sent=sum(not result.sent for result in done.results),
        refused=len(made.plan.refusals),
        exit_code=Exit.OK if whole else Exit.PARTLY_DONE,
    )
