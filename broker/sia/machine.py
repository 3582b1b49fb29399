"""The allocator as the live command uses it: named tenants and jobs, events in, decisions with reasons out.

It runs the same rules as the compiled replay, on lists. Between calls its whole state can be saved as JSON; a resumed
machine decides as an uninterrupted one.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from broker.errors import StateError, UsageError
from broker.sia.columns import (
    AFRESH,
    CANCELLED,
    DONE,
    EXPAND,
    GRANT,
    LOAN,
    NEVER,
    QUEUED,
    RECLAIM,
    RESUME,
    RUNGS,
    RUNNING,
    SHRINK,
    Horizon,
    Job,
    Pool,
    State,
    Tenant,
)
from broker.sia.ground import Ground, Placed, Pooled
from broker.sia.heap import Node
from broker.sia.placement import Cells, checked_size
from broker.sia.placement_state import Nodes
from broker.sia.saving import restored, turned
from broker.sia.shadow import lag_of, service_of
from broker.sia.state import Rules, add_job, horizons, new_state
from broker.sia.step import begin, next_wake

FORMAT = 3
FORMAT_ON_NODES = 4
_OLDER = (1, 2)
_RECORDS = {
    "jobs": Job,
    "tenants": Tenant,
    "pool": Pool,
    "ends": Node,
    "drains": Node,
    "queue": Node,
    "horizons": Horizon,
}


class Kind(StrEnum):
    """What the scheduler is to do with a job."""

    GRANT = "grant"  # start: it is owed
    LOAN = "loan"  # start on what others do not use
    RECLAIM = "reclaim"  # checkpoint, stop, give the slots back
    RESTART = "restart"  # start afresh on other slots, without waiting for its checkpoint
    EXPAND = "expand"
    SHRINK = "shrink"
    RESUME = "resume"  # its checkpoint is written: go on with the new number of slots


_KINDS = {
    GRANT: Kind.GRANT,
    LOAN: Kind.LOAN,
    RECLAIM: Kind.RECLAIM,
    AFRESH: Kind.RESTART,
    EXPAND: Kind.EXPAND,
    SHRINK: Kind.SHRINK,
    RESUME: Kind.RESUME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a tenant is promised, and what it lets others do with it. `lends` None: all of it."""

    entitlement: int
    lends: int | None = None
    borrows: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    job: str
    tenant: str
    kind: Kind
    gpus: int
    lag_s: float  # how far the job is behind its static schedule; negative: ahead
    reason: str
    cells: Cells = ()  # where it runs or drains; empty where slots are pooled


@dataclass(slots=True, kw_only=True)
class Request:
    """A job at submission. Times in seconds; `quick_s` and `typical_s` are forecasts of its duration, of any value."""

    id: str
    tenant: str
    gpus: int
    most: int = 0  # 0: as many as `gpus`
    preemptible: bool = True
    reclaim_s: float | None = None  # None: as the rules say
    restore_s: float | None = None
    quick_s: float = 0.0
    typical_s: float = NEVER
    speed_power: float = 1.0


