import json
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.model.job import Job, JobState
from broker.queues import squeue
from broker.queues.parsed import Context, Parsed, Unreadable

SUBMIT = 1772611200  # 2026-03-04 08:00 UTC
NUMBERS = ("submit_time", "eligible_time", "time_limit", "priority", "node_count")
AT = datetime(2026, 3, 4, 8, tzinfo=UTC)


def record(**changes: Any) -> dict[str, Any]:
    return {
        "job_id": 101, "account": "vision", "user_name": "ana", "name": "train", "partition": "gpu", "cluster": "c1",
        "submit_time": SUBMIT, "eligible_time": SUBMIT, "start_time": 0, "end_time": 0, "job_state": ["PENDING"],
        "state_reason": "Resources", "tres_req_str": "cpu=64,mem=512G,node=2,billing=64,gres/gpu=16",
        "tres_alloc_str": "", "tres_per_node": "gres/gpu:h100:8", "node_count": 2, "time_limit": 720,
        "priority": 500, "dependency": "",
    } | changes  # fmt: skip


def read(*records: dict[str, Any], **top: Any) -> Parsed:
    document = {"jobs": list(records), "errors": [], "meta": {"plugin": {"data_parser": "data_parser/v0.0.40"}}} | top
    return squeue.read(json.dumps(document), Context("q", "site"))


def only(**changes: Any) -> Job:
    (job,) = read(record(**changes)).jobs
    return job


def wrapped(number: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


def test_a_job_in_full() -> None:
    assert only() == Job(
        id="101", cluster="c1", tenant="vision", user="ana", name="train", queue="gpu", submit=AT, eligible=AT,
        state=JobState.PENDING, gpus=16, gpu_model="h100", gpus_per_node=8, nodes=2, time_limit_s=43200, priority=500,
        source="q", raw_ref=":jobs[0]",
    )  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"job_state": "PENDING", "priority": "500"},
        {name: wrapped(record()[name]) for name in NUMBERS},
        {"end_time": None, "array_job_id": None, "array_task_id": {"set": False, "infinite": False, "number": 0}},
        {"job_state": ["PENDING", "REQUEUED"], "nodes": {"count": 2}, "job_resources": {"nodes": {}}},
    ],
)  # fmt: skip
def test_every_shape_of_the_data_parsers_says_the_same(shape: dict[str, Any]) -> None:
    assert only(**shape) == only()


@pytest.mark.parametrize(
    "limit", [None, {"set": True, "infinite": True, "number": 0}, {"set": False, "infinite": False, "number": 7}, 0]
)
def test_no_limit_is_none_and_never_zero(limit: Any) -> None:
    assert only(time_limit=limit).time_limit_s is None


@pytest.mark.parametrize(
    ("changes", "gpus", "model", "per_node", "nodes"),
    [
        ({"tres_per_node": ""}, 16, None, 8, 2),
        ({"tres_req_str": "gres/gpu=1,gres/gpu:a100=1", "tres_per_node": "", "node_count": 1}, 1, "a100", 1, 1),
        ({"tres_req_str": "gres/gpu:a100=4,gres/gpu:h100=2", "tres_per_node": "", "node_count": 1},
         6, "a100+h100", 6, 1),
        ({"tres_req_str": "cpu=4", "tres_per_node": "gres:gpu:8"}, 16, None, 8, 2),
        ({"tres_req_str": "", "tres_per_node": "", "tres_per_task": "gres/gpu:h100:1", "tasks": 4, "node_count": 1},
         4, "h100", None, None),
        ({"tres_req_str": "gres/gpu=8", "tres_per_node": "", "tres_per_job": "gres/gpu:8", "node_count": 1},
         8, None, None, None),
        ({"tres_req_str": "gres/gpu=8", "tres_per_node": "", "features": "a100-80gb&ib", "node_count": 1},
         8, "a100-80gb", 8, 1),
    ],
)  # fmt: skip
def test_gpus_are_whole_job_totals(
    changes: dict[str, Any], gpus: int, model: str | None, per_node: int | None, nodes: int | None
) -> None:
    job = only(**changes)
    assert (job.gpus, job.gpu_model, job.gpus_per_node, job.nodes) == (gpus, model, per_node, nodes)


