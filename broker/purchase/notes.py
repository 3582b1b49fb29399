"""What a reader of the plan should know beside its actions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

from broker.counted import number
from broker.model.money import cents
from broker.model.plan import Action, Reserve
from broker.model.policy import Policy, Pool
from broker.model.snapshot import Snapshot, Trust
from broker.purchase.holdings import Lot
from broker.purchase.needs import Need, Standing
from broker.purchase.pools import allows_place, allows_type
from broker.purchase.queue_demand import live_jobs
from broker.purchase.trust import scope_doubt, source_doubt
from broker.purchase.yard import counts_for, mismatch

IDLE_BESIDE = "idle meanwhile"
"""Marks a note on reserved instances that idle while jobs run on others of their kind."""

_FAR = 10
"""A limit this many times longer than the user's runs is worth a word."""


def notes(
    snapshot: Snapshot, policy: Policy, lots: tuple[Lot, ...], needs: Iterable[Need], outside: tuple[Need, ...]
) -> tuple[str, ...]:
    """Doubts about what was seen, supply that nothing can use, that was not delivered or that others took, and money
    that idles. `outside` are the needs of jobs that run beside everything held.
    """
    return (
        *_no_cloud(snapshot),
        *(f"{doubt}: nothing is given back on it" for doubt in _doubts(snapshot, policy)),
        *_far_limits(snapshot),
        *_unusable(lots, policy),
        *_missing(lots),
        *_of_other_brokers(snapshot),
        *_taken(snapshot, policy, lots, tuple(needs)),
        *_outside(lots, policy, outside),
    )


def spread(actions: Iterable[Action], needs: Iterable[Need]) -> tuple[str, ...]:
    """Jobs larger than an instance whose nodes the queue leaves unsaid: instances of one zone are bought for them."""
    anyhow = {need.job: need.gpus for need in needs if need.job and not need.gpus_per_node}
    return tuple(text for action in actions if isinstance(action, Reserve) for text in _spread(action, anyhow))


def _spread(action: Reserve, anyhow: Mapping[str, int]) -> Iterable[str]:
    size = action.offer.shape.gpus
    wide = [job for job in action.jobs if anyhow.get(job, 0) > size]
    others = f" and {len(wide) - 1} more" if len(wide) > 1 else ""
    if wide:
        yield (
            f"pool {action.pool}: {action.request.machine_type} holds {number(size, 'GPU')}; {wide[0]} "
            f"({anyhow[wide[0]]} GPUs){others} says nothing of nodes and would run across instances; "
            "give nodes or gpus_per_node in the queue to buy whole nodes"
        )


def _no_cloud(snapshot: Snapshot) -> Iterable[str]:
    if not snapshot.scopes:
        tables = "[[aws.account]], [[gcp.project]] or [[azure.subscription]]"
        yield f"no cloud is configured, so nothing can be bought: add {tables}"


def _doubts(snapshot: Snapshot, policy: Policy) -> Iterable[str]:
    sources = (source_doubt(source, snapshot, policy) for source in snapshot.sources)
    return [doubt for doubt in (*sources, *(scope_doubt(view) for view in snapshot.scopes)) if doubt]


def _unusable(lots: tuple[Lot, ...], policy: Policy) -> Iterable[str]:
    """Supply with the right GPUs in the right place that no launch of the pool would match."""
    for lot in lots:
        for pool in policy.pools:
            if not (allows_place(pool, lot.place) and allows_type(pool, lot.machine_type, lot.gpu_model)):
                continue
            difference = mismatch(lot.match, pool.match)
            if difference:
                yield f"{lot.id} ({lot.place}) does not serve pool {pool.name}: {difference}"


