"""The queue as it is seen, told to the allocator as events: who came, who runs, who stopped, who is gone."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial

from broker.config import ScheduleSettings
from broker.model.job import Job, JobState
from broker.schedule import elastic, habits
from broker.schedule.foretold import Foretell, Foretold
from broker.schedule.memory import Habit, Known, PoolMemory
from broker.schedule.promises import EVERYBODY
from broker.sia import following
from broker.sia.columns import NEVER
from broker.sia.machine import Request

_HOLDS = frozenset({JobState.RUNNING, JobState.SUSPENDED})
_ENDED_BY_ITSELF = frozenset({JobState.DONE, JobState.GONE})
_A_MOMENT = 1.0


HOME = "its tenant does not borrow"
LATE = "its class gave back late"
UNSTOPPABLE = "it cannot be called back, as the queue tells it"
"""Why a job may not borrow."""


class Feed:
    """One look at one pool. Times in seconds since the first look; `span` is from the look before until now.

    Nothing is lent before an hour has taught how much to hold back. `promised` are GPUs of jobs that run, from before
    the static schedule began anew.
    """

    def __init__(
        self,
        memory: PoolMemory,
        settings: ScheduleSettings,
        seconds: Callable[[datetime], float],
        span: tuple[float, float],
        foretell: Foretell,
        promised: Mapping[str, int],
    ) -> None:
        self._memory = memory
        self._machine = memory.machine
        self._settings = settings
        self._seconds = seconds
        self._last, self._now = span
        self._lending = bool(memory.hold.history)
        self._foretell = foretell
        self._promised = promised
        self._foretold: dict[str, Foretold | None] = {}

    def tell(self, jobs: Mapping[str, Job], over: Mapping[str, Job]) -> None:
        """`jobs` want or hold slots; `over` are those whose end is told. Doubtful ones are in neither, and are kept."""
        events = [
            (self._end_time(key, over), 0, key, partial(self._end, key, over.get(key))) for key in self._gone(jobs)
        ]
        fresh = [key for key in jobs if key not in self._memory.known]
        self._foretold = dict(zip(fresh, self._foretell([jobs[key] for key in fresh]), strict=True))
        events += [(*self._turn(jobs[key]), key, partial(self._submit, key, jobs[key])) for key in fresh]
        for _, _, _, happen in sorted(events, key=lambda event: event[:2]):
            happen()
        for key, job in jobs.items():
            if job.state is not JobState.UNKNOWN:
                self._follow(key, self._memory.known[key], job)
        for key, job in jobs.items():
            self._allow(self._memory.known[key], job)

    def recall(self, over: Iterable[Job]) -> None:
        """What a queue tells of finished jobs teaches how long their class runs."""
        for job in sorted((job for job in over if job.start and job.end), key=lambda job: job.submit):
            if job.state is JobState.DONE and job.start and job.end:
                kind = habits.class_of(job)
                run = Known(name="", kind=kind, gpus=job.gpus, run_s=(job.end - job.start).total_seconds())
                habits.note_end(self._memory.habits.setdefault(kind, Habit()), run)

    def _gone(self, jobs: Mapping[str, Job]) -> list[str]:
        return [key for key in self._memory.known if key not in jobs]

    def _end_time(self, key: str, over: Mapping[str, Job]) -> float:
        told = over.get(key)
        return self._within(told.end if told else None)

    def _within(self, at: datetime | None) -> float:
        """What has happened since the last look; now, where the queue does not say when."""
        return self._now if at is None else min(max(self._seconds(at), self._last), self._now)

    def _turn(self, job: Job) -> tuple[float, int]:
        """When it came, what runs before what waits: at the first look that is one instant."""
        return self._within(job.requeued or job.submit), 1 if job.state in _HOLDS else 2

    def _end(self, key: str, told: Job | None) -> None:
        known, at = self._memory.known.pop(key), self._end_time(key, {key: told} if told else {})
        if known.began is not None:
            self._machine.progress(at, known.name, self._done_until(known, known.shown, at, known.began))
            known.run_s += max(0.0, at - known.began)
        if known.order and known.order.kind == "reclaim" and told is not None and told.end is not None:
            habits.note_reclaim(self._habit(known), max(0.0, at - known.order.at))
        if told is not None and told.state is JobState.CANCELLED:
            self._machine.cancel(at, known.name)
            return
        self._machine.end(at, known.name)
        if told is None or told.state in _ENDED_BY_ITSELF:
            habits.note_end(self._habit(known), known)

    def _submit(self, key: str, job: Job) -> None:
        kind = habits.class_of(job)
        habit = self._memory.habits.setdefault(kind, Habit())
        self._memory.names += 1
        name = key if key not in self._machine.known else f"{key}#{self._memory.names}"
        tenant = job.tenant if job.tenant in self._machine.tenants else EVERYBODY
        holds = self._promised.get(key, job.gpus) if job.state in _HOLDS else None
        entitlement = self._machine.state.tenants[self._machine.tenants.index(tenant)].entitlement
        span = elastic.span_of(job, entitlement, self._settings.elastic_power, holds=holds)
        quick, typical = self._duration(key, habit, span.gpus)
        self._memory.known[key] = Known(name=name, kind=kind, gpus=span.gpus, most=span.most)
        request = Request(
            id=name,
            tenant=tenant,
            gpus=span.gpus,
            preemptible=self._can_stop(job),
            reclaim_s=self._reclaim_s(habit, span),
            restore_s=self._restore_s(habit, span),
            quick_s=quick,
            typical_s=NEVER if typical is None else typical,
            speed_power=self._settings.elastic_power,
        )
        self._machine.submit(self._within(job.requeued or job.submit), request)

    def _reclaim_s(self, habit: Habit, span: elastic.Span) -> float:
        """No queue shows for how long a change of size stops a job: as long as a reclaim may take."""
        longest = self._settings.reclaim.total_seconds()
        return longest if span.most else min(habits.reclaim_s(habit, self._settings), longest)

    def _restore_s(self, habit: Habit, span: elastic.Span) -> float:
        measured = habits.restore_s(habit, self._settings)
        return max(measured, self._settings.restore.total_seconds()) if span.most else measured

    def _duration(self, key: str, habit: Habit, gpus: int) -> tuple[float, float | None]:
        """Quick and typical, in seconds: what was learned of the user, else what was seen of the class, else what was
        learned of everybody.
        """
        told, seen = self._foretold.get(key), habits.typical_s(habit, gpus)
        if told is None or (seen is not None and not told.known):
            return habits.quick_s(habit, gpus), seen
        return told.quick_s, told.typical_s

    def _can_stop(self, job: Job) -> bool:
        patterns = self._settings.preemptible_queues
        return job.preemptible or any(fnmatchcase(job.queue or "", pattern) for pattern in patterns)

    def _follow(self, key: str, known: Known, job: Job) -> None:
        """What the allocator thinks of the job is brought in line with what is seen of it."""
        began = self._began(known, job)
        same_run = began is not None and known.began is not None and began <= known.began + _A_MOMENT
        if known.began is not None and not same_run:
            self._stopped(known, job)
        elif following.gives_back(self._machine, known.name):
            if known.most and same_run:
                following.holds_only(self._machine, known.name, job.gpus)
            self._still_holds(key, known) if same_run else self._back(known)
        if began is not None and not following.gives_back(self._machine, known.name):
            self._runs(key, known, job, began)
        elif following.runs(self._machine, known.name):
            self._machine.progress(self._now, known.name, known.done)
        elif following.shrinks(self._machine, known.name):
            following.gives_back_at(self._machine, known.name, self._now)
        known.nodes = job.node_names if began is not None else ()
        known.shown = job.gpus if began is not None else 0

    def _began(self, known: Known, job: Job) -> float | None:
        """The start of the run that is seen; None for a job without slots."""
        if job.state not in _HOLDS:
            return None
        if job.start is None:
            return self._now if known.began is None else known.began
        return min(self._seconds(job.start), self._now)

    def _still_holds(self, key: str, known: Known) -> None:
        """Called back, and not gone: its slots come back later than was thought, those of a change of size apart."""
        record = self._machine.state.jobs[self._machine.known[known.name]]
        if record.drained_at <= self._now:
            following.gives_back_at(self._machine, known.name, self._now + _A_MOMENT)
        ordered = known.order.at if known.order else self._now
        if self._now - ordered > self._settings.reclaim.total_seconds():
            habit = self._habit(known)
            habit.overdue = habit.overdue if key in habit.overdue else [*habit.overdue, key]

    def _stopped(self, known: Known, job: Job) -> None:
        """The run that was seen last is over and the job is not: called back by us, or requeued by somebody else."""
        assert known.began is not None
        at = self._within(job.requeued)
        known.run_s += max(0.0, at - known.began)
        known.began, called = None, following.gives_back(self._machine, known.name)
        if called:
            exact = job.requeued is not None and at > self._last
            known.called_back += 1
            ordered = known.order.at if known.order else self._last
            habits.note_reclaim(self._habit(known), max(0.0, (at if exact else self._last) - ordered))
            self._back(known)
        else:
            known.done = known.service = 0.0
            known.order = None
            following.has_done(self._machine, known.name, 0.0)
            if following.runs(self._machine, known.name):
                self._machine.progress(self._now, known.name, 0.0)

    def _back(self, known: Known) -> None:
        following.gives_back_at(self._machine, known.name, self._now)
        record = self._machine.state.jobs[self._machine.known[known.name]]
        known.done = known.service = 0.0 if following.runs(self._machine, known.name) else record.service
        if known.order and known.order.kind == "reclaim":
            known.order = None

    def _runs(self, key: str, known: Known, job: Job, began: float) -> None:
        """It has slots. One that the allocator did not start was started by the scheduler of its own accord.

        What ran before the first look is not known to be useful, and the static schedule is not known for then either.
        """
        since = known.began
        if known.began is None:
            known.began, known.order = max(began, self._machine_submit(known)), None
        if not following.runs(self._machine, known.name):
            self._machine.start(self._now, known.name)
        if job.state is not JobState.SUSPENDED:
            known.service = self._done_until(known, job.gpus, self._now, known.began, fresh=since is None)
        elif known.most:
            known.service = self._machine.state.jobs[self._machine.known[known.name]].service
        self._machine.progress(self._now, known.name, known.service)
        following.has_done(self._machine, known.name, known.service)
        if known.most and not following.gives_back(self._machine, known.name):
            self._resizes(key, known, job.gpus)

    def _done_until(self, known: Known, shown: int, at: float, began: float, *, fresh: bool = False) -> float:
        """Service, in seconds. A run that is seen first has nothing but the time since it began."""
        if known.most and not fresh:
            return elastic.service_s(self._machine, known, shown, (self._last, at))
        return known.done + max(0.0, at - began)

    def _resizes(self, key: str, known: Known, shown: int) -> None:
        elastic.resize(self._machine, known, shown, self._now)
        if following.shrinks(self._machine, known.name) and shown > following.size(self._machine, known.name):
            self._still_holds(key, known)
        known.order = elastic.order(self._machine, known, shown, self._now)

    def _machine_submit(self, known: Known) -> float:
        return self._machine.state.jobs[self._machine.known[known.name]].submit

    def _allow(self, known: Known, job: Job) -> None:
        tenant = self._machine.state.jobs[self._machine.known[known.name]].tenant
        borrows, stops = self._lending and self._machine.borrows[tenant], self._can_stop(job)
        allowed = borrows and stops and habits.may_borrow(self._memory.habits.get(known.kind), self._settings)
        firm = borrows and not stops and self._settings.firm_misses > 0
        known.stays = "" if allowed or firm else self._why_not(self._machine.borrows[tenant], stops)
        following.may_borrow(self._machine, known.name, allowed=allowed, firm=firm)
        if known.most and self._settings.elastic_power > 0:
            following.may_use(self._machine, known.name, known.most if allowed else known.gpus)

    def _why_not(self, borrows: bool, stops: bool) -> str:
        if not self._lending:
            return "nothing is lent yet"
        if not borrows:
            return HOME
        return LATE if stops else UNSTOPPABLE

    def _habit(self, known: Known) -> Habit:
        return self._memory.habits.setdefault(known.kind, Habit())