def test_a_running_job_has_what_was_given_to_it() -> None:
    job = only(
        job_state=["RUNNING"], start_time=SUBMIT + 60, end_time=SUBMIT + 9999, nodes="gpu[01-02]", restart_cnt=2,
        tres_alloc_str="cpu=64,node=2,gres/gpu=16,gres/gpu:h100=16",
    )  # fmt: skip
    assert (job.state, job.attempt, job.node_names) == (JobState.RUNNING, 3, ("gpu01", "gpu02"))
    assert job.start and job.start.timestamp() == SUBMIT + 60
    assert job.end is None and job.requeued == job.submit, "Slurm resets the time of submission"


def test_the_guessed_start_of_a_waiting_job_is_not_its_start() -> None:
    assert only(start_time=SUBMIT + 3600, end_time=SUBMIT + 7200).start is None


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"hold": True}, JobState.HELD),
        ({"state_reason": "JobHeldUser"}, JobState.HELD),
        ({"state_reason": "InvalidQOS"}, JobState.HELD),
        ({"state_reason": "QOSMaxGRESPerUser"}, JobState.PENDING),
        ({"priority": 0}, JobState.HELD),
        ({"job_state": ["PENDING", "REQUEUE_HOLD"]}, JobState.HELD),
        ({"dependency": "afterok:7(failed)"}, JobState.HELD),
        ({"job_state": ["RUNNING", "CONFIGURING"]}, JobState.RUNNING),
        ({"job_state": ["COMPLETED", "COMPLETING"]}, JobState.DONE),
        ({"job_state": "SUSPENDED"}, JobState.SUSPENDED),
        ({"job_state": ["OUT_OF_MEMORY"]}, JobState.FAILED),
        ({"job_state": ["LEVITATING"]}, JobState.UNKNOWN),
    ],
)
def test_states(changes: dict[str, Any], state: JobState) -> None:
    assert only(**changes).state is state


def test_jobs_that_wait_for_a_limit_are_said_to_in_one_line() -> None:
    tasks = {"job_id": 200, "array_job_id": 200, "array_task_string": "0-3", "state_reason": "AssocGrpGRES"}
    waits = read(record(), record(job_id=102, state_reason="QOSMaxGRESPerUser"), record(**tasks))
    (line,) = waits.account()
    assert line.startswith("5 jobs wait for limits of the queue's own (QOSMaxGRESPerUser, AssocGrpGRES) and count")
    running = read(record(state_reason="AssocGrpGRES", job_state=["RUNNING"]), record(job_id=102))
    assert not running.account()


@pytest.mark.parametrize("kind", ["a100_1g.10gb", "1g.5gb", "nvidia_a100-sxm4-40gb_3g.20gb", "h100-mig", "t4_shared"])
def test_a_slice_is_no_whole_gpu_whatever_the_site_calls_its_type(kind: str) -> None:
    parsed = read(record(tres_req_str=f"cpu=4,gres/gpu=2,gres/gpu:{kind}=2", tres_per_node=f"gres/gpu:{kind}:1"))
    assert (parsed.jobs, dict(parsed.dropped)) == ([], {"asks for a fraction of a GPU": 1})


def test_begin_time_and_deadline() -> None:
    job = only(eligible_time=SUBMIT + 600, state_reason="BeginTime", deadline=SUBMIT + 7200)
    assert job.not_before and job.not_before.timestamp() == SUBMIT + 600
    assert job.deadline and job.deadline.timestamp() == SUBMIT + 7200


def test_an_array_that_waits_is_all_its_tasks_and_its_throttle_holds() -> None:
    array = record(job_id=200, array_job_id=200, array_task_id={"set": False, "number": 0}, array_task_string="2-5%2")
    running = record(job_id=201, array_job_id=200, array_task_id=1, array_task_string="", job_state=["RUNNING"],
                     array_max_tasks=2)  # fmt: skip
    parsed = read(array, running)
    waits = {job.id: job.depends_on for job in parsed.jobs}
    assert waits == {"200_1": (), "200_2": (), "200_3": ("200_1",), "200_4": ("200_2",), "200_5": ("200_3",)}
    assert parsed.rows == 5


