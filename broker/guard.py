"""The operator's limits, laid over a plan: what they refuse is taken out, and each no is explained. Pure.

Actions are tried in the plan's order. Each that fits beside those kept before it stays; one that does not fit is
refused, and a later, smaller one may still fit. So what remains never exceeds a limit, and the same plan always
leaves the same rest. Whatever a release would free does not count: it may fail.

Renewals of an end buy nothing new: no budget refuses them, for that would take capacity from jobs that use it.
"""

from collections.abc import Collection, Iterator
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.errors import UsageError
from broker.model.money import cents
from broker.model.plan import Action, Extend, Keep, Plan, Reason, Refusal, Release, Reserve, Resize, Reversibility
from broker.model.policy import Mode, Policy
from broker.model.request import buys
from broker.model.snapshot import Snapshot
from broker.purchase.outlay import Outlay, outlay
from broker.purchase.pools import by_name
from broker.purchase.trust import feeds, outdated

WHOLE_PLAN = ""


class GuardName(StrEnum):
    """As in the configuration, where it is a setting; what `--force` names."""

    FROZEN = "freeze_file"
    OBSERVE = "mode"
    LINEAGE = "lineage"
    PROTECT = "protect"
    DATA_AGE = "max_data_age"
    IRREVERSIBLE = "allow_irreversible"
    NEW_INSTANCES = "max_new_instances"
    RELEASED_INSTANCES = "max_released_instances"
    RUN_BUDGET = "max_usd_per_run"
    HOUR_BUDGET = "max_usd_per_hour"
    MONTH_BUDGET = "max_usd_per_month"
    TENANT_BUDGET = "budget_usd_per_month"

    @property
    def forceable(self) -> bool:
        """Size and age can be waved through by name. Budgets cannot, nor what has a switch of its own."""
        return self in _FORCEABLE


_FORCEABLE = frozenset({GuardName.DATA_AGE, GuardName.NEW_INSTANCES, GuardName.RELEASED_INSTANCES})

No = tuple[GuardName, Reason]


def guard(plan: Plan, snapshot: Snapshot, policy: Policy, force: Collection[str] = ()) -> Plan:
    """The plan without what a guard refuses, and with the refusals. Raises UsageError for a name that is no guard or
    that cannot be forced.
    """
    forced = _forced(force)
    if not plan.changes:
        return plan
    everything = _whole_plan(snapshot, policy)
    if everything is not None:
        kept = tuple(action for action in plan.actions if isinstance(action, Keep))
        return msgspec.structs.replace(plan, actions=kept, refusals=(*plan.refusals, everything))
    return _Guards(snapshot, policy, forced).applied(plan)


def _forced(force: Collection[str]) -> frozenset[GuardName]:
    names = [name for name in GuardName if name.forceable]
    for name in sorted(force):
        if name not in list(GuardName):
            raise UsageError(f"there is no guard {name!r}", next_step=f"Give one of {', '.join(names)}")
        if name not in names:
            raise UsageError(f"the guard {name} cannot be forced", next_step=_INSTEAD.get(GuardName(name), "Change it"))
    return frozenset(GuardName(name) for name in force)


_CONFIGURED = "Change it in the configuration"
_INSTEAD = {
    GuardName.FROZEN: "Remove the freeze file",
    GuardName.IRREVERSIBLE: "Use --allow-irreversible",
    GuardName.LINEAGE: "Only the state that bought a reservation may change it",
    **dict.fromkeys((GuardName.OBSERVE, GuardName.PROTECT), _CONFIGURED),
    **dict.fromkeys((GuardName.RUN_BUDGET, GuardName.HOUR_BUDGET), _CONFIGURED),
    **dict.fromkeys((GuardName.MONTH_BUDGET, GuardName.TENANT_BUDGET), _CONFIGURED),
}