@dataclass(slots=True)
class Machine:
    """Events must come in order of time; one that is earlier is taken at the latest time seen, and counted."""

    state: State
    rules: Rules
    tenants: list[str]
    borrows: list[bool]
    jobs: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    classes: dict[int, int] = field(default_factory=dict)
    clock_repairs: int = 0
    ground: Ground = field(default_factory=Pooled)

    @classmethod
    def new(cls, terms: dict[str, Terms], capacity: int, rules: Rules, node_gpus: int = 0) -> "Machine":
        """With `node_gpus`, on nodes of so many GPUs, a power of two; promises are rounded up to whole ones then."""
        if not terms:
            raise UsageError("no tenant", next_step="Give at least one tenant with what it is promised")
        kept = [0 if t.lends is None else max(0, t.entitlement - t.lends) for t in terms.values()]
        shares = [t.entitlement for t in terms.values()]
        ground: Ground = Pooled()
        if node_gpus:
            shares = [-(-share // checked_size(node_gpus)) * node_gpus for share in shares]
            capacity = capacity // node_gpus * node_gpus
            ground = Placed(Nodes.new(node_gpus, shares, capacity, rules.reclaim_s))
        state = new_state(entitlements=shares, kept=kept, capacity=capacity, rules=rules)
        return cls(state, rules, list(terms), [t.borrows for t in terms.values()], ground=ground)

    # Events

    def submit(self, now: float, request: Request) -> None:
        """A job enters its tenant's queue. Raises UsageError for an id that was used, an unknown tenant or no GPUs."""
        if request.id in self.known:
            raise UsageError(f"job {request.id} was submitted before", next_step="Give each attempt an id of its own")
        if request.tenant not in self.tenants or request.gpus <= 0:
            raise UsageError(
                f"job {request.id} asks {request.gpus} GPUs for tenant {request.tenant!r}",
                next_step=f"Known tenants: {', '.join(self.tenants)}",
            )
        j = add_job(self.state, self._job(request), self.classes)
        self.known[request.id] = j
        self.jobs.append(request.id)
        self.ground.submit(self.state, j, self._at(now))

    def start(self, now: float, job: str) -> None:
        """The scheduler has started a queued job of its own accord; afterwards `tick` may call it back."""
        j, at = self._index(job), self._at(now)
        if self.state.jobs[j].state == QUEUED:
            self.ground.start(self.state, j, at)

    def progress(self, now: float, job: str, service_s: float) -> None:
        """What a running job has really done, where that is known better than by the time it ran."""
        j, at = self._index(job), self._at(now)
        if self.state.jobs[j].state != RUNNING:
            return
        self.state.jobs[j].service, self.state.jobs[j].since = service_s, at
        if self.state.jobs[j].shadow_start < NEVER:
            self.ground.progressed(self.state, j, at)

    def end(self, now: float, job: str) -> None:
        """It is over and its slots are free. Of a job that was over before, nothing."""
        j, at = self._index(job), self._at(now)
        if self.state.jobs[j].state < DONE:
            self.ground.end(self.state, j, at)

    def cancel(self, now: float, job: str) -> None:
        """Withdrawn: queued or running, it goes now. Of a job that was over before, nothing."""
        j, at = self._index(job), self._at(now)
        if self.state.jobs[j].state < DONE:
            self.ground.cancel(self.state, j, at)

    def capacity(self, now: float, gpus: int) -> None:
        """So many slots from now on; if fewer, they go as they fall free."""
        self._at(now)
        self.ground.set_capacity(self.state, gpus)

    def forecast(self, job: str, *, quick_s: float, typical_s: float) -> None:
        """A new forecast of the job's duration; it counts from the job's next turn on."""
        record = self.state.jobs[self._index(job)]
        record.quick_s, record.typical_s = quick_s, typical_s

    def hold_back(self, gpus: int) -> None:
        """Idle slots that are not lent, from the next `tick` on."""
        self.state.pool[0].hold = gpus

    def tick(self, now: float) -> list[Decision]:
        """All decisions for this instant; call it after the events of the instant, and at `wake` at the latest."""
        at = self._at(now)
        self.ground.decide(self.state, at)
        log = zip(self.state.log_job, self.state.log_kind, strict=True)
        logged = [entry for entry, _ in zip(log, range(self.state.pool[0].logged), strict=False)]
        self.state.pool[0].logged = 0
        return [self._decision(j, kind, at) for j, kind in logged]

    @property
    def wake(self) -> float:
        """When something is due without an event from outside; infinite if nothing is."""
        return next_wake(self.state)

    # What it knows

    def lag_s(self, job: str) -> float:
        """Behind its static schedule; negative: ahead. A job that is not owed yet is ahead by what it has done."""
        j, now = self._index(job), self.state.pool[0].now
        if self.state.jobs[j].shadow_start == NEVER:
            return -service_of(self.state, j, now)
        return lag_of(self.state, j, now)

    def overdue(self, now: float) -> list[str]:
        """Jobs that were called back and whose reclaim time is over, though they have not ended: report them."""
        late = []
        for name, j in self.known.items():
            job = self.state.jobs[j]
            if job.held > 0 and job.state not in (RUNNING, DONE, CANCELLED) and job.drained_at < now:
                late.append(name)
        return late

    def explain(self, job: str) -> str:
        """One line: state, since when it is owed, lag and slots."""
        j = self._index(job)
        record = self.state.jobs[j]
        names = ("queued", "running", "draining", "resizing", "done", "cancelled")
        owed = "not owed yet" if record.shadow_start == NEVER else f"owed since {record.shadow_start:.0f} s"
        return (
            f"{job}: {names[record.state]}, {owed}, lag {self.lag_s(job):.0f} s, "
            f"{record.held} of {record.gpus} GPUs, called back {record.preempted} times"
        )

    # Saving

    def dumps(self) -> bytes:
        """Everything, as JSON; times that are not known yet become null."""
        nodes, state = self.ground.saved(), self.state._asdict()
        document = {
            "format_version": FORMAT if nodes is None else FORMAT_ON_NODES,
            "state": state | {name: turned(kind, state[name]) for name, kind in _RECORDS.items()},
            "rules": self.rules,
            "tenants": self.tenants,
            "borrows": self.borrows,
            "jobs": self.jobs,
            "classes": sorted(self.classes.items()),
            "clock_repairs": self.clock_repairs,
        } | ({} if nodes is None else {"nodes": nodes})
        return msgspec.json.encode(document)

    @classmethod
    def loads(cls, text: bytes) -> "Machine":
        """What `dumps` gave. Raises StateError for what is damaged or newer."""
        try:
            document = msgspec.json.decode(text)
            if document["format_version"] not in (FORMAT, FORMAT_ON_NODES, *_OLDER):
                raise StateError(
                    f"allocator state of format {document['format_version']}", next_step="Use a newer broker"
                )
            return cls._restore(document)
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise StateError(f"damaged allocator state: {error}", next_step="Start from the queue again") from error

    @classmethod
    def _restore(cls, document: dict[str, Any]) -> "Machine":
        saved, given = document["state"], document["rules"]
        rules = Rules(**{**given, "off": frozenset(given["off"])})
        columns: dict[str, list[Any]] = {"rungs": [0] * RUNGS, "horizons": []}
        columns.update((name, saved[name]) for name in State._fields if name in saved)
        columns.update((name, restored(kind, columns[name])) for name, kind in _RECORDS.items())
        columns["horizons"] = columns["horizons"] or horizons(rules)
        return cls(
            state=State(**columns),
            rules=rules,
            tenants=document["tenants"],
            borrows=document["borrows"],
            jobs=document["jobs"],
            known={name: j for j, name in enumerate(document["jobs"])},
            classes=dict(document["classes"]),
            clock_repairs=document["clock_repairs"],
            ground=Placed.restore(document["nodes"]) if "nodes" in document else Pooled(),
        )

    # Parts

    def _at(self, now: float) -> float:
        pool = self.state.pool[0]
        if not now >= pool.now:
            self.clock_repairs += 1
            now = pool.now
        logged = pool.logged
        begin(self.state, now)
        pool.logged = logged
        return now

    def _index(self, job: str) -> int:
        if job not in self.known:
            raise UsageError(f"job {job} is not known", next_step="Submit it first")
        return self.known[job]

    def _job(self, request: Request) -> Job:
        tenant = self.tenants.index(request.tenant)
        reclaim_s = self.rules.reclaim_s if request.reclaim_s is None else request.reclaim_s
        may_borrow = request.preemptible and self.borrows[tenant] and reclaim_s <= self.rules.reclaim_s
        firm = self.borrows[tenant] and not request.preemptible
        return Job(
            tenant=tenant,
            gpus=request.gpus,
            most=max(request.most, request.gpus) if may_borrow else request.gpus,
            lendable=int(may_borrow),
            firm=int(firm),
            reclaim_s=reclaim_s,
            restore_s=self.rules.restore_s if request.restore_s is None else request.restore_s,
            quick_s=request.quick_s,
            typical_s=request.typical_s,
            speed_power=request.speed_power,
        )

    def _decision(self, j: int, kind: int, now: float) -> Decision:
        job = self.state.jobs[j]
        return Decision(
            job=self.jobs[j],
            tenant=self.tenants[job.tenant],
            kind=_KINDS[kind],
            gpus=job.held,
            lag_s=self.lag_s(self.jobs[j]),
            reason=self._reason(job, _KINDS[kind], now),
            cells=self.ground.cells_of(j),
        )

    def _reason(self, job: Job, kind: Kind, now: float) -> str:
        pool, tenant = self.state.pool[0], self.state.tenants[job.tenant]
        free = pool.capacity - pool.busy
        match kind:
            case Kind.GRANT | Kind.RESTART:
                return (
                    f"owed: in {tenant.entitlement} GPUs of its own it would have started "
                    f"{now - job.shadow_start:.0f} s ago"
                )
            case Kind.LOAN:
                own = self.tenants[job.tenant]
                how = "runs early, cannot be called back" if job.firm else "runs early"
                return f"{how}: {own} uses {tenant.granted} of {tenant.entitlement}; {free} GPUs free after it"
            case Kind.RECLAIM | Kind.SHRINK:
                return f"{pool.unmet} GPUs are claimed and not held, {pool.hold} held back, {free} free"
            case Kind.EXPAND:
                return f"nobody waits for these GPUs: {job.held} instead of {job.gpus}"
        return f"checkpoint written, goes on with {job.held} GPUs"
