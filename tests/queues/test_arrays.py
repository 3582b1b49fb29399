"""Arrays that wait are written in short: all their tasks are meant, but no few bytes may stand for too many."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.job import Job
from broker.model.snapshot import Trust
from broker.queues.arrays import MOST_TASKS, tasks, waiting
from broker.queues.parsed import Parsed, Unfit
from tests.queues import test_sacct, test_squeue
from tests.queues.fuzzing import checked
from tests.queues.test_squeue import record

_ARRAY = {"job_id": 200, "array_job_id": 200}
_LISTS = st.lists(st.integers(0, 60), min_size=1, max_size=12, unique=True)


def short(**changes: object) -> list[Job]:
    return test_squeue.read(record(**_ARRAY, **changes)).jobs


@given(_LISTS, st.integers(0, 4), st.booleans(), st.booleans())
def test_an_array_in_short_is_its_tasks_one_by_one(ids: list[int], at_once: int, singleton: bool, after: bool) -> None:
    waits = {"dependency": ",".join(["singleton"] * singleton + ["afterok:7(unfulfilled)"] * after)}
    throttle = f"%{at_once}" if at_once else ""
    alone = [
        record(job_id=300 + each, array_job_id=200, array_task_id=each, array_max_tasks=at_once, **waits)
        for each in ids
    ]
    written = ",".join(map(str, ids)) + throttle
    assert [_placeless(job) for job in short(array_task_string=written, **waits)] == [
        _placeless(job) for job in test_squeue.read(*alone).jobs
    ]


def _placeless(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in job.__struct_fields__ if name != "raw_ref"}


@pytest.mark.parametrize("text", [f"0-{MOST_TASKS}", "7-999999999999", "0-4000000,0-4000000", f"0-{MOST_TASKS}:4"])
def test_more_tasks_than_slurm_can_have_are_set_aside_in_one_line(text: str) -> None:
    parsed = test_squeue.read(record(), record(**_ARRAY, array_task_string=text))
    assert [job.id for job in parsed.jobs] == ["101"]
    assert parsed.quarantined.total() == 1 and len(parsed.account()) == 1


def test_the_largest_array_of_slurm_is_read_and_takes_no_room_before_its_jobs_are_made() -> None:
    found = tasks("0-4000000%9")
    assert (len(found.ids), found.ids[-1], found.at_once) == (MOST_TASKS, 4_000_000, 9)
    assert isinstance(found.ids, range)


def test_many_arrays_together_may_not_be_more_either() -> None:
    parsed = Parsed()
    waiting("1-4000000", parsed)
    waiting("7", parsed)
    with pytest.raises(Unfit, match="beyond the 4,000,001 tasks"):
        waiting("8-9", parsed)
    assert parsed.tasks == MOST_TASKS


def test_accounting_is_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.queues.arrays.MOST_TASKS", 10)
    parsed = test_sacct.read(test_sacct.line(JobID="20_[0-9]"), test_sacct.line(JobID="21_[0-9]"))
    assert (len(parsed.jobs), parsed.quarantined.total()) == (10, 1)


def test_two_hundred_thousand_tasks_take_no_longer_than_a_name_for_each_may() -> None:
    raw = json.dumps({"jobs": [record(**_ARRAY, array_task_string="0-199999%8")], "errors": []}).encode()
    found = checked("squeue", raw)
    assert (found.kept, found.trust) == (200_000, Trust.COMPLETE)
