from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from broker.model.job import Job, JobState
from broker.queues import csv_jobs, jsonl_jobs
from broker.queues.parsed import Context, Parsed, Unreadable

AT = datetime(2026, 3, 4, 8, tzinfo=UTC)


def table(text: str, zone: ZoneInfo | None = None) -> Parsed:
    return csv_jobs.read(text, Context("q", "c1", "ours", zone))


def row(columns: str, values: str, delimiter: str = ",") -> Job:
    head = delimiter.join(["id", "submit", "gpus", columns])
    parsed = table(f"{head}\n7{delimiter}2026-03-04T08:00:00Z{delimiter}8{delimiter}{values}\n")
    assert len(parsed.jobs) == 1, parsed.account()
    return parsed.jobs[0]


def test_three_columns_are_enough() -> None:
    (job,) = table("id,submit,gpus\n7,2026-03-04T08:00:00Z,8\n").jobs
    assert job == Job(
        id="7", cluster="c1", tenant="ours", submit=AT, state=JobState.PENDING, gpus=8, source="q", raw_ref=":2"
    )


@pytest.mark.parametrize("text", [
    "\nID; Submit Time ;GPUs\r\n7;2026-03-04T08:00:00Z;8,0\r\n",
    "job_id\tsubmitted\tgpu_num\n7\t1772611200\t8.0\n",
    'id,submit,gpus\n"7",1772611200000,"8"\n\n',
    "id|submit|gpus\n7|1772611200000000|8\n",
    "id,submit,gpus\n7,2026-03-04T09:00:00+0100,8\n",
])  # fmt: skip
def test_tables_as_they_are_found(text: str) -> None:
    (job,) = table(text).jobs
    assert (job.id, job.submit, job.gpus) == ("7", AT, 8)


@pytest.mark.parametrize(
    ("columns", "values", "state"),
    [
        ("state", "QUEUED", JobState.PENDING), ("status", "Killed", JobState.CANCELLED),
        ("state", "Pass", JobState.DONE), ("state", "levitating", JobState.UNKNOWN),
        ("state,start", ",2026-03-04T09:00:00Z", JobState.RUNNING), ("start,end", "NaT,NaN", JobState.PENDING),
        ("start,end", "2026-03-04T09:00:00Z,2026-03-04T10:00:00Z", JobState.DONE),
    ],
)  # fmt: skip
def test_states_as_written_or_as_the_times_tell(columns: str, values: str, state: JobState) -> None:
    assert row(columns, values).state is state


def test_a_live_job_has_no_end_and_a_waiting_one_no_start() -> None:
    job = row("state,start,end", "running,2026-03-04T09:00:00Z,2026-03-05T09:00:00Z")
    assert job.start and job.end is None
    assert row("state,start", "pending,2026-03-04T09:00:00Z").start is None


def test_a_model_that_is_new_to_us_is_not_any_model() -> None:
    assert row("gpu_type", "NVIDIA H100 80GB HBM3").gpu_model == "h100"
    assert row("gpu_type", "Z9000").gpu_model == "z9000"
    assert row("gpu_type", "N/A").gpu_model is None


@pytest.mark.parametrize("word", ["UNLIMITED", "infinite", "", "0", "NaN"])
def test_no_limit_is_none_and_never_zero(word: str) -> None:
    assert row("time_limit_s", word).time_limit_s is None
    assert row("time_limit_s", "3600.0").time_limit_s == 3600


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("12h", 43_200), ("1d 12h", 129_600), ("90min", 5_400), ("12:00:00", 43_200), ("1-12:00:00", 129_600),
        ("2-0", 172_800), ("999999999d", 999_999_999 * 86_400), ("UNLIMITED", None), ("", None), ("0:00:00", None),
    ],
)  # fmt: skip
def test_a_limit_as_people_write_it(written: str, seconds: int | None) -> None:
    assert row("Time limit", written).time_limit_s == seconds


@pytest.mark.parametrize("written", ["720", "12:00", "soon", "-5h"])
def test_a_limit_without_a_unit_is_not_used_and_that_is_said(written: str) -> None:
    parsed = table(f"id,submit,gpus,walltime\n7,2026-03-04T08:00:00Z,8,{written}\n")
    assert parsed.jobs[0].time_limit_s is None
    assert parsed.account() == [
        f'time_limit "{written}" is not used: write 12h, 12:00:00 or 1-12:00:00, or time_limit_s in seconds'
    ]


def test_seconds_win_over_a_limit_as_people_write_it() -> None:
    assert row("time_limit_s,time_limit", "60,12h").time_limit_s == 60


@pytest.mark.parametrize("written", ["04.03.2026 09:00", "4.3.2026 9:00:00", "04.03.2026, 09:00"])
def test_a_date_with_dots_begins_with_the_day(written: str) -> None:
    (job,) = table(f"id;submit;gpus\n7;{written};8\n", ZoneInfo("Europe/Zurich")).jobs
    assert job.submit == AT


@pytest.mark.parametrize("written", ["03/04/2026 08:00", "32.03.2026 08:00", "04.03.26 08:00"])
def test_a_date_that_may_mean_two_days_is_refused_with_what_to_write(written: str) -> None:
    parsed = table(f"id;submit;gpus\n7;{written};8\n", ZoneInfo("Europe/Zurich"))
    assert not parsed.jobs and "write 2026-03-04 08:00, 04.03.2026 08:00" in parsed.account()[0]


