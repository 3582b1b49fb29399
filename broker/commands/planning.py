"""`plan`: look at everything, settle in memory, decide, guard; nothing is written but `--out`."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from broker.apply.settle import foresee
from broker.commands.standpoint import moment
from broker.commands.workplace import Workplace
from broker.config.values import nearest
from broker.errors import Exit, GuardError, UsageError
from broker.guard import guard
from broker.model.place import ProviderName
from broker.model.plan import Action, Keep, Plan, Reserve
from broker.model.policy import Policy
from broker.model.snapshot import Snapshot, Trust
from broker.observe.observe import observe
from broker.purchase.decide import decide
from broker.purchase.identity import digest, with_keys
from state import plans


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """Actions outside of it are left out of the plan; empty lets everything pass."""

    pools: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pools: Sequence[str], tenants: Sequence[str], providers: Sequence[str]) -> "Narrowing":
        return cls(pools=frozenset(pools), tenants=frozenset(tenants), providers=frozenset(providers))

    def lets(self, action: Action) -> bool:
        tenants = {tenant for tenant, _ in action.tenants}
        return (
            (not self.pools or action.pool in self.pools)
            and (not self.providers or provider_of(action).value in self.providers)
            and (not self.tenants or bool(tenants & self.tenants))
        )


EVERYTHING = Narrowing()


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A guarded plan and what it was made from."""

    plan: Plan
    snapshot: Snapshot
    policy: Policy


def plan(place: Workplace, narrowing: Narrowing, *, at: str | None = None, out: Path | None = None) -> Planned:
    """Raises UsageError for a name that the configuration does not have."""
    _check(place.config.policy, narrowing)
    if at and out:
        raise UsageError("--at and --out do not go together", next_step="A saved plan is of the present")
    snapshot = seen(place, moment(at, place.clock.now()) if at else None)
    made = planned(snapshot, place.config.policy, narrowing=narrowing)
    if out:
        plans.save(made.plan, out)
    return made


def seen(place: Workplace, at: datetime | None = None) -> Snapshot:
    """What is there now, with open intents settled as far as looking can, in memory."""
    if place.store.intents(open_only=True):
        with suppress(GuardError):  # a clock that is far off freezes the plan, which says so
            place.set_clock_right()
    snapshot = observe(place.config, place.store, place.providers, place.clock)
    still_open = [intent for intent in snapshot.intents if intent.status.open]
    window = place.visibility_window
    looked = foresee(still_open, place.providers, place.clock, window=window)
    settled = {each.intent.key: each.as_settled for each in looked}
    intents = tuple(settled.get(intent.key, intent) for intent in snapshot.intents)
    scopes = place.store.made_whole(snapshot.scopes, snapshot.now, window=window)
    return msgspec.structs.replace(snapshot, scopes=scopes, intents=intents, now=at or snapshot.now)


def planned(
    snapshot: Snapshot, policy: Policy, *, force: Collection[str] = (), narrowing: Narrowing = EVERYTHING
) -> Planned:
    """Pure. A narrowed plan is another plan: it has an id and keys of its own."""
    whole = decide(snapshot, policy)
    if narrowing != EVERYTHING:
        whole = _narrowed(whole, narrowing)
    return Planned(plan=guard(whole, snapshot, policy, force), snapshot=snapshot, policy=policy)


def _narrowed(whole: Plan, narrowing: Narrowing) -> Plan:
    actions = tuple(action for action in whole.actions if isinstance(action, Keep) or narrowing.lets(action))
    if actions == whole.actions:
        return whole
    plan_id = digest((whole.id, sorted(narrowing.pools), sorted(narrowing.tenants), sorted(narrowing.providers)))
    return msgspec.structs.replace(whole, id=plan_id, actions=with_keys(actions, whole.lineage, plan_id))


def provider_of(action: Action) -> ProviderName:
    place = action.request.place if isinstance(action, Reserve) else action.reservation.place
    return place.scope.provider


def unread(snapshot: Snapshot) -> tuple[str, ...]:
    """What is not known for certain: queues and scopes by name."""
    sources = [view.source for view in snapshot.sources if view.trust is not Trust.COMPLETE]
    return (*sources, *(str(view.scope) for view in snapshot.scopes if view.trust is not Trust.COMPLETE))


def exit_code(made: Planned, *, detailed: bool) -> Exit:
    if made.plan.changes:
        return Exit.CHANGES_PROPOSED if detailed else Exit.OK
    if made.plan.refusals:
        return Exit.REFUSED
    return without_changes(made.snapshot)


def without_changes(snapshot: Snapshot) -> Exit:
    """Nothing to do is well only where everything was read."""
    if any(view.trust is Trust.UNKNOWN for view in snapshot.sources):
        return Exit.ERROR
    return Exit.PARTLY_DONE if unread(snapshot) else Exit.OK


def _check(policy: Policy, narrowing: Narrowing) -> None:
    _known("pool", narrowing.pools, [pool.name for pool in policy.pools])
    _known("provider", narrowing.providers, [name.value for name in ProviderName])
    if policy.tenants:
        _known("tenant", narrowing.tenants, [tenant.name for tenant in policy.tenants])


def _known(what: str, given: Collection[str], names: list[str]) -> None:
    for name in given:
        if name not in names:
            listed = f"Use one of {', '.join(names)}"
            raise UsageError(f'there is no {what} "{name}"{nearest(name, names)}', next_step=listed)
