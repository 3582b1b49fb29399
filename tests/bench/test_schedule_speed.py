"""A look at a large queue: 2,000 running and 10,000 queued jobs of 20 tenants."""

import random
import time

import pytest

from broker.model.job import Job
from broker.schedule.memory import dumps, loads
from broker.schedule.step import begin
from tests.measures import Take
from tests.schedule.cluster import START, job, looked, policy, running, tenant

BAR_S = 1.0


def queue() -> list[Job]:
    rng = random.Random(0)
    found = []
    for number in range(12_000):
        name, gpus = f"t{rng.randrange(20)}", rng.choice([1, 1, 1, 2, 4, 8])
        shown = (
            running(str(number), name, gpus, -number, -10) if number < 2000 else job(str(number), name, gpus, -number)
        )
        found.append(shown)
    return found


@pytest.mark.bench
def test_a_look_at_a_large_queue(take: Take) -> None:
    rules = policy(*(tenant(f"t{v}", 300) for v in range(20)), nodes=750)
    jobs, text = queue(), dumps(begin(START))
    for number in range(3):
        before = time.process_time()
        memory = loads(text)
        found = looked(memory, number * 3700.0, *jobs, rules=rules)
        text = dumps(memory)
        spent = time.process_time() - before
        take(f"look {number + 1} at 12,000 jobs, {len(text) / 1e6:.1f} MB remembered", spent, BAR_S, "s CPU")
        assert found.grants
