"""Making a State, and room in it for one job more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from broker.sia.columns import NOBODY, RUNGS, SWITCHES, Horizon, Job, Pool, State, Tenant
from broker.sia.compiling import filled, to_arrays
from broker.sia.heap import Node
from broker.sia.rungs import rung_of
from broker.sia.step import promise_all

HORIZONS = 16
_ABOVE_GPUS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Knobs of the allocator. `off` switches rules off, for ablations only: the bound needs every one of them."""

    reclaim_s: float = 60.0
    restore_s: float = 120.0
    tolerance: float = 0.1  # share of its static latency that a job may lose before it counts as slowed down
    most_preemptions: int = 3
    shortest_first: bool = True
    latest_first: bool = False
    off: frozenset[int] = frozenset()
    firm_share: float = 0.0  # of loans to jobs that cannot be called back that may miss; 0: none are made

    def on_ticks(self, tick_s: float) -> "Rules":
        """For decisions on ticks only: a reclaim takes whole ones, at least one, and a restore whole ones."""
        reclaim, restore = max(1, ceil(self.reclaim_s / tick_s)), ceil(self.restore_s / tick_s)
        return replace(self, reclaim_s=reclaim * tick_s, restore_s=restore * tick_s)


def new_state(*, entitlements: Sequence[int], kept: Sequence[int] = (), capacity: int, rules: Rules) -> State:
    """A pool with its tenants and no job yet; `kept` is what each tenant does not lend."""
    state = State(
        jobs=[],
        tenants=[Tenant(entitlement=int(slots)) for slots in entitlements],
        pool=[_pool(int(capacity), rules)],
        ends=[],
        drains=[],
        queue=[],
        running=[],
        active=[0] * len(entitlements),
        sizes=[],
        log_job=[0] * 16,
        log_kind=[0] * 16,
        wanted=[0] * (max(int(capacity), int(sum(entitlements))) + 1),
        on=[0 if switch in rules.off else 1 for switch in range(SWITCHES)],
        horizons=horizons(rules),
        rungs=[0] * RUNGS,
    )
    for tenant, slots in zip(state.tenants, kept, strict=False):
        tenant.keep = slots
    promise_all(state)
    return state


def _pool(capacity: int, rules: Rules) -> Pool:
    return Pool(
        capacity=capacity,
        goal=capacity,
        limit=rules.most_preemptions,
        shortest=int(rules.shortest_first),
        latest_first=int(rules.latest_first),
        tolerance=rules.tolerance,
        firm_share=rules.firm_share,
        longest_s=rules.reclaim_s,
        reach_s=max(rules.reclaim_s, 1.0),
        pause_s=rules.reclaim_s + rules.restore_s,
    )


def horizons(rules: Rules) -> list[Horizon]:
    """From one reclaim time to weeks, each twice the one before."""
    return [Horizon(length_s=max(rules.reclaim_s, 1.0) * 2**k) for k in range(HORIZONS)]


def class_of(job: Job) -> int:
    """Jobs of one class are lent to in order of rank, so all of them must need the same."""
    needs = job.gpus + (RUNGS - 1 - job.rung) * _ABOVE_GPUS
    return -needs if job.firm else needs


def add_job(state: State, job: Job, classes: dict[int, int]) -> int:
    """Make room for a job, which is not submitted yet; `classes` numbers the sizes seen so far."""
    job.rung = rung_of(job.reclaim_s, state.pool[0].longest_s)
    classify(state, job, classes)
    state.jobs.append(job)
    state.pool[0].elastic += job.most > job.gpus
    state.pool[0].fast += job.rung < RUNGS - 1
    for heap in (state.ends, state.drains, state.queue):
        heap.append(Node())
    state.running.append(NOBODY)
    for log in (state.log_job, state.log_kind):
        log.extend((0, 0, 0, 0))
    return len(state.jobs) - 1


def classify(state: State, job: Job, classes: dict[int, int]) -> None:
    job.size = classes.setdefault(class_of(job), len(classes))
    if job.size == len(state.sizes):
        state.sizes.append(NOBODY)


def whole_state(state: State, jobs: Any) -> State:
    """The state as arrays, with all jobs of a replay at once; `jobs` is a record array, in order of submit."""
    import numpy as np

    columns: dict[str, Any] = {}
    reclaims, which = np.unique(jobs["reclaim_s"], return_inverse=True)
    jobs["rung"] = np.array([rung_of(each, state.pool[0].longest_s) for each in reclaims.tolist()])[which]
    needs = jobs["gpus"] + (RUNGS - 1 - jobs["rung"].astype(np.int64)) * _ABOVE_GPUS
    sizes, jobs["size"] = np.unique(np.where(jobs["firm"] > 0, -needs, needs), return_inverse=True)
    state.pool[0].fast = int(np.sum(jobs["rung"] < RUNGS - 1))
    state.pool[0].elastic = int(np.sum(jobs["most"] > jobs["gpus"]))
    arrays: State = to_arrays(state)
    node, count = Node(), len(jobs)
    columns |= {name: filled(node, count) for name in ("ends", "drains", "queue")}
    columns |= {name: np.zeros(4 * count + 16, dtype=np.int64) for name in ("log_job", "log_kind")}
    columns |= {"jobs": jobs, "running": np.full(count, NOBODY), "sizes": np.full(len(sizes), NOBODY)}
    return arrays._replace(**columns)
