"""Why one job runs, waits or goes: all that the schedule knows of it."""

from datetime import datetime, timedelta

import msgspec

from broker.errors import UsageError
from broker.model.snapshot import SourceView
from broker.purchase.queue_demand import live_jobs
from broker.schedule.feed import HOME, LATE, UNSTOPPABLE
from broker.schedule.memory import Known, Memory, PoolMemory
from broker.sia import following
from broker.sia.columns import NOBODY


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """`owed_since` None: its tenant's own share would not have started it yet. Times in seconds where named `_s`.

    `ahead` are unfinished jobs of its tenant that the static schedule starts before it.
    """

    job: str
    pool: str
    tenant: str
    gpus: int
    class_name: str
    submitted: datetime
    running_since: datetime | None
    owed_since: datetime | None
    lag_s: float
    service_s: float
    called_back: int
    may_borrow: bool
    ahead: int
    order: str | None
    sentences: tuple[str, ...]


def explain(memory: Memory, name: str, sources: tuple[SourceView, ...]) -> Explained:
    """`name` is the queue's id, or cluster/id where ids are the same. Raises UsageError."""
    found = [
        (pool_name, pool, key, known)
        for pool_name, pool in memory.pools.items()
        for key, known in pool.known.items()
        if name in (key, key.rpartition("/")[2])
    ]
    if len(found) == 1:
        return _explained(memory.since, *found[0])
    if found:
        keys = ", ".join(key for _, _, key, _ in found)
        raise UsageError(f"job {name} is in several clusters", next_step=f"Use one of {keys}")
    raise UsageError(_absent(name, sources), next_step="See what is read: broker jobs -v")


def _absent(name: str, sources: tuple[SourceView, ...]) -> str:
    for key, job in live_jobs(sources).items():
        if name in (job.id, "/".join(key)):
            return f"job {name} is {job.state.value} and not scheduled: held, waiting for others, or of no decided pool"
    return f"no live job {name} is in the queue"


def _explained(since: datetime, pool_name: str, pool: PoolMemory, key: str, known: Known) -> Explained:
    machine = pool.machine
    record = machine.state.jobs[machine.known[known.name]]
    owed = following.owed_since(machine, known.name)
    tenant = machine.state.tenants[record.tenant]
    ahead = _ahead(pool, known.name)
    shown = Explained(
        job=key,
        pool=pool_name,
        tenant=machine.tenants[record.tenant],
        gpus=known.gpus,
        class_name=known.kind,
        submitted=since + timedelta(seconds=record.submit),
        running_since=None if known.began is None else since + timedelta(seconds=known.began),
        owed_since=None if owed is None else since + timedelta(seconds=owed),
        lag_s=round(machine.lag_s(known.name), 3),
        service_s=round(known.service, 3),
        called_back=known.called_back,
        may_borrow=bool(record.lendable or record.firm),
        ahead=ahead,
        order=known.order.kind if known.order else None,
        sentences=(),
    )
    return msgspec.structs.replace(shown, sentences=tuple(_sentences(shown, known, tenant.entitlement)))


def _ahead(pool: PoolMemory, name: str) -> int:
    jobs = pool.machine.state.jobs
    count, j = 0, jobs[pool.machine.known[name]].before
    while j != NOBODY and jobs[j].shadow_end == float("inf") and jobs[j].shadow_start == float("inf"):
        count, j = count + 1, jobs[j].before
    return count


def _sentences(job: Explained, known: Known, entitlement: int) -> list[str]:
    lines = [_standing(job, entitlement), _lag(job)]
    if job.running_since is None:
        lines.append("It holds no slots, as the queue tells it.")
    else:
        lines.append(f"It has run since {job.running_since:%Y-%m-%d %H:%M:%S} UTC, or before the first look.")
    if known.most:
        lines.append(
            f"It is elastic: {known.gpus} GPUs are its share, it can use {max(known.most, known.gpus)}, "
            f"and the queue shows it on {known.shown}."
        )
    if job.owed_since is None and not job.may_borrow:
        lines.append(f"It does not borrow: {known.stays or 'it may not'}.{_REMEDIES.get(known.stays, '')}")
    if job.called_back:
        lines.append(f"It was called back {job.called_back} times; a job called back 3 times waits for its own turn.")
    if known.order:
        lines.append(f"It is to be followed: {known.order.kind}, because {known.order.reason}.")
    return lines


_REMEDIES = {
    LATE: " broker schedule --trust CLASS lets it borrow again.",
    UNSTOPPABLE: " schedule.preemptible_queues names queues whose jobs can be.",
    HOME: " [[tenant]] borrows = true lets it.",
}


def _standing(job: Explained, entitlement: int) -> str:
    if job.owed_since is not None:
        return (
            f"Alone in its {entitlement} GPUs, {job.tenant} would have started it at "
            f"{job.owed_since:%Y-%m-%d %H:%M:%S} UTC: it is owed {job.gpus} GPUs."
        )
    if job.gpus > entitlement:
        return (
            f"It asks {job.gpus} GPUs and {job.tenant} is promised {entitlement}: it can only borrow, without a bound."
        )
    waits = f"; {job.ahead} of its jobs are before it." if job.ahead else ": the jobs before it leave too little."
    return f"Alone in its {entitlement} GPUs, {job.tenant} would not have started it yet{waits}"


def _lag(job: Explained) -> str:
    if job.lag_s > 0:
        return f"It is {job.lag_s:.0f} s behind its static schedule."
    return f"It is {-job.lag_s:.0f} s ahead of its static schedule."
