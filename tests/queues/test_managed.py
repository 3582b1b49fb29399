"""Ray, SkyPilot, AWS Batch, SageMaker, Vertex AI and Azure ML: states, sizes, and what is no whole answer."""

import json
from typing import Any

import pytest

from broker.model.job import Job, JobState
from broker.queues import azure_ml, batch_jobs, ray_jobs, sagemaker, skypilot, vertex
from broker.queues.parsed import Context, Parsed, Unreadable
from broker.queues.registry import FORMATS
from tests.queues import fixtures

CONTEXT = Context("q", ref="f")
MS = 1772600400000
SERVICES = ("ray", "skypilot", "aws-batch", "sagemaker", "vertex", "azure-ml")


def ray(**fields: Any) -> dict[str, Any]:
    return {
        "submission_id": "s",
        "entrypoint": "x",
        "status": "RUNNING",
        "start_time": MS,
        "metadata": {"gpus": "8"},
    } | fields


def sky(**fields: Any) -> dict[str, Any]:
    return {
        "job_id": 1,
        "recovery_count": 0,
        "status": "RUNNING",
        "submitted_at": 1.7e9,
        "resources": "1x[H100:8]",
    } | fields


def batch(**fields: Any) -> dict[str, Any]:
    asked = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    base = {"jobId": "a", "jobDefinition": "d", "jobQueue": "q", "status": "RUNNING", "createdAt": MS}
    return base | {"container": asked} | fields


def training(**fields: Any) -> dict[str, Any]:
    config = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}
    base = {"TrainingJobName": "t", "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training"}
    return base | {"CreationTime": "2026-03-04T06:00:00Z", "ResourceConfig": config} | fields


