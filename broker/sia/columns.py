"""The allocator's state: records in plain lists in the live machine, in numpy record arrays when compiled.

Both are used in the same way, `state.jobs[j].service`. Times and work are seconds, amounts are GPUs; a job, a tenant
and a class of equal sizes are indices. NEVER stands for "not known yet", NOBODY for "none".
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.sia.compiling import kernel
from broker.sia.heap import Heap

NEVER = float("inf")
TINY_S = 1e-6  # differences in time below this are rounding (speeds of elastic jobs are fractional)
NOBODY = -1

# Job.state
QUEUED, RUNNING, DRAINING, RESIZING, DONE, CANCELLED = 0, 1, 2, 3, 4, 5

RUNGS = 4  # parts of the longest reclaim time

# Decisions, as written to the log
GRANT, LOAN, RECLAIM, AFRESH, EXPAND, SHRINK, RESUME = 0, 1, 2, 3, 4, 5, 6

PARDONED = 2  # Job.missed

# Switches of State.on
ENTITLEMENT, ORDER, RESTORE, RESTART, CREDIT, GUARD, HOME = 0, 1, 2, 3, 4, 5, 6
SWITCHES = 7


@dataclass(slots=True)
class Job:
    """`service` is as of `since`; a running job has done more."""

    tenant: int = 0
    submit: float = 0.0
    gpus: int = 1
    most: int = 1  # > gpus: elastic
    speed_power: float = 1.0  # speed on a GPUs is (a / gpus) ** speed_power, a >= gpus
    lendable: int = 1  # 1: may start early on what others do not use, and be called back
    firm: int = 0  # 1: cannot be called back, and may start early where that will hardly ever be needed
    firm_loan: int = 0  # how a firm loan went
    reclaim_s: float = 0.0
    rung: int = RUNGS - 1  # by reclaim time, 0 the fastest
    restore_s: float = 0.0
    quick_s: float = 0.0  # predicted 10% quantile of the duration
    typical_s: float = 0.0  # predicted typical duration, or whatever else loans are ranked by
    size: int = 0  # class of equal `gpus`
    state: int = QUEUED
    held: int = 0
    target: int = 0
    service: float = 0.0
    since: float = 0.0
    work: float = NEVER  # until the job has ended
    drained_at: float = 0.0
    was: int = 0  # slots in use while it drains towards more of them
    leaving: int = 0  # slots of an abandoned drain, held until drained_at beside what the job runs on
    preempted: int = 0
    shadow_start: float = NEVER
    shadow_end: float = NEVER
    shadow_left: int = 0  # 1: its shadow end has passed
    waiting_since: float = NEVER
    late: int = 0  # 1: owed, running, and behind its shadow
    missed: int = 0  # 1: had to wait when it became owed; PARDONED: claims exceeded capacity by as much
    started_at: float = 0.0
    cancelled_at: float = NEVER
    before: int = NOBODY  # in the tenant's queue
    after: int = NOBODY
    ended_before: int = NOBODY  # stack of the shadow's past ends
    waits_before: int = NOBODY  # owed jobs without slots, in queue order
    waits_after: int = NOBODY
    running_at: int = NOBODY  # position in State.running
    queued: int = 0  # 1: in the queue of jobs that may start early


@dataclass(slots=True)
class Tenant:
    entitlement: int = 0
    keep: int = 0  # slots never lent: entitlement less the cap on lending
    head: int = NOBODY  # first job that the shadow has not started
    tail: int = NOBODY
    used: int = 0  # by the shadow
    ended: int = NOBODY  # top of the stack of past shadow ends
    behind: int = 0  # unfinished jobs that the shadow has not started
    owed: int = 0  # GPUs of unfinished jobs that it has
    granted: int = 0  # GPUs of those which hold slots
    late: int = 0  # owed running jobs behind their shadow
    first_waiting: int = NOBODY
    last_waiting: int = NOBODY
    entitled_since: float = NEVER  # whole entitlement claimed
    active: int = 0  # 1: in State.active
    share: int = 0  # scratch of one decision, as are the next two
    cursor: int = NOBODY
    asked: int = 0


@dataclass(slots=True)
class Pool:
    capacity: int = 0
    goal: int = 0  # capacity above this is given back as it falls free, and not lent
    busy: int = 0
    coming: int = 0  # busy slots that are draining
    hold: int = 0  # held back from lending
    extra: int = 0  # slots of elastic jobs above what they asked for
    elastic: int = 0  # jobs that can use more than they asked for
    fast: int = 0  # jobs that are not on the slowest rung
    runs: int = 0  # length of State.running
    logged: int = 0  # length of the log
    active: int = 0  # length of State.active
    shadow_ends: int = NOBODY  # root of State.ends
    drains: int = NOBODY  # root of State.drains
    owed_all: int = 0
    unmet: int = 0  # claimed and not held
    claimed: int = 0  # the claims G
    short: int = 0  # by how much G exceeds capacity, less what is lent firmly
    firm: int = 0  # slots of jobs that run early and cannot be called back
    firm_in_the_way: int = 0  # of which a claim needs
    firm_share: float = 0.0  # of firm loans that may miss; 0: there are none
    firm_correction: float = 0.0  # GPUs
    firm_open: int = 0  # loans that are not judged yet, and the next two: that are, and that missed
    firm_judged: int = 0
    firm_missed: int = 0
    demand: int = 0  # GPUs of unfinished jobs, running or not
    peak: int = 0  # largest of claims and demand since it was last read
    claims_peak: int = 0  # largest of the claims since it was last read
    late_at: float = NEVER  # when the next waiting owed job has used up its credit
    now: float = 0.0
    # rules
    limit: int = 3  # preemptions after which a job is not started early again
    shortest: int = 1
    latest_first: int = 0
    tolerance: float = 0.1
    longest_s: float = 0.0  # longest reclaim
    reach_s: float = 1.0  # the same, at least 1
    pause_s: float = 0.0  # reclaim and restore
    # counters
    sensitive: int = 0
    missed: int = 0
    window: float = -1.0
    window_gpus: int = 0
    preemptions: int = 0
    resizes: int = 0
    lost: float = 0.0  # GPU-seconds, as are the three next but one
    short_s: float = 0.0
    busy_s: float = 0.0
    held_s: float = 0.0
    owed_s: float = 0.0
    largest_lag: float = 0.0


@dataclass(slots=True)
class Horizon:
    """How far claims rise within `length_s` of a moment; `since` NEVER: not watched now."""

    length_s: float = 0.0
    rise: float = NEVER  # NEVER: none was seen yet
    since: float = NEVER
    level: int = 0
    top: int = 0


class State(NamedTuple):
    jobs: list[Job]
    tenants: list[Tenant]
    pool: list[Pool]  # one
    ends: Heap  # shadow ends that are known and lie ahead
    drains: Heap  # draining, resizing and abandoned slots, by drained_at
    queue: Heap  # jobs that may start early
    running: list[int]
    active: list[int]  # tenants that may have claims
    sizes: list[int]  # root of the queue of lendable jobs, for each class of equal GPUs
    log_job: list[int]
    log_kind: list[int]
    wanted: list[int]  # histogram: windows of one reclaim time by the GPUs that sensitive owed starts wanted in them
    on: list[int]  # switches of the rules
    horizons: list[Horizon]
    rungs: list[int]  # scratch of one decision: GPUs lent on each


@kernel
def speed_of(held: int, gpus: int, power: float) -> float:
    """Progress in seconds of work a second."""
    return 1.0 if held <= gpus else float((held / gpus) ** power)
