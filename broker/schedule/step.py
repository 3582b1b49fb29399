"""One look at the queue: memory and what is seen in, grants, loans and reclaims out. Pure but for the memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from broker.config import ScheduleSettings
from broker.model.job import Job, JobState
from broker.model.policy import Policy, Pool
from broker.model.reservation import Reservation
from broker.model.snapshot import EntitlementView, SourceView, Trust
from broker.purchase.pools import Asks, asks, pool_of
from broker.purchase.queue_demand import live_jobs
from broker.purchase.trust import feeds, outdated
from broker.schedule import answer
from broker.schedule.elastic import RESIZES
from broker.schedule.feed import Feed
from broker.schedule.foretold import Experts, HourOver
from broker.schedule.memory import Memory, Order, PoolMemory
from broker.schedule.orders import PoolSchedule, Schedule
from broker.schedule.places import racks_of, with_places
from broker.schedule.promises import Slots, slots_of, terms_of
from broker.sia import columns, following
from broker.sia.firm import shut_off
from broker.sia.forgetting import crosses, forget
from broker.sia.holdback import HoldBack, figures
from broker.sia.machine import Kind, Machine, Terms
from broker.sia.state import Rules

HOUR_S = 3600.0
FORGET_FROM = 1000
"""Finished jobs that are kept at least before those that nothing can reach are let go."""
_PRESENT = frozenset({JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The world at one look. `reservations` are as the last run of the broker saw them, at `held_at`. What
    `entitlements` promise is in the policy already; a pool of which they are not known is not decided.
    """

    now: datetime
    sources: tuple[SourceView, ...]
    reservations: tuple[Reservation, ...] = ()
    held_at: datetime | None = None
    entitlements: tuple[EntitlementView, ...] = ()


def begin(now: datetime, *, taught: bool = False) -> Memory:
    """`taught`: as if an hour in which nobody wanted anything had been watched, so that lending begins at once."""
    return Memory(since=now, at=now, taught=taught)


def begin_again(now: datetime, before: Memory) -> Memory:
    """All is forgotten but what each live job is promised: of one that runs on more than that no queue tells it."""
    return Memory(since=now, at=now, promised=before.promises())


def look(
    memory: Memory,
    seen: Seen,
    policy: Policy,
    settings: ScheduleSettings,
    pools: Sequence[str] = (),
    experts: Experts = Experts(),  # noqa: B008 - it never changes
) -> Schedule:
    """Decides for every pool, or those named, whose queue is known. The memory is brought up to this look. The experts
    say how long jobs that have come will run, and what owed starts will want.

    A clock that has gone back stands still: no time passes until it has caught up.
    """
    notes = (
        () if seen.now >= memory.at else (f"the clock went back from {memory.at:%Y-%m-%d %H:%M:%S}: it stands still",)
    )
    now = max(seen.now, memory.at)
    jobs = _by_pool(live_jobs(seen.sources), policy)
    over = _over(seen.sources)
    found = []
    for pool in policy.pools:
        if pools and pool.name not in pools:
            continue
        doubt = _doubt(pool, seen, policy, now)
        if doubt:
            found.append(PoolSchedule(pool=pool.name, undecided=doubt))
        else:
            slots = slots_of(pool, policy, seen.reservations, now)
            pool_look = _PoolLook(memory, pool, policy, settings, now, experts)
            made = pool_look.schedule(jobs[pool.name], over, slots, seen.held_at)
            made = with_places(made, racks_of(pool, policy, seen.reservations, now), jobs[pool.name])
            found.append(msgspec.structs.replace(made, notes=(*made.notes, *_empty_promises(pool, seen))))
    memory.at = now
    return Schedule(now=now, since=memory.since, pools=tuple(found), notes=notes)


def _by_pool(live: Mapping[tuple[str, str], Job], policy: Policy) -> dict[str, dict[str, Job]]:
    found: dict[str, dict[str, Job]] = {pool.name: {} for pool in policy.pools}
    pools: dict[Asks, Pool | None] = {}
    for key, job in live.items():
        what = asks(job)
        pool = pools[what] if what in pools else pools.setdefault(what, pool_of(job, policy.pools))
        if pool is not None and job.gpus > 0:
            found[pool.name]["/".join(key)] = job
    return found


def _over(sources: tuple[SourceView, ...]) -> dict[str, Job]:
    """Jobs whose end a source tells."""
    return {
        f"{job.cluster or source.source}/{job.id}": job
        for source in sources
        for job in source.jobs
        if not job.state.live
    }


