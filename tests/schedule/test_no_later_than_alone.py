"""With a scheduler that obeys, no job ends later than alone in its tenant's share, plus a reclaim and an interval."""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.schedule.step import begin, look
from tests.schedule.cluster import SETTINGS, START, Cluster, Work, policy, seen, tenant

STEP_S = 20.0
RECLAIM_S = SETTINGS.reclaim.total_seconds()
SHARES = {"open": 8, "closed": 4, "proud": 4}
QUIET_S = 3700.0
"""Before this nothing is submitted, so that lending has begun."""


@dataclass
class Alone:
    """Each tenant in its own share, first come first served, in steps."""

    waiting: list[Work] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    def step(self, now: float, works: dict[str, Work]) -> None:
        for name, end in list(self.running.items()):
            if end <= now:
                self.ends[name] = end
                del self.running[name]
        for owner, share in SHARES.items():
            used = sum(works[name].gpus for name in self.running if works[name].tenant == owner)
            for work in [work for work in self.waiting if work.tenant == owner]:
                if used + work.gpus > share:
                    break
                used += work.gpus
                self.running[work.name] = now + work.work
                self.waiting.remove(work)

    def cancel(self, work: Work) -> None:
        self.waiting = [other for other in self.waiting if other is not work]
        self.running.pop(work.name, None)
        self.ends.pop(work.name, None)


class Played(NamedTuple):
    """Seconds by which each job ended later than alone (negative: earlier), and how many orders there were."""

    late: list[float]
    loans: int
    reclaims: int


def play(seed: int) -> Played:
    rng = random.Random(seed)
    rules = policy(*(tenant(name, gpus) for name, gpus in SHARES.items()))
    cluster, alone, memory = Obedient(rng, 16), Alone(), begin(START)
    works: dict[str, Work] = {}
    ends: dict[str, float] = {}
    now, loans, reclaims = 0.0, 0, 0
    while now < 2 * QUIET_S or len(ends) < len(works) or len(alone.ends) < len(works):
        cluster.pass_time(now, STEP_S)
        there = {work.name for work in cluster.works}
        ends |= {name: now for name in works if name not in there and name not in ends}
        if QUIET_S < now < 2 * QUIET_S and rng.random() < 0.25:
            work = submitted(rng, f"j{len(works)}", now)
            works[work.name] = work
            cluster.add(work)
            alone.waiting.append(work)
        alone.step(now, works)
        (found,) = look(memory, seen(now, *cluster.queue()), rules, SETTINGS).pools
        loans += sum(order.new for order in found.loans)
        reclaims += sum(order.new for order in found.reclaims)
        cluster.follow(found, now)
        now += STEP_S
    return Played([ends[name] - alone.ends[name] for name in works], loans, reclaims)


def submitted(rng: random.Random, name: str, now: float) -> Work:
    owner = rng.choice(list(SHARES))
    gpus = rng.choice([size for size in (1, 2, 4, 8) if size <= SHARES[owner]])
    return Work(name, owner, gpus, now, STEP_S * rng.choice([1, 5, 20, 60]))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9))
def test_no_job_is_later_than_alone_plus_a_reclaim_and_an_interval(seed: int) -> None:
    assert max(play(seed).late, default=0.0) <= RECLAIM_S + STEP_S


def test_the_play_lends_calls_back_and_gains() -> None:
    played = [play(seed) for seed in range(5)]
    assert sum(each.loans for each in played) > 50
    assert sum(each.reclaims for each in played) > 10
    late = [late for each in played for late in each.late]
    assert sum(late) / len(late) < -RECLAIM_S, "on average jobs are well ahead"
    assert max(late) > 0, "some have waited for a reclaim"


class Obedient(Cluster):
    """Starts at once; stops within the reclaim time."""

    def __init__(self, rng: random.Random, slots: int) -> None:
        super().__init__(rng, slots, lazy=-1.0)

    def stop_after(self) -> float:
        return self.rng.choice([STEP_S, 3 * STEP_S, RECLAIM_S])