def test_columns_with_names_of_their_own() -> None:
    named = (("id", "Auftrag"), ("gpus", "Anzahl GPUs"), ("submit", "eingereicht"))
    text = "Auftrag;Eingereicht;Anzahl GPUs;GPUs;Tenant\n7;2026-03-04T08:00:00Z;8;99;nlp\n"
    parsed = csv_jobs.read(text, Context("q", columns=named))
    assert [(job.id, job.gpus, job.tenant) for job in parsed.jobs] == [("7", 8, "nlp")]
    assert parsed.account() == ["columns not used: GPUs"]
    with pytest.raises(Unreadable, match="is given columns for gpuz; the fields are attempt, "):
        csv_jobs.read(text, Context("q", columns=(("gpuz", "GPUs"),)))


def test_lists() -> None:
    assert row("depends_on", "1 2;3").depends_on == ("1", "2", "3")
    assert row("depends_on", '"[""1"", ""2 3""]"').depends_on == ("1", "2 3")


def test_rows_are_accounted_for_by_reason() -> None:
    parsed = table(
        "id,submit,gpus,start,end,gang\n"
        "1,2026-03-04T08:00:00Z,8,,,\n"
        "1,2026-03-04T08:00:00Z,4,,,\n"
        "2,2026-03-04T08:00:00Z,0,,,\n"
        "3,2026-03-04T08:00:00Z,0.5,,,\n"
        "1E+05,2026-03-04T08:00:00Z,8,,,\n"
        ",2026-03-04T08:00:00Z,8,,,\n"
        "4,,8,,,\n"
        "5,2026-03-04T08:00:00Z,-8,,,\n"
        "6,2026-03-04T08:00:00Z,many,,,\n"
        "7,2026-03-04T08:00:00,8,,,\n"
        "8,2026-03-04T08:00:00Z,8,2026-03-04T10:00:00Z,2026-03-04T09:00:00Z,\n"
        "9,2026-03-04T08:00:00Z,8,,,perhaps\n"
        "10,2026-03-04T08:00:00Z,8\n"
        "11,2026-03-04T08:00:00Z,,,,\n"
    )
    assert [(job.id, job.gpus) for job in parsed.jobs] == [("1", 4)]
    assert (parsed.merged, dict(parsed.dropped)) == (1, {"asks for no GPU": 1, "asks for a fraction of a GPU": 1})
    assert (parsed.quarantined.total(), len(parsed.quarantined), parsed.rows) == (10, 10, 14)
    assert "1 row set aside: gpus is negative (row 9: '-8')" in parsed.account()
    assert all("\n" not in line for line in parsed.account())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,submit,gpus", "ends within its header"),
        ("id,submit\n", "has no column gpus; .*; it has id, submit"),
        ("id,submit,gpus,job_id\n", r"two columns for id \(id, job_id\); keep one$"),
        ("id,submit,gpus,gpu\n", r"two columns for gpus \(gpus, gpu\); keep one for their number, and call the model"),
    ],
)
def test_a_table_without_a_whole_header_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        table(text)


def test_a_header_alone_is_an_empty_queue() -> None:
    parsed = table("id,submit,gpus\n")
    assert parsed.whole and not parsed.jobs and not parsed.account()


@pytest.mark.parametrize("tail", ["7,2026-03-04T08:00:00Z,8", '7,2026-03-04T08:00:00Z,"8'])
def test_a_last_line_without_its_end_is_not_believed_whole(tail: str) -> None:
    parsed = table(f"id,submit,gpus\n6,2026-03-04T08:00:00Z,8\n{tail}")
    assert not parsed.whole


def test_unknown_columns_are_said() -> None:
    assert table("id,submit,gpus,colour\n").notes == ["columns not used: colour"]


def lines(text: str) -> Parsed:
    return jsonl_jobs.read(text, Context("q"))


def test_json_lines_and_arrays_say_the_same() -> None:
    one = '{"id": 7, "submit": 1772611200, "gpus": 8, "depends_on": [1, 2], "gang": false}'
    (job,), (same,) = lines(one + "\n").jobs, lines(f"[{one}]").jobs
    assert (job, job.id, job.submit, job.depends_on, job.gang) == (same, "7", AT, ("1", "2"), False)


def test_an_announced_number_shows_what_is_missing() -> None:
    one = '{"id": 7, "submit": 1772611200, "gpus": 8}\n'
    announced = '{"meta": {"jobs": 2, "as_of": "2026-03-04T08:00:00Z"}}\n'
    assert lines(announced + one + one.replace("7", "9")).whole
    assert not lines(announced + one).whole
    assert lines(announced + one).as_of == AT


def test_an_empty_queue_must_say_so() -> None:
    assert lines('{"meta": {"jobs": 0}}\n').whole
    assert lines("[]").whole
    with pytest.raises(Unreadable, match="is empty"):
        lines("\n\n")


def test_broken_lines_cost_only_themselves() -> None:
    parsed = lines('{"id": 7, "submit": 1772611200, "gpus": 8}\n5\n{"id": 8, "sub')
    assert (len(parsed.jobs), parsed.quarantined.total()) == (1, 2)
