import msgspec
from hypothesis import given
from hypothesis import strategies as st

from broker.model.job import Job
from broker.queues import csv_jobs, jsonl_jobs
from broker.queues.parsed import Context, Parsed
from broker.queues.registry import detect
from tests.queues.strategies import jobs

MANY = st.lists(jobs(), max_size=2, unique_by=lambda job: (job.cluster, job.id, job.attempt))


def plain(parsed: Parsed) -> list[Job]:
    assert parsed.whole and not parsed.account(), parsed.account()
    return [msgspec.structs.replace(job, source="", raw_ref="") for job in parsed.jobs]


@given(MANY)
def test_jobs_survive_csv(given_jobs: list[Job]) -> None:
    text = csv_jobs.write(given_jobs)
    assert plain(csv_jobs.read(text, Context(""))) == given_jobs
    assert detect(text).name == "csv"


@given(MANY)
def test_jobs_survive_json_lines(given_jobs: list[Job]) -> None:
    text = jsonl_jobs.write(given_jobs)
    assert plain(jsonl_jobs.read(text, Context(""))) == given_jobs
    assert detect(text).name == "jsonl"