def _whole_plan(snapshot: Snapshot, policy: Policy) -> Refusal | None:
    if snapshot.frozen_by:
        reason = Reason(f"frozen by {snapshot.frozen_by}: nothing is bought, changed or released while that is so")
        return Refusal(guard=GuardName.FROZEN, key=WHOLE_PLAN, reason=reason)
    if policy.mode is Mode.OBSERVE:
        reason = Reason("mode is observe: the plan is shown, and nothing is done")
        return Refusal(guard=GuardName.OBSERVE, key=WHOLE_PLAN, reason=reason)
    return None


class _Guards:
    """Walks the plan with running totals of what was kept."""

    def __init__(self, snapshot: Snapshot, policy: Policy, forced: frozenset[GuardName]) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._forced = forced
        self._money = _Money(outlay(snapshot, policy), snapshot, policy)
        self._new = 0
        self._released = 0

    def applied(self, plan: Plan) -> Plan:
        kept: list[Action] = []
        refusals: list[Refusal] = []
        for action in plan.actions:
            noes = [] if isinstance(action, Keep) else [no for no in self._noes(action) if no[0] not in self._forced]
            if noes:
                refusals += [_refusal(action, no) for no in noes]
            else:
                self._count(action)
                kept.append(action)
        return msgspec.structs.replace(plan, actions=tuple(kept), refusals=(*plan.refusals, *refusals))

    def _noes(self, action: Action) -> Iterator[No]:
        yield from self._foreign(action)
        if isinstance(action, Extend):
            return
        yield from self._old_data(action)
        yield from self._size(action)
        yield from self._protected(action)
        if _added(action):
            yield from self._irreversible(action)
            yield from self._money.noes(action)

    def _count(self, action: Action) -> None:
        self._new += _added(action)
        self._released += _removed(action)
        if _added(action):
            self._money.spend(action)

    def _foreign(self, action: Action) -> Iterator[No]:
        if isinstance(action, Reserve):
            return
        owner = action.reservation.owner
        if owner is None or owner.lineage != self._snapshot.lineage:
            yield GuardName.LINEAGE, Reason(f"{action.reservation.id} was not bought from this state")

    def _protected(self, action: Action) -> Iterator[No]:
        if not isinstance(action, Reserve) and action.reservation.id in self._policy.protect:
            yield GuardName.PROTECT, Reason(f"{action.reservation.id} is protected by the configuration")

    def _old_data(self, action: Action) -> Iterator[No]:
        pools = by_name(self._policy, action.pool)
        limit = self._policy.guards.max_data_age
        views = [(source.source, source.as_of) for source in self._snapshot.sources if feeds(source, pools)]
        if isinstance(action, Release | Resize):
            scope = action.request.place.scope
            views += [(str(view.scope), view.reservations_at) for view in self._snapshot.scopes if view.scope == scope]
        for name, at in views:
            if at is not None and outdated(at, self._snapshot.now, limit):
                minutes = int((self._snapshot.now - at).total_seconds() // 60)
                allowed = int(limit.total_seconds() // 60)
                text = f"{name} is as of {at:%Y-%m-%d %H:%M} UTC, {minutes} min from now; at most {allowed} are allowed"
                yield GuardName.DATA_AGE, Reason(text, (("minutes", str(minutes)), ("limit_minutes", str(allowed))))

    def _size(self, action: Action) -> Iterator[No]:
        guards = self._policy.guards
        yield from _exceeds(GuardName.NEW_INSTANCES, "new", _added(action), self._new, guards.max_new_instances)
        released = _removed(action)
        yield from _exceeds(
            GuardName.RELEASED_INSTANCES, "released", released, self._released, guards.max_released_instances
        )

    def _irreversible(self, action: Action) -> Iterator[No]:
        if action.reversibility is Reversibility.IRREVERSIBLE and not self._policy.guards.allow_irreversible:
            fee = cents(action.usd_idle_at_worst)
            yield GuardName.IRREVERSIBLE, Reason(f"it cannot be undone and costs ${fee} in all", (("usd", str(fee)),))


class _Money:
    """Running totals of what is held and what was kept of the plan, against the budgets."""

    def __init__(self, held: Outlay, snapshot: Snapshot, policy: Policy) -> None:
        self._held = held
        self._guards = policy.guards
        self._budgets = {tenant.name: tenant.budget_usd_per_month for tenant in policy.tenants}
        self._run = Decimal(0)
        self._rate = held.usd_per_hour
        self._month = snapshot.spend.month_usd + held.usd_committed
        self._tenants = dict(snapshot.spend.by_tenant)
        for tenant, usd in held.committed_by_tenant:
            self._tenants[tenant] = self._tenants.get(tenant, Decimal(0)) + usd

    def noes(self, action: Action) -> Iterator[No]:
        rate, worst = action.usd_per_hour, action.usd_idle_at_worst
        if rate is None:
            yield GuardName.RUN_BUDGET, Reason("no price known: nothing is bought without one")
            return
        guards = self._guards
        yield from _over(GuardName.RUN_BUDGET, "idle at worst in this run", self._run, worst, guards.max_usd_per_run)
        yield from self._unpriced()
        yield from _over(GuardName.HOUR_BUDGET, "per hour", self._rate, rate, guards.max_usd_per_hour)
        yield from _over(GuardName.MONTH_BUDGET, "this month", self._month, worst, guards.max_usd_per_month)
        for tenant, usd in _parts(action):
            spent = self._tenants.get(tenant, Decimal(0))
            yield from _over(GuardName.TENANT_BUDGET, f"this month for {tenant}", spent, usd, self._budgets.get(tenant))

    def spend(self, action: Action) -> None:
        self._run += action.usd_idle_at_worst
        self._rate += action.usd_per_hour or Decimal(0)
        self._month += action.usd_idle_at_worst
        for tenant, usd in _parts(action):
            self._tenants[tenant] = self._tenants.get(tenant, Decimal(0)) + usd

    def _unpriced(self) -> Iterator[No]:
        """A total with an unknown part may be over any limit: unknown is not zero."""
        if not self._held.unpriced:
            return
        limits = (
            (GuardName.HOUR_BUDGET, self._guards.max_usd_per_hour),
            (GuardName.MONTH_BUDGET, self._guards.max_usd_per_month),
        )
        for name, limit in limits:
            if limit is not None:
                yield name, Reason(f"what is held costs an unknown sum: no price for {', '.join(self._held.unpriced)}")


def _over(name: GuardName, what: str, before: Decimal, more: Decimal, limit: Decimal | None) -> Iterator[No]:
    if limit is not None and before + more > limit:
        text = f"${cents(before + more)} {what} (${cents(before)} before it) is more than ${cents(limit)}"
        numbers = (("before_usd", str(before)), ("added_usd", str(more)), ("limit_usd", str(limit)))
        yield name, Reason(text, numbers)


def _exceeds(name: GuardName, what: str, more: int, before: int, limit: int | None) -> Iterator[No]:
    if limit is not None and more and before + more > limit:
        alone = "; by itself it is: no run will do it" if more > limit else ""
        text = f"{before + more} {what} instances in one run ({before} before it) are more than {limit}{alone}"
        yield name, Reason(text, (("before", str(before)), ("added", str(more)), ("limit", str(limit))))


def _refusal(action: Action, no: No) -> Refusal:
    name, reason = no
    request = None if isinstance(action, Keep) else action.request
    key = request.key if request else ""
    return Refusal(guard=name, key=key, reason=reason, forceable=name.forceable, request=request)


def _parts(action: Action) -> list[tuple[str, Decimal]]:
    return [(tenant, action.usd_idle_at_worst * Decimal(str(share))) for tenant, share in action.tenants]


def _added(action: Action) -> int:
    if isinstance(action, Reserve):
        return action.request.count
    if isinstance(action, Resize) and buys(action.request):
        return action.request.to_count - action.request.from_count
    return 0


def _removed(action: Action) -> int:
    if isinstance(action, Release):
        return action.reservation.count
    if isinstance(action, Resize) and not action.request.grows:
        return action.request.from_count - action.request.to_count
    return 0
