"""What is said of a record is what its reader does."""

from pathlib import Path

import pytest

from broker.queues import encoding
from broker.queues.explain import NEEDED, Explained, explained
from broker.queues.registry import FORMATS, read
from tests.queues import fixtures


def of(format: str, identity: str, file: int = -1) -> Explained:
    text = encoding.text(fixtures.of_format(format)[file].read_bytes(), 1 << 20)
    parsed = FORMATS[format].read(text, fixtures.context())
    return explained(next(job for job in parsed.jobs if job.id == identity), format, text, fixtures.context())


def makes(found: Explained) -> dict[str, tuple[str, ...]]:
    return {field.name: field.makes for field in found.raw}


def test_squeue() -> None:
    found = makes(of("squeue", "301"))
    assert found["account"] == ("tenant",)
    assert found["time_limit"] == ("time_limit_s",)
    assert found["submit_time"] == (NEEDED,)
    assert "gpu_model" in found["tres_per_node"]
    assert found["requeue"] == ()


def test_what_two_fields_say_alike_is_found_on_both() -> None:
    text = (
        '{"jobs":[{"job_id":7,"account":"nlp","job_state":["PENDING"],"submit_time":1772611200,"node_count":1,'
        '"tres_req_str":"gres/gpu=8,gres/gpu:h100=8","tres_per_node":"gres/gpu:h100:8","comment":"x"}]}'
    )
    job = FORMATS["squeue"].read(text, fixtures.context()).jobs[0]
    raw = explained(job, "squeue", text, fixtures.context()).raw
    found = {field.name: (field.makes, field.shares) for field in raw}
    assert found["tres_req_str"] == ((), (NEEDED,)) and NEEDED in found["tres_per_node"][1]
    assert found["comment"] == ((), ())


def test_sacct_json_looks_into_what_is_nested() -> None:
    found = makes(of("sacct-json", "203"))
    assert found["time.limit"] == ("time_limit_s",)
    assert found["time.start"] == ("start",)
    assert found["state.current"][0] in (NEEDED, "end", "state", "start")


def test_a_task_of_an_array_is_explained_by_the_record_of_all() -> None:
    assert makes(of("squeue", "306_4"))["array_task_string"] == (NEEDED,)


@pytest.mark.parametrize("file", [0, 1])
def test_scontrol_on_one_line_or_many(file: int) -> None:
    found = makes(of("scontrol", "402", file))
    assert found["Account"] == ("tenant",)
    assert found["TimeLimit"] == ("time_limit_s",)


def test_tables() -> None:
    text = "id,submit,gpus,account,deadline\n7,2026-03-04T08:00:00Z,8,nlp,2026-03-05T08:00:00Z\n"
    job = FORMATS["csv"].read(text, fixtures.context()).jobs[0]
    found = makes(explained(job, "csv", text, fixtures.context()))
    assert found == {"id": (NEEDED,), "submit": (NEEDED,), "gpus": (NEEDED,), "account": ("tenant",),
                     "deadline": ("deadline",)}  # fmt: skip


def test_a_row_that_is_not_the_jobs_own_explains_nothing() -> None:
    """Line breaks within a cell move the lines."""
    text = 'id,submit,gpus,name\n7,2026-03-04T08:00:00Z,8,"a\nb"\n8,2026-03-04T08:00:00Z,8,c\n'
    job = FORMATS["csv"].read(text, fixtures.context()).jobs[1]
    assert explained(job, "csv", text, fixtures.context()).raw == ()


def test_swf_is_explained_by_its_columns() -> None:
    found = makes(of("swf", "1"))
    assert found["time limit"] == ("time_limit_s",)
    assert found["group"] == ("tenant",) or found["queue"]
    assert found["wait"] == ("start", "end")


def test_what_another_record_says_of_a_job_is_looked_at_as_well() -> None:
    """Of a compute cluster its machine type, of a class of priority its number."""
    text = encoding.text(fixtures.of_format("azure-ml")[0].read_bytes(), 1 << 20)
    (job,) = FORMATS["azure-ml"].read(text, fixtures.context()).jobs
    found = makes(explained(job, "azure-ml", text, fixtures.context(), {job.raw_ref}))
    assert found["properties.computeId"] == (NEEDED,)


def test_log_lines_before_the_document_move_no_record() -> None:
    text = "Loading module slurm\n" + encoding.text(fixtures.of_format("squeue")[-1].read_bytes(), 1 << 20)
    job = next(job for job in read("squeue", text, fixtures.context()).jobs if job.id == "301")
    assert makes(explained(job, "squeue", text, fixtures.context()))["account"] == ("tenant",)


@pytest.mark.parametrize("path", fixtures.paths(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_any_job_of_any_format_can_be_asked_for(path: Path) -> None:
    if path.parent.name == "parquet":
        pytest.importorskip("pyarrow")
    text = encoding.text(path.read_bytes(), 1 << 20)
    jobs = FORMATS[path.parent.name].read(text, fixtures.context()).jobs
    taken = {job.raw_ref for job in jobs}
    for job in jobs[:8]:
        found = explained(job, path.parent.name, text, fixtures.context(), taken)
        assert found.job == job
        assert any(field.makes for field in found.raw), job.id
        assert len({field.name for field in found.raw}) == len(found.raw)