def custom(machine: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    pools = [{"replicaCount": "2", "machineSpec": machine or {"machineType": "a2-highgpu-4g"}}]
    base = {"name": "p/customJobs/1", "state": "JOB_STATE_RUNNING", "createTime": "2026-03-04T06:00:00Z"}
    return base | {"jobSpec": {"workerPoolSpecs": pools}} | fields


def azure(**fields: Any) -> dict[str, Any]:
    base = {"name": "n", "type": "command", "status": "Running"}
    created = {"created_at": "2026-03-04T06:00:00Z", "created_by": "A"}
    return base | {"creation_context": created, "resources": {"instance_type": "Standard_ND96isr_H100_v5"}} | fields


def only(parsed: Parsed) -> Job:
    (job,) = parsed.jobs
    return job


@pytest.mark.parametrize("word", ray_jobs._STATES)
def test_states_of_ray(word: str) -> None:
    assert only(ray_jobs.read(json.dumps([ray(status=word, end_time=MS)]), CONTEXT)).state is ray_jobs._STATES[word]


@pytest.mark.parametrize("word", skypilot._STATES)
def test_states_of_skypilot(word: str) -> None:
    for written in (word, word.lower(), f"ManagedJobStatus.{word}"):
        assert only(skypilot.read(json.dumps([sky(status=written)]), CONTEXT)).state is skypilot._STATES[word]


@pytest.mark.parametrize("word", batch_jobs._STATES)
def test_states_of_batch(word: str) -> None:
    assert only(batch_jobs.read(json.dumps({"jobs": [batch(status=word)]}), CONTEXT)).state is batch_jobs._STATES[word]


@pytest.mark.parametrize("word", vertex._STATES)
def test_states_of_vertex(word: str) -> None:
    assert only(vertex.read(json.dumps([custom(state=f"JOB_STATE_{word}")]), CONTEXT)).state is vertex._STATES[word]


@pytest.mark.parametrize("word", azure_ml._STATES)
def test_states_of_azure_ml(word: str) -> None:
    assert only(azure_ml.read(json.dumps([azure(status=word)]), CONTEXT)).state is azure_ml._STATES[word]


@pytest.mark.parametrize(
    ("status", "detail", "state"),
    [
        ("InProgress", "LaunchingMLInstances", JobState.PENDING), ("InProgress", "Pending", JobState.PENDING),
        ("InProgress", "Downloading", JobState.RUNNING), ("InProgress", "Interrupted", JobState.PENDING),
        ("Completed", "Completed", JobState.DONE), ("Failed", "Failed", JobState.FAILED),
        ("Stopping", "Stopping", JobState.RUNNING), ("Stopped", "Stopped", JobState.CANCELLED),
        ("Stopped", "MaxRuntimeExceeded", JobState.TIMEOUT), ("Deleting", "Deleting", JobState.CANCELLED),
        ("Novel", "", JobState.UNKNOWN),
    ],
)  # fmt: skip
def test_states_of_sagemaker(status: str, detail: str, state: JobState) -> None:
    document = json.dumps(training(TrainingJobStatus=status, SecondaryStatus=detail))
    assert only(sagemaker.read(document, CONTEXT)).state is state


@pytest.mark.parametrize("name", SERVICES)
def test_a_new_state_counts_as_live_and_is_said(name: str) -> None:
    one = {
        "ray": [ray(status="NOVEL")], "skypilot": [sky(status="NOVEL")], "aws-batch": {"jobs": [batch(status="NOVEL")]},
        "sagemaker": training(TrainingJobStatus="NOVEL"), "vertex": [custom(state="NOVEL")],
        "azure-ml": [azure(status="NOVEL")],
    }  # fmt: skip
    parsed = FORMATS[name].read(json.dumps(one[name]), CONTEXT)
    assert only(parsed).state is JobState.UNKNOWN and "NOVEL" in parsed.notes[0]


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("bad", ["[", '{"jobs": [', "7", '"x"', '{"message": "denied"}', "nonsense", "{}"])
def test_what_is_no_whole_answer_is_refused(name: str, bad: str) -> None:
    with pytest.raises(Unreadable):
        FORMATS[name].read(bad, CONTEXT)


@pytest.mark.parametrize("name", SERVICES)
def test_a_cut_answer_is_never_believed(name: str) -> None:
    text = fixtures.of_format(name)[-1].read_text()
    whole = FORMATS[name].read(text, CONTEXT).rows
    for at in range(1, len(text.rstrip()), 37):
        try:
            parsed = FORMATS[name].read(text[:at], CONTEXT)
        except Unreadable:
            continue
        assert 0 < parsed.rows < whole, "several documents, cut right between two of them"


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("value", [None, "", "x", -1, 1e300, True, [], {}, "2" * 40, "9999-99-99"])
def test_any_value_in_any_field_costs_one_row(name: str, value: Any) -> None:
    path = next(path for path in fixtures.of_format(name) if path.name != "arm.json")
    first, *_ = path.read_text().split("\n]\n[")
    document = json.loads(first + ("\n]" if name == "azure-ml" else ""))
    records = document if isinstance(document, list) else next(iter(document.values()))
    before = FORMATS[name].read(json.dumps(document), CONTEXT).rows
    for field in list(records[0]):
        kept, records[0][field] = records[0][field], value
        parsed = FORMATS[name].read(json.dumps(document), CONTEXT)
        assert parsed.rows == before
        records[0][field] = kept


@pytest.mark.parametrize("key", ["nextToken", "nextPageToken", "nextLink"])
def test_one_page_of_more_is_partial(key: str) -> None:
    assert not batch_jobs.read(json.dumps({"jobs": [batch()], key: "x"}), CONTEXT).whole


def test_lists_without_gpus_say_what_to_ask() -> None:
    with pytest.raises(Unreadable, match="describe-jobs"):
        batch_jobs.read('{"jobSummaryList": []}', CONTEXT)
    with pytest.raises(Unreadable, match="describe-training-job"):
        sagemaker.read('{"TrainingJobSummaries": []}', CONTEXT)


def test_tasks_of_an_array_that_are_listed_stand_for_themselves() -> None:
    parent = batch(arrayProperties={"size": 3, "statusSummary": {"RUNNING": 1, "RUNNABLE": 2}}, status="PENDING")
    child = batch(jobId="a:1", arrayProperties={"index": 1})
    found = batch_jobs.read(json.dumps({"jobs": [parent, child]}), CONTEXT)
    assert {job.id: job.state for job in found.jobs} == {
        "a:0": JobState.PENDING, "a:1": JobState.RUNNING, "a:2": JobState.PENDING,
    }  # fmt: skip


def test_nodes_of_a_job_over_several_ranges() -> None:
    ranges = [
        {"targetNodes": "0:1", "container": {"resourceRequirements": [{"type": "GPU", "value": "8"}]}},
        {"targetNodes": "2:", "container": {"resourceRequirements": [{"type": "GPU", "value": "4"}]}},
    ]
    found = batch(container=None, nodeProperties={"numNodes": 4, "nodeRangeProperties": ranges})
    job = only(batch_jobs.read(json.dumps({"jobs": [found]}), CONTEXT))
    assert (job.gpus, job.gpus_per_node, job.nodes) == (24, None, None)


@pytest.mark.parametrize(
    ("text", "gpus", "nodes"),
    [("2x[H100:8]", 16, 2), ("1x[gpus=H100:4, cpus=8]", 4, 1), ("3x(A100-80GB:2)", 6, 3), ("H100:8", 8, 1)],
)
def test_resources_of_skypilot(text: str, gpus: int, nodes: int) -> None:
    job = only(skypilot.read(json.dumps([sky(resources=text)]), CONTEXT))
    assert (job.gpus, job.nodes) == (gpus, nodes)


def test_training_jobs_may_stand_one_behind_the_other() -> None:
    text = "\n".join(json.dumps(training(TrainingJobName=name), indent=1) for name in ("a", "b"))
    assert [job.id for job in sagemaker.read(text, CONTEXT).jobs] == ["a", "b"]
