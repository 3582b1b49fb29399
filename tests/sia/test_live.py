"""One live step from an observed queue."""

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from broker.model.job import Job, JobState
from broker.sia.live import schedule
from broker.sia.machine import Kind, Terms
from broker.sia.state import Rules

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
RULES = Rules(reclaim_s=60, restore_s=120)
TERMS = {"vision": Terms(entitlement=8), "nlp": Terms(entitlement=8)}


def job(name: str, tenant: str, gpus: int, minutes_ago: float, running: bool = False, **more: object) -> Job:
    submit = NOW - timedelta(minutes=minutes_ago)
    state = JobState.RUNNING if running else JobState.PENDING
    start = submit + timedelta(minutes=1) if running else None
    fields = {"preemptible": True, **more}
    return Job(id=name, tenant=tenant, submit=submit, state=state, gpus=gpus, start=start, **fields)  # type: ignore[arg-type]


def test_grants_loans_and_reclaims() -> None:
    queue = [
        job("own", "vision", 8, 60, running=True),
        job("lent", "vision", 8, 50, running=True),
        job("due", "nlp", 4, 1),
        job("later", "nlp", 8, 0.5),
    ]
    step = schedule(queue, TERMS, 16, NOW.timestamp(), RULES)
    assert [(d.job, d.kind) for d in step.decisions] == [("lent", Kind.RECLAIM)]
    wider = schedule(queue, TERMS, 32, NOW.timestamp(), RULES)
    assert [(d.job, d.kind) for d in wider.decisions] == [("due", Kind.GRANT), ("later", Kind.LOAN)]
    assert all(decision.reason for decision in wider.decisions)


def test_says_what_it_leaves_out() -> None:
    queue = [
        job("a", "nobody", 1, 5),
        job("b", "nlp", 0, 5),
        job("c", "nlp", 1, 5),
        job("c", "nlp", 1, 5),
        job("d", "nlp", 1, 5, not_before=NOW + timedelta(hours=1)),
    ]
    step = schedule(queue, TERMS, 16, NOW.timestamp(), RULES)
    assert dict(step.left_out) == {
        "a": "tenant 'nobody' has no entitlement",
        "b": "asks for no GPUs",
        "c": "listed twice",
        "d": "begins later",
    }


def test_a_job_from_the_future_counts_from_now() -> None:
    step = schedule([job("a", "nlp", 1, -30)], TERMS, 16, NOW.timestamp(), RULES)
    assert [d.kind for d in step.decisions] == [Kind.GRANT]


@pytest.mark.bench
def test_a_step_for_a_large_queue() -> None:
    rng = np.random.default_rng(0)
    terms = {f"t{v}": Terms(entitlement=200) for v in range(20)}
    queue = [
        job(str(i), f"t{rng.integers(20)}", int(rng.choice([1, 1, 1, 2, 4, 8])), float(rng.uniform(0, 3000)), i < 2000)
        for i in range(12_000)
    ]
    begin = time.process_time()
    step = schedule(queue, terms, 4000, NOW.timestamp(), RULES, hold=100)
    spent = time.process_time() - begin
    assert len(step.decisions) > 100
    assert spent <= 1.0, spent
