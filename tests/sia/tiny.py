"""Tiny random pools in whole seconds, played to the end, and the static schedule read off its definition."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.backtest.replay import Course, Position, World, next_instant, replay_until
from broker.sia.columns import CANCELLED, NEVER, Job, State
from broker.sia.heap import Node
from broker.sia.state import Rules, add_job, new_state

WORKS = (1, 1, 2, 3, 5, 8, 13, 20)
ODD_FORECASTS = (0.0, 1.0, 1e300, float("nan"), float("inf"), -5.0)
FORECASTS = ("zero", "huge", "inverted", "random", "nan", "changing")


@dataclass
class Instance:
    entitlements: list[int]
    jobs: list[Job]
    plan: list[Course]
    capacity: list[tuple[float, int]]  # first at time 0
    rules: Rules
    kept: list[int] = field(default_factory=list)


EXTRAS = ("elastic", "cancels", "moves", "firm", "keeps", "shy", "slow", "large")


def draw_extras(rng: random.Random) -> list[str]:
    return [name for name in EXTRAS if rng.randint(0, 1)]


def draw(rng: random.Random, extras: Iterable[str] = (), off: Iterable[int] = ()) -> Instance:
    """As `extras` say, with elastic jobs, cancellations, moving capacity, firm loans, tenants that do not lend all of
    theirs, jobs that do not borrow, some of them as calling them back takes too long, and jobs that are larger than
    their tenant's entitlement. Rules in `off` are off."""
    elastic, cancels, moves, firm, *others = (name in extras for name in EXTRAS)
    entitlements = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    reclaim, restore = rng.randint(0, 6), rng.randint(0, 9)
    span = rng.choice((6, 12, 30))
    submits = sorted(rng.randint(0, span) for _ in range(rng.randint(3, 14)))
    jobs, plan = [], []
    for submit in submits:
        tenant = rng.randrange(len(entitlements))
        jobs.append(_job(rng, tenant, entitlements[tenant], reclaim, restore, elastic))
        cancelled = cancels and rng.randint(0, 2) == 0
        plan.append(
            Course(
                submit=float(submit),
                duration=float(rng.choice(WORKS)),
                cancel_at=float(submit + rng.randint(1, 20)) if cancelled else NEVER,
            )
        )
    total = sum(entitlements)
    capacity = [(0.0, rng.choice((total, rng.randint(max(entitlements), total))))]
    for _ in range(rng.randint(0, 4) if moves else 0):
        capacity.append((capacity[-1][0] + rng.randint(1, 20), rng.randint(max(entitlements), total + 2)))
    rules = Rules(
        reclaim_s=float(reclaim),
        restore_s=float(restore),
        off=frozenset(off),
        latest_first=rng.randint(0, 2) == 0,
        most_preemptions=rng.choice((3, 1000)),
        firm_share=rng.choice((0.05, 0.5)) if firm else 0.0,
    )
    for job in jobs if firm else ():
        if rng.randint(0, 1):
            job.lendable, job.firm, job.most = 0, 1, job.gpus
    instance = Instance(entitlements, jobs, plan, capacity, rules)
    _vary(rng, instance, *others)
    return instance


def _vary(rng: random.Random, instance: Instance, keeps: bool, shy: bool, slow: bool, large: bool) -> None:
    instance.kept = [rng.randint(0, share) for share in instance.entitlements] if keeps else []
    for job in instance.jobs:
        if shy and rng.randint(0, 2) == 0:
            job.lendable, job.firm, job.most = 0, 0, job.gpus
        if slow and rng.randint(0, 2) == 0:
            job.lendable, job.firm, job.most = 0, 0, job.gpus
            job.reclaim_s = instance.rules.reclaim_s + rng.randint(1, 10)
        if large and rng.randint(0, 4) == 0:
            job.gpus += instance.entitlements[job.tenant]
            job.most = job.gpus


def _job(rng: random.Random, tenant: int, share: int, reclaim: int, restore: int, elastic: bool) -> Job:
    gpus = rng.randint(1, share)
    return Job(
        tenant=tenant,
        gpus=gpus,
        most=gpus * rng.choice((1, 2, 4)) if elastic else gpus,
        speed_power=0.8,
        reclaim_s=float(rng.choice((reclaim, reclaim, rng.randint(0, reclaim)))),
        restore_s=float(restore),
    )