def _doubt(pool: Pool, seen: Seen, policy: Policy, now: datetime) -> str:
    """Unknown is not empty: no job is taken to have ended, and no slot to be free, because a queue was not read; and
    nobody to be promised nothing because what is promised was not.
    """
    unread = next((view for view in seen.entitlements if view.pool == pool.name and view.problem), None)
    if unread:
        return unread.problem
    sources = [source for source in seen.sources if feeds(source, (pool,))]
    if not sources:
        return "no job source tells what this pool needs"
    limit = policy.guards.max_data_age
    for source in sources:
        if source.trust is not Trust.COMPLETE:
            return f"job source {source.source} is {source.trust}: what it holds is not known"
        if source.as_of is not None and outdated(source.as_of, now, limit):
            return f"job source {source.source} is of {source.as_of:%Y-%m-%d %H:%M} UTC, too old to decide on"
    return ""


def _empty_promises(pool: Pool, seen: Seen) -> tuple[str, ...]:
    """A source that was read and holds nothing for the pool is more often a mistake than meant."""
    empty = [view.source for view in seen.entitlements if view.pool == pool.name and not view.gpus]
    return tuple(f"entitlements in {source} promise nobody anything here" for source in empty)


class _PoolLook:
    def __init__(
        self,
        memory: Memory,
        pool: Pool,
        policy: Policy,
        settings: ScheduleSettings,
        now: datetime,
        experts: Experts,
    ) -> None:
        self._experts = experts
        self._promised: dict[str, int] = {}
        self._memory = memory
        self._pool = pool
        self._policy = policy
        self._settings = settings
        self._now = (now - memory.since).total_seconds()
        self._last = (memory.at - memory.since).total_seconds()

    def schedule(
        self, jobs: dict[str, Job], over: Mapping[str, Job], slots: tuple[Slots, ...], held_at: datetime | None
    ) -> PoolSchedule:
        capacity = sum(each.gpus for each in slots)
        here = self._ready(jobs)
        terms = terms_of(self._pool, self._policy, capacity, (job.tenant for job in here.values()))
        memory, first = self._remembered(terms, capacity)
        if not first and self._upset(memory.machine, terms):
            memory, first = self._again(memory, terms, capacity), True
        self._promises(memory.machine, terms)
        memory.machine.state.pool[0].firm_share = self._settings.firm_misses
        self._hold_back(memory, capacity)
        span = (self._now if first else self._last, self._now)
        promised = {**self._memory.promised, **self._promised} if first else {}
        feed = Feed(memory, self._settings, self._seconds, span, self._experts.durations, promised)
        if first:
            feed.recall(job for job in over.values() if pool_of(job, self._policy.pools) is self._pool)
        feed.tell(here, over)
        memory.machine.capacity(self._now, capacity)
        fresh = self._decide(memory)
        if len(memory.machine.jobs) > FORGET_FROM + 2 * len(memory.known):
            forget(memory.machine)
        stage = answer.Stage(self._pool.name, slots, memory, here, self._settings, self._memory.since, self._now)
        return answer.schedule(stage, fresh, self._notes(memory, terms, slots, held_at, first=first))

    def _seconds(self, at: datetime) -> float:
        return (at - self._memory.since).total_seconds()

    def _ready(self, jobs: dict[str, Job]) -> dict[str, Job]:
        """Those that hold slots, that could start now, or of which it is not clear and which were here before."""
        known = self._memory.pools[self._pool.name].known if self._pool.name in self._memory.pools else {}
        now = self._memory.since + timedelta(seconds=self._now)
        waited_for = {f"{key.rpartition('/')[0]}/{job.id}" for key, job in jobs.items()}
        found = {}
        for key, job in jobs.items():
            if (job.state is JobState.UNKNOWN and key in known) or self._may_run(key, job, now, waited_for):
                found[key] = job
        return found

    def _may_run(self, key: str, job: Job, now: datetime, waited_for: set[str]) -> bool:
        if job.state is JobState.HELD:
            return self._settings.held_jobs_wait
        if job.state is not JobState.PENDING:
            return job.state in _PRESENT
        cluster = key.rpartition("/")[0]
        begins = max((at for at in (job.eligible, job.not_before) if at is not None), default=now)
        return begins <= now and not any(f"{cluster}/{before}" in waited_for for before in job.depends_on)

    def _remembered(self, terms: dict[str, Terms], capacity: int) -> tuple[PoolMemory, bool]:
        """The pool's memory, and whether this is the first look at it."""
        known = self._memory.pools.get(self._pool.name)
        if known is not None:
            return known, False
        rules = Rules(
            reclaim_s=self._settings.reclaim.total_seconds(), restore_s=self._settings.restore.total_seconds()
        )
        machine = Machine.new(terms, capacity, rules)
        machine.state.pool[0].now = self._now
        hold = HoldBack(capacity=capacity, windows=max(1, round(HOUR_S / max(rules.reclaim_s, 1.0))))
        if self._memory.taught:
            hold.history.append({0: hold.windows})
        made = PoolMemory(machine=machine, hold=hold, hour=int(self._now // HOUR_S))
        self._memory.pools[self._pool.name] = made
        return made, True

    def _upset(self, machine: Machine, terms: dict[str, Terms]) -> bool:
        """Whether promises have changed so that jobs fit into the static schedule which did not, or no longer do."""
        shares = {name: terms[name].entitlement if name in terms else 0 for name in (*terms, *machine.tenants)}
        changed = {
            name: share
            for name, share in shares.items()
            if name in machine.tenants and machine.state.tenants[machine.tenants.index(name)].entitlement != share
        }
        if changed:
            forget(machine)
        return any(crosses(machine, name, share) for name, share in changed.items())

    def _again(self, memory: PoolMemory, terms: dict[str, Terms], capacity: int) -> PoolMemory:
        """The static schedule begins anew from the queue as it is; what was learned of jobs and hours stays."""
        del self._memory.pools[self._pool.name]
        made, _ = self._remembered(terms, capacity)
        made.habits, made.hold = memory.habits, memory.hold
        self._promised = {key: known.gpus for key, known in memory.known.items()}
        following.keep_firm_record(made.machine, memory.machine)
        return made

    def _promises(self, machine: Machine, terms: dict[str, Terms]) -> None:
        """A tenant that is no longer named is promised nothing."""
        for name in (*terms, *(name for name in machine.tenants if name not in terms)):
            following.promise(machine, name, terms.get(name, Terms(entitlement=0)))

    def _hold_back(self, memory: PoolMemory, capacity: int) -> None:
        """Learned once an hour, from what the hour wanted."""
        pool, hour = memory.machine.state.pool[0], int(self._now // HOUR_S)
        hold = memory.hold
        hold.capacity = capacity
        if hour > memory.hour:
            wanted = {gpus: count for gpus, count in enumerate(memory.machine.state.wanted) if count}
            for gpus in wanted:
                memory.machine.state.wanted[gpus] = 0
            hold.learn(wanted, pool.sensitive - memory.starts, pool.missed - memory.misses)
            memory.hour, memory.starts, memory.misses = hour, pool.sensitive, pool.missed
            over = self._hour_over(hold, pool, max(wanted, default=0))
            memory.machine.hold_back(hold.hold(self._experts.starts(over)))

    def _hour_over(self, hold: HoldBack, pool: columns.Pool, wanted: int) -> HourOver:
        """What an expert from outside is told."""
        return HourOver(
            pool=self._pool.name,
            wanted=float(wanted),
            known=figures(pool.claimed, pool.demand, pool.busy, pool.owed_all),
            hour=int((self._memory.since + timedelta(seconds=self._now)).timestamp() // HOUR_S),
            alpha=hold.alpha,
            windows=hold.windows,
        )

    def _decide(self, memory: PoolMemory) -> frozenset[str]:
        """Orders that are new, by job."""
        names = {known.name: key for key, known in memory.known.items()}
        fresh = set()
        for decision in memory.machine.tick(self._now):
            key = names.get(decision.job)
            if key is None or decision.kind is Kind.RESUME:
                continue
            known = memory.known[key]
            if decision.kind.value in RESIZES and known.began is None:
                continue  # it was not seen to start yet: then it is to start on so many
            afresh = decision.kind is Kind.SHRINK and following.runs(memory.machine, known.name)
            kind = Kind.RESTART if afresh else decision.kind
            known.order = Order(kind=kind.value, at=self._now, reason=decision.reason)
            if kind is Kind.RESTART:
                known.done = known.service = 0.0
            fresh.add(key)
        return frozenset(fresh)

    def _notes(
        self,
        memory: PoolMemory,
        terms: dict[str, Terms],
        slots: tuple[Slots, ...],
        held_at: datetime | None,
        *,
        first: bool,
    ) -> tuple[str, ...]:
        capacity, promised = sum(each.gpus for each in slots), sum(each.entitlement for each in terms.values())
        notes = []
        if first:
            notes.append("the static schedule begins at this look: lags are counted from now")
        if not memory.hold.history:
            notes.append("nothing is lent until an hour has been watched")
        if not slots:
            notes.append("no slots are known: no own nodes are configured and the state holds no active reservation")
        pool = memory.machine.state.pool[0]
        if pool.firm_share and shut_off(memory.machine.state):
            notes.append(
                "nothing is lent any more to jobs that cannot be called back: "
                f"{pool.firm_missed} of {pool.firm_judged} such loans were in the way"
            )
        busy = sum(known.gpus for known in memory.known.values() if known.began is not None)
        if busy > capacity:
            notes.append(f"jobs run on {busy} GPUs, {capacity} are known: name nodes of your own in [[pool.own]]")
        if promised > capacity:
            notes.append(f"{promised} GPUs are promised and {capacity} are there: the bound holds only up to that")
        limit = self._policy.guards.max_data_age
        now = self._memory.since + timedelta(seconds=self._now)
        from_ledger = len(slots) > len(self._pool.own)
        if from_ledger and (held_at is None or outdated(held_at, now, limit)):
            seen = f"{held_at:%Y-%m-%d %H:%M} UTC" if held_at else "an unknown time"
            notes.append(f"reservations are as a run saw them at {seen}; broker run looks again")
        return tuple(notes)
