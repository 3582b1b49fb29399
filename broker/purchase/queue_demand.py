"""Demand from the queue as it is: what runs, until its limit, and what waits, from now on."""

from datetime import UTC, datetime, timedelta
from math import ceil

from broker.model.job import Job, JobState
from broker.model.policy import Policy, Pool
from broker.model.snapshot import Snapshot, SourceView
from broker.purchase.needs import Demand, Need, Standing
from broker.purchase.pools import Asks, asks, pool_of, runs_on_own_nodes

JobKey = tuple[str, str]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_STANDING = {
    JobState.RUNNING: Standing.RUNNING,
    JobState.SUSPENDED: Standing.RUNNING,
    JobState.PENDING: Standing.WAITING,
    JobState.UNKNOWN: Standing.DOUBTFUL,
}
"""A suspended job keeps its GPUs. A held one is not demand: nobody knows when, or whether, it is let go."""


def queue_demand(snapshot: Snapshot, policy: Policy) -> Demand:
    """Every live job once, whatever number of sources show it, as a need of the first pool that it asks."""
    jobs = live_jobs(snapshot.sources)
    timing = _Timing(jobs, snapshot, policy)
    needs: list[Need] = []
    unserved: list[Job] = []
    pools: dict[Asks, Pool | None] = {}
    for job in jobs.values():
        if job.state not in _STANDING or job.gpus <= 0:
            continue
        key = asks(job)
        pool = pools[key] if key in pools else pools.setdefault(key, pool_of(job, policy.pools))
        if pool is None:
            unserved.append(job)
        elif (begins := timing.begins(job)) is not None:
            needs.append(_need(job, pool, begins, timing.ends(job, begins)))
    waiting = tuple(job for job in unserved if job.state is JobState.PENDING)
    return Demand(needs=tuple(needs), unserved=waiting)


def live_jobs(sources: tuple[SourceView, ...]) -> dict[JobKey, Job]:
    """By cluster and id, the latest attempt as the freshest source tells it; finished ones fall away.

    A job of no named cluster is that of the same id submitted at the same instant, wherever that is shown; else its
    source stands for the cluster.
    """
    latest: dict[JobKey, Job] = {}
    clusters = _clusters(sources)
    for source in sorted(sources, key=_freshness):
        for job in source.jobs:
            cluster = job.cluster or clusters.setdefault((job.id, job.submit), source.source)
            known = latest.get((cluster, job.id))
            if known is None or (job.submit, job.attempt) >= (known.submit, known.attempt):
                latest[cluster, job.id] = job
    return {key: job for key, job in latest.items() if job.state.live}


def _clusters(sources: tuple[SourceView, ...]) -> dict[tuple[str, datetime], str]:
    """The cluster that is named for an id and an instant of submission."""
    return {(job.id, job.submit): job.cluster for source in sources for job in source.jobs if job.cluster}


def _freshness(source: SourceView) -> tuple[datetime, str]:
    """Oldest first, so that what is told later wins; a source that does not know its age is told first."""
    return (source.as_of or _LONG_AGO, source.source)


class _Timing:
    """When jobs begin and end. Ends are estimates: the limit, or the configured run time where there is none; but no
    later than most jobs of that user ended, for limits are often set to as much as is allowed.
    """

    def __init__(self, jobs: dict[JobKey, Job], snapshot: Snapshot, policy: Policy) -> None:
        self._now = snapshot.now
        self._usual = {each.user: each.within_s for each in snapshot.run_lengths}
        self._default = policy.purchase.default_runtime
        self._by_id = {(job.cluster, job.id): job for job in jobs.values()}
        self._known: dict[JobKey, datetime | None] = {}

    def begins(self, job: Job) -> datetime | None:
        """Now for what runs; else when it may start. None while a job that it waits for has no known end.

        Without recursion: chains of thousands of jobs are usual. A circle of dependencies never begins.
        """
        path = [job]
        while path:
            top = path[-1]
            unknown = [before for before in self._dependencies(top) if _key(before) not in self._known]
            if unknown and _key(top) not in self._known:
                self._known[_key(top)] = None
                path.extend(unknown)
            else:
                self._known[_key(top)] = self._earliest(top)
                path.pop()
        return self._known[_key(job)]

    def ends(self, job: Job, begins: datetime) -> datetime:
        """An overrun is not over: the job still holds its GPUs, for as long as nobody knows."""
        started = job.start if _STANDING.get(job.state) is Standing.RUNNING and job.start else begins
        ends = started + self._runtime(job)
        return ends if ends > self._now else self._now + self._default

    def _dependencies(self, job: Job) -> list[Job]:
        """Those still in the queue, if the job waits for them at all."""
        if not job.depends_on or _STANDING.get(job.state) is Standing.RUNNING:
            return []
        found = (self._by_id.get((job.cluster, name)) for name in job.depends_on)
        return [before for before in found if before is not None]

    def _earliest(self, job: Job) -> datetime | None:
        if _STANDING.get(job.state) is Standing.RUNNING:
            return self._now
        if job.state not in _STANDING:
            return None
        earliest = max(moment for moment in (self._now, job.eligible, job.not_before) if moment is not None)
        for before in self._dependencies(job):
            began = self._known[_key(before)]
            if began is None:
                return None
            earliest = max(earliest, self.ends(before, began))
        return earliest

    def _runtime(self, job: Job) -> timedelta:
        known = [seconds for seconds in (job.time_limit_s, self._usual.get(job.user or "")) if seconds is not None]
        return timedelta(seconds=min(known)) if known else self._default


def _key(job: Job) -> JobKey:
    return (job.cluster, job.id)


def _need(job: Job, pool: Pool, begins: datetime, ends: datetime) -> Need:
    nodes, per_node = _geometry(job)
    standing = _STANDING[job.state]
    return Need(
        pool=pool.name,
        standing=standing,
        begins=begins,
        ends=ends,
        gpus=job.gpus,
        nodes=nodes,
        gpus_per_node=per_node,
        tenant=job.tenant,
        job=job.id,
        model=job.gpu_model,
        preemptible=job.preemptible,
        priority=job.priority,
        submit=job.submit,
        own=runs_on_own_nodes(job, pool) if standing is Standing.RUNNING else None,
    )


def _geometry(job: Job) -> tuple[int, int]:
    """(nodes, GPUs on each); 0 on each where the source says neither."""
    if job.gpus_per_node:
        return job.nodes or ceil(job.gpus / job.gpus_per_node), job.gpus_per_node
    if job.nodes:
        return job.nodes, ceil(job.gpus / job.nodes)
    return 1, 0
