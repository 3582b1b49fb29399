"""`squeue --json` with 50,000 jobs, against parsing that text with the standard library alone."""

import json
import time

import pytest

from broker.queues import squeue
from broker.queues.parsed import Context
from tests.measures import Take
from tests.queues.test_squeue import record, wrapped

JOBS = 50_000
MOST_S = 3.0


def _text() -> str:
    numbers = {name: wrapped(record()[name]) for name in ("submit_time", "eligible_time", "time_limit", "priority")}
    filler = {f"field_{index}": {"set": False, "infinite": False, "number": 0} for index in range(20)}
    return json.dumps(
        {
            "jobs": [record(job_id=number + 1, **numbers) | filler for number in range(JOBS)],
            "errors": [],
            "warnings": [],
        }
    )


@pytest.mark.bench
def test_a_large_queue_is_read_in_seconds(take: Take) -> None:
    text = _text()
    begun = time.process_time()
    parsed = squeue.read(text, Context("q"))
    ours = time.process_time() - begun
    begun = time.process_time()
    json.loads(text)
    bare = time.process_time() - begun
    assert len(parsed.jobs) == JOBS
    size = f"{JOBS:,} jobs, {len(text) // 2**20} MiB, {ours / bare:.2f} x json.loads"
    take(f"squeue --json, {size}", ours, MOST_S, "s CPU")
