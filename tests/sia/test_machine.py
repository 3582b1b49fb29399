"""The live machine: the replay's decisions, reasons, saving and resuming, refusals."""

import json
import math
import random
from collections.abc import Collection

import pytest

from broker.errors import StateError, UsageError
from broker.sia.columns import NEVER, RUNNING, speed_of
from broker.sia.machine import Decision, Kind, Machine, Request, Terms
from broker.sia.state import Rules
from tests.sia.tiny import Instance, draw, play, static_ends


def drive(instance: Instance, cuts: Collection[int] = (), node_gpus: int = 0) -> tuple[list[float], list[Decision]]:
    """Play an instance through the machine by events; at each step in `cuts` save it and go on with the copy."""
    terms = {f"t{v}": Terms(entitlement=share) for v, share in enumerate(instance.entitlements)}
    machine = Machine.new(terms, instance.capacity[0][1], instance.rules, node_gpus)
    moves = list(instance.capacity[1:])
    ends = [NEVER] * len(instance.jobs)
    decisions: list[Decision] = []
    submitted, step, now = 0, 0, 0.0
    while any(end == NEVER for end in ends):
        now = min(_next(machine, instance, ends, submitted), moves[0][0] if moves else NEVER)
        for j, end in enumerate(ends):
            if end == NEVER and _end_of(machine, instance, j) == now:
                machine.end(now, str(j))
                ends[j] = now
        while moves and moves[0][0] <= now:
            machine.capacity(now, moves.pop(0)[1])
        submitted = _submit(machine, instance, submitted, now)
        decisions += machine.tick(now)
        step += 1
        if step in cuts:
            machine = Machine.loads(machine.dumps())
    return ends, decisions


def _end_of(machine: Machine, instance: Instance, j: int) -> float:
    if str(j) not in machine.known or machine.state.jobs[machine.known[str(j)]].state != RUNNING:
        return NEVER
    job = machine.state.jobs[machine.known[str(j)]]
    speed = speed_of(job.held, job.gpus, job.speed_power)
    return job.since + (instance.plan[j].duration - job.service) / speed


def _next(machine: Machine, instance: Instance, ends: list[float], submitted: int) -> float:
    ahead = [machine.wake, *(_end_of(machine, instance, j) for j, end in enumerate(ends) if end == NEVER)]
    if submitted < len(instance.jobs):
        ahead.append(instance.plan[submitted].submit)
    return min(ahead)


def _submit(machine: Machine, instance: Instance, submitted: int, now: float) -> int:
    while submitted < len(instance.jobs) and instance.plan[submitted].submit <= now:
        job = instance.jobs[submitted]
        machine.submit(
            now,
            Request(
                id=str(submitted),
                tenant=f"t{job.tenant}",
                gpus=job.gpus,
                most=job.most,
                reclaim_s=job.reclaim_s,
                restore_s=job.restore_s,
                typical_s=job.typical_s,
            ),
        )
        submitted += 1
    return submitted


@pytest.mark.parametrize("seed", range(40))
def test_decides_as_the_replay(seed: int) -> None:
    ends, _ = drive(draw(random.Random(seed)))
    _, world, _ = play(draw(random.Random(seed)))
    assert ends == [course.end for course in world.plan]


def test_resumed_at_a_hundred_instants_it_decides_the_same() -> None:
    rng = random.Random(7)
    for seed in range(100):
        whole = drive(draw(random.Random(seed)))
        assert whole == drive(draw(random.Random(seed)), {rng.randint(1, 30), rng.randint(1, 30)})


def two_tenants(**changes: object) -> Machine:
    terms = {"vision": Terms(entitlement=4), "nlp": Terms(entitlement=4, **changes)}  # type: ignore[arg-type]
    return Machine.new(terms, 8, Rules(reclaim_s=60, restore_s=120))


def test_lends_calls_back_and_says_why() -> None:
    machine = two_tenants()
    machine.submit(0, Request(id="a", tenant="vision", gpus=4))
    machine.submit(0, Request(id="b", tenant="vision", gpus=4))
    granted, lent = machine.tick(0)
    assert (granted.job, granted.kind, lent.job, lent.kind) == ("a", Kind.GRANT, "b", Kind.LOAN)
    machine.submit(100, Request(id="c", tenant="nlp", gpus=4))
    (called,) = machine.tick(100)
    assert (called.job, called.kind) == ("b", Kind.RECLAIM)
    assert called.reason == "4 GPUs are claimed and not held, 0 held back, 0 free"
    assert machine.wake == 160
    assert [(d.job, d.kind, d.lag_s) for d in machine.tick(160)] == [("c", Kind.GRANT, 60)]
    assert "running, owed since 100 s, lag 60 s" in machine.explain("c")


def test_opting_out_of_lending_and_borrowing() -> None:
    machine = two_tenants(lends=1)
    machine.submit(0, Request(id="a", tenant="vision", gpus=4))
    machine.submit(0, Request(id="b", tenant="vision", gpus=2))
    machine.submit(0, Request(id="c", tenant="vision", gpus=1))
    assert [(d.job, d.kind) for d in machine.tick(0)] == [("a", Kind.GRANT), ("c", Kind.LOAN)]
    proud = two_tenants(borrows=False)
    for name in ("x", "y"):
        proud.submit(0, Request(id=name, tenant="nlp", gpus=4))
    assert [d.job for d in proud.tick(0)] == ["x"]


