"""Loans to jobs that cannot be called back: whom they may harm, how often they miss, and when they stop."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.sia.columns import NEVER, RUNNING, TINY_S
from broker.sia.firm import FEWEST_ALLOWED
from broker.sia.machine import Kind, Machine, Request, Terms
from broker.sia.state import Rules
from tests.sia.tiny import EXTRAS, draw, largest_excess, play, static_ends

RANDOMS = st.randoms(use_true_random=False)
OTHERS = [name for name in EXTRAS if name != "firm"]


def with_firm(rng: random.Random) -> list[str]:
    return ["firm", *[name for name in OTHERS if rng.randint(0, 1)]]


@settings(max_examples=200)
@given(rng=RANDOMS)
def test_no_job_is_later_where_capacity_without_firm_loans_covers_the_claims(rng: random.Random) -> None:
    excess = largest_excess(draw(rng, with_firm(rng)), rng)
    assert excess is None or excess <= TINY_S


@pytest.mark.deep
@given(rng=RANDOMS)
def test_no_job_is_later_where_capacity_without_firm_loans_covers_the_claims_deep(rng: random.Random) -> None:
    excess = largest_excess(draw(rng, with_firm(rng)), rng)
    assert excess is None or excess <= TINY_S


def test_their_slots_must_not_count_as_capacity() -> None:
    """Where only capacity with them covers the claims, jobs are later than promised; and there were loans at all."""
    late = loans = 0
    for seed in range(3000):
        rng = random.Random(seed)
        instance = draw(rng, ["firm"])
        state, world, short = play(instance, rng)
        loans += state.pool[0].firm_judged
        ends = static_ends(instance, state)
        excess = max(course.end - end for course, end in zip(world.plan, ends, strict=True))
        full = instance.capacity[0][1] == sum(instance.entitlements)  # so it covers all claims there can be
        late += full and short > 0 and excess - instance.rules.reclaim_s > TINY_S
    assert loans > 300
    assert late > 0


@pytest.mark.parametrize("seed", range(200))
def test_all_loans_are_judged_once(seed: int) -> None:
    rng = random.Random(seed)
    pool = play(draw(rng, with_firm(rng)), rng)[0].pool[0]
    assert (pool.firm, pool.firm_open, pool.firm_in_the_way) == (0, 0, 0)
    assert 0 <= pool.firm_missed <= pool.firm_judged


class Adversary:
    """Says that firm jobs take a second; they take an hour, and are in the way of their lender when it chooses."""

    def __init__(self, share: float, *, resume: bool = False) -> None:
        terms = {"borrower": Terms(entitlement=2), "lender": Terms(entitlement=8)}
        self.machine = Machine.new(terms, 10, Rules(reclaim_s=60, restore_s=60, firm_share=share))
        self.now, self.count, self.resume = 0.0, 0, resume
        self.log: list[tuple[str, Kind]] = []

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def submit(self, tenant: str, gpus: int, *, firm: bool = False) -> str:
        name = self.name(tenant)
        request = Request(id=name, tenant=tenant, gpus=gpus, preemptible=not firm, quick_s=1.0, typical_s=1.0)
        self.machine.submit(self.now, request)
        return name

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.log += [(d.job, d.kind) for d in self.machine.tick(self.now)]
        if self.resume:
            self.machine = Machine.loads(self.machine.dumps())

    def runs(self, name: str) -> bool:
        return self.machine.state.jobs[self.machine.known[name]].state == RUNNING

    def round(self, *, evil: bool) -> bool:
        """The borrower's own share is taken, and it has a firm job more. Whether that was lent to."""
        own, firm = self.submit("borrower", 2), self.submit("borrower", 2, firm=True)
        self.tick()
        lent = self.runs(firm)
        self.tick(100)
        lender = self.submit("lender", 8) if evil else ""
        self.tick(100)
        for name in (own, firm, lender):
            if name:
                self.machine.end(self.now, name)
                self.tick()
        self.tick(200)
        return lent

    @property
    def counts(self) -> tuple[int, int]:
        return self.machine.state.pool[0].firm_judged, self.machine.state.pool[0].firm_missed


def test_an_adversarial_predictor_shuts_them_off() -> None:
    adversary = Adversary(0.05)
    assert any(adversary.round(evil=False) for _ in range(5)), "lent to at first"
    lent = [adversary.round(evil=True) for _ in range(80)]
    judged, missed = adversary.counts
    assert 5 < missed <= 0.05 * judged + FEWEST_ALLOWED
    assert not any(lent[-40:])


def test_each_loan_misses_no_more_than_its_share_in_the_long_run() -> None:
    """An adversary that behaves for as long as it must, and hits whenever a loan is made else."""
    rng, adversary = random.Random(3), Adversary(0.2)
    for _ in range(600):
        adversary.round(evil=rng.random() < 0.3)
        judged, missed = adversary.counts
        assert missed <= 0.2 * judged + FEWEST_ALLOWED
    assert judged > 40


def test_resumed_at_every_step_it_lends_the_same() -> None:
    whole, cut = Adversary(0.2), Adversary(0.2, resume=True)
    for adversary in (whole, cut):
        rng = random.Random(5)
        for _ in range(60):
            adversary.round(evil=rng.random() < 0.3)
    assert whole.log == cut.log
    assert whole.machine.dumps() == cut.machine.dumps()
    assert whole.counts[0] > 10


def test_off_unless_asked_for() -> None:
    adversary = Adversary(Rules().firm_share)
    assert not any(adversary.round(evil=False) for _ in range(50))


@pytest.mark.parametrize("quick_s", [0.0, float("nan"), -1.0, NEVER, 1e-300])
def test_nothing_is_lent_where_the_forecast_is_of_no_use(quick_s: float) -> None:
    adversary = Adversary(0.05)
    for _ in range(5):
        adversary.round(evil=False)
    own = adversary.submit("borrower", 2)
    request = Request(id="x", tenant="borrower", gpus=2, preemptible=False, quick_s=quick_s, typical_s=100.0)
    adversary.machine.submit(adversary.now, request)
    adversary.tick()
    assert adversary.runs(own)
    assert not adversary.runs("x")