def test_a_cut_list_of_tasks_is_not_the_whole_queue() -> None:
    parsed = read(record(job_id=200, array_job_id=200, array_task_string="1,3,5,..."))
    assert not parsed.whole and len(parsed.jobs) == 3


def test_a_heterogeneous_job_is_one_gang() -> None:
    one = record(job_id=93, het_job_id=93, het_job_offset=0, tres_req_str="gres/gpu=8", tres_per_node="gres/gpu:8",
                 node_count=1)  # fmt: skip
    two = one | {"job_id": 94, "het_job_offset": 1, "tres_req_str": "gres/gpu=1", "tres_per_node": "gres/gpu:1"}
    parsed = read(one, two)
    (job,) = parsed.jobs
    assert (job.id, job.gpus, job.gang, parsed.merged, parsed.rows) == ("93", 9, True, 1, 2)


def test_dependencies_name_what_must_end_first() -> None:
    array = record(job_id=200, array_job_id=200, array_task_string="0-1")
    after = record(job_id=300, dependency="afterok:200_*(unfulfilled),afterany:101(unfulfilled)")
    either = record(job_id=301, dependency="afterok:101(unfulfilled)?afterok:102(unfulfilled)")
    jobs = {job.id: job for job in read(record(), array, after, either).jobs}
    assert jobs["300"].depends_on == ("200_0", "200_1", "101")
    assert jobs["301"].depends_on == ("101",)


def test_a_singleton_waits_for_its_namesake() -> None:
    jobs = {
        job.id: job for job in read(record(), record(job_id=102, submit_time=SUBMIT + 5, dependency="singleton")).jobs
    }
    assert jobs["102"].depends_on == ("101",)


def test_every_row_is_accounted_for() -> None:
    parsed = read(
        record(),
        record(job_id=2, tres_req_str="cpu=4", tres_per_node=""),
        record(job_id=3, tres_req_str="gres/gpu:1g.5gb=2,gres/gpu=2", tres_per_node=""),
        record(job_id=4, job_state=["REVOKED"]),
        record(job_id=5, submit_time="yesterday"),
        record(job_id=6, tres_per_node="", tres_req_str="gres/gpu:x:y=3"),
        record(),
    )
    assert (parsed.rows, len(parsed.jobs), parsed.merged) == (7, 1, 1)
    assert parsed.dropped == {
        "asks for no GPU": 1, "asks for a fraction of a GPU": 1, "runs in another cluster of the federation": 1
    }  # fmt: skip
    assert parsed.quarantined.total() == 2
    assert "jobs[4]: 'yesterday'" in parsed.account()[0]


def test_one_record_of_the_wrong_kind_costs_only_itself() -> None:
    text = json.dumps({"jobs": [record(), 5, None, "x"], "errors": []})
    parsed = squeue.read(text, Context("q"))
    assert (len(parsed.jobs), parsed.quarantined.total()) == (1, 3)


def test_an_empty_queue_is_empty() -> None:
    parsed = read()
    assert parsed.jobs == [] and parsed.whole and parsed.rows == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"jobs":[],"errors":[{"error_number":9000,"description":"slurmdbd down"}]}', "slurmdbd down"),
        ('{"jobs":[],"errors":["x"]}', "reports an error"),
        ('{"meta":{}}', 'no "jobs"'),
        ('{"jobs":null}', 'no "jobs"'),
        ('{"jobs":[{"job_id":1},', "not whole JSON"),
        ("slurm_load_jobs error: Unable to contact slurm controller\n", "begins with"),
        ('{"jobs":[]} {"jobs":[', "not whole JSON"),
    ],
)
def test_what_is_not_a_whole_answer_is_refused(text: str, what: str) -> None:
    with pytest.raises(Unreadable, match=what):
        squeue.read(text, Context("q"))


def test_the_time_of_the_last_change_is_known() -> None:
    assert read(record(), last_update=wrapped(SUBMIT)).as_of == AT


def test_a_name_that_a_resize_renews_is_no_identity() -> None:
    assert only(sluid="sCH7X9K2M5M000", named_for_good=None).uid is None