def _far_limits(snapshot: Snapshot) -> Iterable[str]:
    """Users whose jobs ask for far longer than they use: it decides what waits for them and what outlasts a block."""
    known = {usual.user: usual for usual in snapshot.run_lengths}
    limits: dict[str, list[int]] = {user: [] for user in known}
    for job in live_jobs(snapshot.sources).values() if known else ():
        if job.user in known and job.time_limit_s is not None:
            limits[job.user].append(job.time_limit_s)
    for user, usual in known.items():
        far = [limit for limit in limits[user] if limit >= _FAR * usual.within_s]
        if far:
            yield (
                f"{user}: {len(far)} jobs ask for up to {_hours(max(far))} h; of the last {usual.runs} that ended, "
                f"nearly all took {_hours(usual.within_s)} h or less, and so are these planned (runtime_quantile)"
            )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f}"


def _missing(lots: tuple[Lot, ...]) -> Iterable[str]:
    for lot in lots:
        if lot.missing:
            yield f"{lot.id} ({lot.place}) lacks {lot.missing} of {lot.count} instances, as the cloud itself says"


def _of_other_brokers(snapshot: Snapshot) -> Iterable[str]:
    """Another team's, or those of a state that was lost: then nothing would ever release them."""
    listed = (reservation for view in snapshot.scopes for reservation in view.reservations)
    owners = Counter(one.owner.lineage for one in listed if one.owner is not None and one.state.supplies)
    for lineage, count in sorted(owners.items()):
        if lineage != snapshot.lineage:
            yield (
                f"{number(count, 'reservation')} of another broker (state {lineage}): jobs may run there, only that "
                f"one changes or releases them; if its state is lost, broker state adopt --lineage {lineage} finds it "
                "again, in a folder of its own"
            )


def _taken(snapshot: Snapshot, policy: Policy, lots: tuple[Lot, ...], needs: tuple[Need, ...]) -> Iterable[str]:
    """Instances of ours that something uses which is no job of the queue, while jobs count on them."""
    if any(source.trust is not Trust.COMPLETE for source in snapshot.sources):
        return
    for pool in policy.pools:
        ours = [lot for lot in lots if lot.ours and lot.used and counts_for(lot, pool)]
        sharing = {other.name for other in policy.pools for lot in ours if counts_for(lot, other)}
        running = sum(need.gpus for need in needs if need.standing is Standing.RUNNING and need.pool in sharing)
        strangers = sum(lot.used for lot in ours) - running
        if strangers > 0 and any(need.standing is Standing.WAITING and need.pool == pool.name for need in needs):
            yield (
                f"pool {pool.name}: at least {strangers} instances of ours are used by what is no job of the queue; "
                "jobs that count on them wait until they are free"
            )


def _outside(lots: tuple[Lot, ...], policy: Policy, outside: tuple[Need, ...]) -> Iterable[str]:
    """Jobs that run beside what is held, and what idles meanwhile."""
    for pool in policy.pools:
        gpus = sum(need.gpus for need in outside if need.pool == pool.name)
        if not gpus:
            continue
        idle, rate, unpriced = _idle(lots, pool)
        figure = f"at least ${cents(rate)}/h ({unpriced} without a price)" if unpriced else f"${cents(rate)}/h"
        where = (
            "beside own nodes and reservations" if pool.own else "beside all reservations; on your own nodes? Say so"
        )
        own = "" if pool.own else " in [[pool.own]]"
        text = f"; reserved instances of ours that {IDLE_BESIDE}: {idle}, at {figure}" if idle else ""
        yield f"pool {pool.name}: jobs run on {number(gpus, 'GPU')} {where}{own}; nothing is bought for them{text}"


def _idle(lots: tuple[Lot, ...], pool: Pool) -> tuple[int, Decimal, int]:
    """(instances, what they cost an hour, those of them that have no price and are in no sum)."""
    idle = [lot for lot in lots if lot.ours and lot.reservation is not None and counts_for(lot, pool)]
    rate = sum(((lot.usd_per_hour or Decimal(0)) * (lot.count - lot.used) for lot in idle), Decimal(0))
    unpriced = sum(lot.count - lot.used for lot in idle if lot.usd_per_hour is None)
    return sum(lot.count - lot.used for lot in idle), rate, unpriced
