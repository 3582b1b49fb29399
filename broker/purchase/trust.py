"""Whether what was seen is good enough to give something back on: unknown is never empty."""

from datetime import datetime, timedelta

from broker.model.place import Scope
from broker.model.policy import Policy, Pool
from broker.model.snapshot import ScopeView, Snapshot, SourceView, Trust


def doubts(pools: tuple[Pool, ...], scope: Scope, snapshot: Snapshot, policy: Policy) -> str:
    """What keeps us from giving capacity of these pools in this scope back; "" if nothing does.

    A lot that serves no pool any more is judged by all that was seen.
    """
    sources = [source for source in snapshot.sources if feeds(source, pools)]
    reasons = [
        *([] if sources else ["no job source tells what is needed"]),
        *(reason for source in sources if (reason := source_doubt(source, snapshot, policy))),
        *(reason for view in snapshot.scopes if _concerns(view, pools, scope) and (reason := scope_doubt(view))),
    ]
    if all(view.scope != scope for view in snapshot.scopes):
        reasons.append(f"{scope} was not listed")
    return "; ".join(reasons)


def feeds(source: SourceView, pools: tuple[Pool, ...]) -> bool:
    """Whether the source tells the demand of any of these pools; without pools every source does."""
    return not source.pools or not pools or any(pool.name in source.pools for pool in pools)


def source_doubt(source: SourceView, snapshot: Snapshot, policy: Policy) -> str:
    """Why nothing may be given back on its word; "" if it is complete and fresh."""
    if source.trust is not Trust.COMPLETE:
        return f"job source {source.source} is {source.trust}"
    return (
        f"job source {source.source} is {_age_minutes(source, snapshot)} min from now"
        if stale(source, snapshot, policy)
        else ""
    )


def stale(source: SourceView, snapshot: Snapshot, policy: Policy) -> bool:
    """Older than `guards.max_data_age`, or from the future."""
    return source.as_of is not None and outdated(source.as_of, snapshot.now, policy.guards.max_data_age)


def outdated(at: datetime, now: datetime, limit: timedelta) -> bool:
    """Too far from now, back or ahead: a source from the future has a clock that cannot be believed."""
    return abs(now - at) > limit


def scope_doubt(view: ScopeView) -> str:
    """Why its listing proves nothing gone; "" if it is complete."""
    return "" if view.trust is Trust.COMPLETE else f"{view.scope} is {view.trust}"


def _age_minutes(source: SourceView, snapshot: Snapshot) -> int:
    assert source.as_of is not None
    return int((snapshot.now - source.as_of).total_seconds() // 60)


def _concerns(view: ScopeView, pools: tuple[Pool, ...], scope: Scope) -> bool:
    """Supply anywhere in a pool's places bears on what the pool can give back."""
    return view.scope == scope or not pools or any(_reaches(pool, view.scope) for pool in pools)


def _reaches(pool: Pool, scope: Scope) -> bool:
    return any(
        rule.provider == scope.provider
        and rule.account in (None, scope.account)
        and rule.region in (None, scope.region)
        for rule in pool.places
    )