def build(instance: Instance) -> tuple[State, World]:
    state = new_state(
        entitlements=instance.entitlements,
        kept=instance.kept,
        capacity=instance.capacity[0][1],
        rules=instance.rules,
    )
    classes: dict[int, int] = {}
    for job in instance.jobs:
        add_job(state, job, classes)
    later = instance.capacity[1:]
    world = World(
        plan=instance.plan,
        finish=[Node() for _ in instance.jobs],
        capacity_at=[at for at, _ in later] or [0.0],
        capacity=[gpus for _, gpus in later] or [0],
        raises=[0] * max(1, len(later)),
        position=[Position(capacities_known=len(later))],
    )
    return state, world


def forecast_nonsense(state: State, rng: random.Random) -> None:
    """Another forecast at every call, of any value."""
    for job in state.jobs:
        job.typical_s = rng.choice(ODD_FORECASTS)
        job.quick_s = rng.choice(ODD_FORECASTS)
    mislead(state, rng)


def mislead(state: State, rng: random.Random) -> None:
    """Any hold-back, and claims that are thought not to rise."""
    state.pool[0].hold = rng.choice((0, 0, 1, 3))
    for horizon in state.horizons:
        horizon.rise = rng.choice((horizon.rise, 0.0))


@dataclass
class Adversary:
    """Forecasts of one `kind` of FORECASTS; all but those that change keep to what they said of a job at first."""

    rng: random.Random
    kind: str
    said: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def against(cls, rng: random.Random | None, kind: str) -> "Adversary | None":
        """Of any kind, unless one is named; None: nothing is forecast."""
        return None if rng is None else cls(rng, kind or rng.choice(FORECASTS))

    def forecast(self, state: State, plan: list[Course]) -> None:
        if self.kind == "changing":
            forecast_nonsense(state, self.rng)
            return
        self.said = self.said or [self._of(course.duration) for course in plan]
        for job, (quick, typical) in zip(state.jobs, self.said, strict=True):
            job.quick_s, job.typical_s = quick, typical
        mislead(state, self.rng)

    def _of(self, duration: float) -> tuple[float, float]:
        """Inverted: what is long is said to be short, and the lower quantile is the larger."""
        return {
            "zero": (0.0, 0.0),
            "huge": (1e300, 1e300),
            "inverted": (2.0 * max(WORKS) / duration, max(WORKS) / duration),
            "random": (self.rng.random() * 30.0, self.rng.random() * 30.0),
            "nan": (float("nan"), float("nan")),
        }[self.kind]


def play(instance: Instance, rng: random.Random | None = None, kind: str = "") -> tuple[State, World, int]:
    """Also the largest shortfall of capacity below the claims. With `rng`, forecasts are adversarial."""
    state, world = build(instance)
    adversary = Adversary.against(rng, kind)
    short = 0
    now = next_instant(state, world)
    while now < NEVER:
        if adversary is not None:
            adversary.forecast(state, world.plan)
        now = replay_until(state, world, now)
        short = max(short, state.pool[0].short)
    return state, world, short


def static_ends(instance: Instance, state: State) -> list[float]:
    """Ends under STATIC. A job that was really cancelled leaves STATIC at that time, waiting or running.

    Of one that is larger than its tenant's entitlement nothing is promised, and it is in nobody's way.
    """
    ends = [NEVER] * len(instance.jobs)
    for tenant, share in enumerate(instance.entitlements):
        running: list[tuple[float, int]] = []
        turn = 0.0
        for j, (job, course) in enumerate(zip(instance.jobs, instance.plan, strict=True)):
            if job.tenant != tenant or job.gpus > share:
                continue
            leaves = course.cancel_at if state.jobs[j].state == CANCELLED else NEVER
            start = _first_fit(running, job.gpus, share, max(course.submit, turn))
            turn = max(turn, min(start, leaves))
            ends[j] = leaves
            if start < leaves:
                ends[j] = min(start + course.duration, leaves)
                running.append((ends[j], job.gpus))
    return ends


def _first_fit(running: list[tuple[float, int]], gpus: int, share: int, start: float) -> float:
    while sum(held for end, held in running if end > start) + gpus > share:
        start = min(end for end, _ in running if end > start)
    return start


def largest_excess(instance: Instance, rng: random.Random | None = None, kind: str = "") -> float | None:
    """Largest end - (STATIC end + reclaim time); None where capacity did not always cover the claims."""
    state, world, short = play(instance, rng, kind)
    if short:
        return None
    return latest(world, static_ends(instance, state)) - instance.rules.reclaim_s


def latest(world: World, static: list[float]) -> float:
    """By how much the job that is latest beside STATIC is late, of those that are promised anything."""
    return max((course.end - end for course, end in zip(world.plan, static, strict=True) if end < NEVER), default=0.0)