def test_a_slow_or_unstoppable_borrower_waits_for_its_turn() -> None:
    for request in (Request(id="b", tenant="vision", gpus=2, reclaim_s=600), Request(id="b", tenant="vision", gpus=2)):
        request.preemptible = request.reclaim_s is not None
        machine = two_tenants()
        machine.submit(0, Request(id="a", tenant="vision", gpus=4))
        machine.submit(0, request)
        assert [d.job for d in machine.tick(0)] == ["a"]


def test_a_clock_that_goes_backwards_is_repaired_and_counted() -> None:
    machine = two_tenants()
    machine.submit(100, Request(id="a", tenant="vision", gpus=4))
    machine.tick(50)
    assert (machine.clock_repairs, machine.state.pool[0].now) == (1, 100)


def test_refusals() -> None:
    machine = two_tenants()
    machine.submit(0, Request(id="a", tenant="vision", gpus=4))
    for bad in (Request(id="a", tenant="vision", gpus=1), Request(id="b", tenant="nobody", gpus=1)):
        with pytest.raises(UsageError):
            machine.submit(0, bad)
    with pytest.raises(UsageError):
        machine.end(0, "unknown")
    for text in (b"{", b"{}", b'{"format_version": 99}'):
        with pytest.raises(StateError):
            Machine.loads(text)


def waiting() -> Machine:
    """With jobs that run, drain and wait."""
    machine = two_tenants()
    for name, tenant in (("a", "vision"), ("b", "vision"), ("c", "nlp"), ("d", "nlp")):
        machine.submit(0, Request(id=name, tenant=tenant, gpus=4))
        machine.tick(0)
    return machine


def test_what_an_older_broker_saved_is_read() -> None:
    """It wrote a document for each record, and knew fewer fields."""
    saved = json.loads(waiting().dumps())
    saved["format_version"] = 1
    for name in ("jobs", "tenants", "pool", "ends", "drains", "queue", "horizons"):
        rows = zip(*saved["state"][name].values(), strict=True)
        saved["state"][name] = [dict(zip(saved["state"][name], row, strict=True)) for row in rows]
    for job in saved["state"]["jobs"]:
        del job["firm_loan"]
    assert Machine.loads(json.dumps(saved).encode()).state == waiting().state


@pytest.mark.parametrize(
    "jobs", [{"gpus": [1, 2], "tenant": [0]}, {"colour": [1]}, {"gpus": 4}, [{"gpus": 1}, {}], "none", {"gpus": {}}]
)
def test_what_is_damaged_in_the_middle_is_refused(jobs: object) -> None:
    saved = json.loads(waiting().dumps())
    saved["state"]["jobs"] = jobs
    with pytest.raises(StateError, match="damaged"):
        Machine.loads(json.dumps(saved).encode())


def test_an_overdue_reclaim_is_named() -> None:
    machine = two_tenants()
    for name, tenant in (("a", "vision"), ("b", "vision"), ("c", "nlp")):
        machine.submit(0, Request(id=name, tenant=tenant, gpus=4))
        machine.tick(0)
    assert machine.overdue(59) == []
    assert machine.overdue(61) == ["b"]


def test_a_start_of_the_schedulers_own_is_called_back_when_owed_to_others() -> None:
    machine = two_tenants()
    machine.submit(0, Request(id="a", tenant="vision", gpus=4))
    machine.start(0, "a")
    machine.submit(0, Request(id="b", tenant="vision", gpus=4))
    machine.start(0, "b")
    assert machine.tick(0) == []
    machine.progress(50, "b", 10.0)
    assert machine.lag_s("b") == -10.0
    machine.submit(60, Request(id="c", tenant="nlp", gpus=4))
    assert [(d.job, d.kind) for d in machine.tick(60)] == [("b", Kind.RECLAIM)]


@pytest.mark.parametrize("seed", range(300))
def test_decisions_on_ticks_keep_the_bound_rounded_up_to_ticks(seed: int) -> None:
    assert latest_on_ticks(seed, rounded=True) <= 0


def test_on_ticks_the_bound_not_rounded_up_does_not_hold() -> None:
    assert max(latest_on_ticks(seed, rounded=False) for seed in range(300)) > 0


def latest_on_ticks(seed: int, *, rounded: bool) -> float:
    """Beyond the reclaim time. What happens between ticks is seen at the second; STATIC has the same ticks."""
    rng = random.Random(seed)
    instance, tick = draw(rng), rng.choice((2, 3, 5))
    if rounded:
        instance.rules = instance.rules.on_ticks(tick)
    for job in instance.jobs if rounded else ():
        job.restore_s = instance.rules.restore_s
        job.reclaim_s = max(1, math.ceil(job.reclaim_s / tick)) * tick
    terms = {f"t{v}": Terms(entitlement=share) for v, share in enumerate(instance.entitlements)}
    machine = Machine.new(terms, sum(instance.entitlements), instance.rules)
    ends = _played_on_ticks(machine, instance, tick)
    for course in instance.plan:
        course.submit, course.duration = (math.ceil(x / tick) * tick for x in (course.submit, course.duration))
    late_by = [e - s for e, s in zip(ends, static_ends(instance, machine.state), strict=True)]
    return max(late_by) - instance.rules.reclaim_s


def _played_on_ticks(machine: Machine, instance: Instance, tick: int) -> list[float]:
    ends, submitted, now = [NEVER] * len(instance.jobs), 0, 0
    while any(end == NEVER for end in ends):
        for j in range(submitted):
            if ends[j] == NEVER and _end_of(machine, instance, j) <= now:
                ends[j] = _end_of(machine, instance, j)
                machine.end(now, str(j))
        submitted = _submit(machine, instance, submitted, now)
        machine.tick(now)
        assert machine.state.pool[0].short == 0
        now += tick
    return ends
