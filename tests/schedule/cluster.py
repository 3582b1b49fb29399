"""A small cluster that follows the broker's orders, some at once, some late, and shows its queue."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from broker.config import ScheduleSettings
from broker.model.job import Job, JobState
from broker.model.policy import OwnNodes, Policy, Pool, Tenant
from broker.model.snapshot import SourceView, Trust
from broker.schedule.memory import Memory
from broker.schedule.orders import PoolSchedule
from broker.schedule.step import Seen, begin, look

START = datetime(2026, 3, 4, 12, tzinfo=UTC)
SETTINGS = ScheduleSettings(reclaim=timedelta(seconds=120), restore=timedelta(seconds=60), preemptible_queues=("*",))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def policy(*tenants: Tenant, nodes: int = 2, pools: tuple[str, ...] = ("h100",)) -> Policy:
    own = (OwnNodes(nodes=nodes, gpus_per_node=8),)
    made = tuple(Pool(name=name, gpu_models=(name.upper(),), places=(), own=own, default=True) for name in pools)
    return Policy(pools=made, tenants=tenants)


def tenant(name: str, gpus: int, **terms: object) -> Tenant:
    return Tenant(name=name, entitlements=(("h100", gpus),), **terms)  # type: ignore[arg-type]


def job(name: str, tenant: str, gpus: int, submit: float = 0, **more: object) -> Job:
    made = {"state": JobState.PENDING, "queue": "gpu", "user": "ada", **more}
    return Job(id=name, tenant=tenant, submit=at(submit), gpus=gpus, cluster="c", **made)  # type: ignore[arg-type]


def running(name: str, tenant: str, gpus: int, submit: float, start: float, **more: object) -> Job:
    return job(name, tenant, gpus, submit, state=JobState.RUNNING, start=at(start), **more)


def seen(now: float, *jobs: Job, trust: Trust = Trust.COMPLETE) -> Seen:
    return Seen(now=at(now), sources=(SourceView(source="q", trust=trust, as_of=at(now), jobs=jobs),))


def looked(
    memory: Memory, now: float, *jobs: Job, rules: Policy, settings: ScheduleSettings = SETTINGS
) -> PoolSchedule:
    (found,) = look(memory, seen(now, *jobs), rules, settings).pools
    return found


def watched(rules: Policy, *, hours: float = 1.01) -> Memory:
    """After an hour of an empty queue, so that lending has begun."""
    memory = begin(START)
    looked(memory, 0, rules=rules)
    looked(memory, hours * 3600, rules=rules)
    return memory


@dataclass
class Work:
    name: str
    tenant: str
    gpus: int
    submit: float
    work: float
    start: float | None = None
    done: float = 0.0
    stopping: float | None = None


@dataclass
class Cluster:
    """Orders are followed with `delay` looks' chance of being late; a called-back job stops within its time or late."""

    rng: random.Random
    slots: int
    lazy: float = 0.3
    works: list[Work] = field(default_factory=list)

    def add(self, work: Work) -> None:
        self.works.append(work)

    def pass_time(self, now: float, step: float) -> None:
        for work in list(self.works):
            if work.start is not None:
                work.done += step
                if work.stopping is not None and work.stopping <= now:
                    work.start = work.stopping = None
                elif work.done >= work.work:
                    self.works.remove(work)

    def used(self) -> int:
        return sum(work.gpus for work in self.works if work.start is not None)

    def queue(self) -> tuple[Job, ...]:
        return tuple(
            job(work.name, work.tenant, work.gpus, work.submit)
            if work.start is None
            else running(work.name, work.tenant, work.gpus, work.submit, work.start)
            for work in self.works
        )

    def follow(self, found: PoolSchedule, now: float) -> None:
        by_name = {f"c/{work.name}": work for work in self.works}
        for order in found.reclaims:
            work = by_name[order.job]
            if work.start is not None and work.stopping is None and self.rng.random() > self.lazy:
                work.stopping = now + self.stop_after()
        for order in (*found.grants, *found.loans):
            work = by_name[order.job]
            room = self.used() + work.gpus <= self.slots
            if work.start is None and room and self.rng.random() > self.lazy:
                work.start = now

    def stop_after(self) -> float:
        """Seconds that a called-back job takes to give its slots back; some take longer than they may."""
        return self.rng.choice([10, 100, 400])
