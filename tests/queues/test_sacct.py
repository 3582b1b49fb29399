from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from broker.model.job import Job, JobState
from broker.queues import sacct
from broker.queues.parsed import Context, Parsed, Unreadable

COLUMNS = (
    "JobIDRaw", "JobID", "Cluster", "User", "Account", "Partition", "Submit", "Eligible", "Start", "End", "State",
    "Reason", "TimelimitRaw", "ReqTRES", "AllocTRES", "NNodes", "Priority",
)  # fmt: skip
HEADER = "|".join(COLUMNS)
ROW = dict(zip(COLUMNS, (
    "12", "12", "c1", "ana", "vision", "gpu", "2026-03-04T08:00:00Z", "2026-03-04T08:00:00Z", "Unknown", "Unknown",
    "PENDING", "Resources", "720", "cpu=8,gres/gpu:h100=16,gres/gpu=16", "", "2", "500"), strict=True))  # fmt: skip
ZURICH = ZoneInfo("Europe/Zurich")


def line(**changes: str) -> str:
    return "|".join((ROW | changes).values())


def read(*lines: str, header: str = HEADER, zone: ZoneInfo | None = None) -> Parsed:
    return sacct.read("\n".join([header, *lines]) + "\n", Context("q", "site", zone=zone))


def only(**changes: str) -> Job:
    parsed = read(line(**changes))
    assert len(parsed.jobs) == 1, parsed.account()
    return parsed.jobs[0]


def test_a_job_in_full() -> None:
    at = datetime(2026, 3, 4, 8, tzinfo=UTC)
    assert only() == Job(
        id="12", cluster="c1", tenant="vision", user="ana", queue="gpu", submit=at, eligible=at, state=JobState.PENDING,
        gpus=16, gpu_model="h100", gpus_per_node=8, nodes=2, time_limit_s=43200, priority=500, source="q", raw_ref=":2",
    )  # fmt: skip


@pytest.mark.parametrize("word", ["UNLIMITED", "Partition_Limit", "", "NOT_SET", "INVALID", " Infinite ", "None"])
def test_no_limit_is_none_and_never_zero(word: str) -> None:
    assert only(TimelimitRaw=word).time_limit_s is None


@pytest.mark.parametrize(("written", "seconds"), [("1-12:00:00", 129600), ("30:00", 1800), ("08:00:00", 28800)])
def test_limits_in_words_of_their_own(written: str, seconds: int) -> None:
    header = HEADER.replace("TimelimitRaw", "Timelimit")
    assert read(line(TimelimitRaw=written), header=header).jobs[0].time_limit_s == seconds


def test_columns_are_found_by_their_names_in_any_order_and_with_a_bar_at_the_end() -> None:
    order = [name for name in reversed(COLUMNS) if name not in ("Reason", "Cluster", "JobIDRaw")]
    header, row = "|".join(order) + "|", "|".join(ROW[name] for name in order) + "|"
    (job,) = read(row, header=header).jobs
    assert (job.id, job.gpus, job.cluster) == ("12", 16, "site")


@pytest.mark.parametrize(
    ("state", "read_as"),
    [
        ("CANCELLED by 1001", JobState.CANCELLED), ("COMPLETED", JobState.DONE), ("NODE_FAIL", JobState.FAILED),
        ("OUT_OF_MEMORY", JobState.FAILED), ("TIMEOUT", JobState.TIMEOUT), ("DEADLINE", JobState.TIMEOUT),
        ("PREEMPTED", JobState.PREEMPTED), ("RUNNING", JobState.RUNNING), ("SUSPENDED", JobState.SUSPENDED),
        ("REQUEUED", JobState.PREEMPTED), ("NEW_STATE", JobState.UNKNOWN),
    ],
)  # fmt: skip
def test_states(state: str, read_as: JobState) -> None:
    assert only(State=state).state is read_as


def test_a_held_job_is_held_and_one_for_later_has_its_time() -> None:
    assert only(Reason="JobHeldUser").state is JobState.HELD
    assert only(Reason="BeginTime", Eligible="2026-03-05T00:00:00Z").not_before == datetime(2026, 3, 5, tzinfo=UTC)


def test_requeues_are_attempts_of_one_job_since_its_first_submit() -> None:
    rows = [
        line(Submit=f"2026-03-04T0{hour}:00:00Z", Start=f"2026-03-04T0{hour}:10:00Z", State="REQUEUED",
             End=f"2026-03-04T0{hour}:30:00Z")
        for hour in (3, 1, 2, 4)
    ]  # fmt: skip
    parsed = read(*rows, line(Submit="2026-03-04T05:00:00Z", Start="2026-03-04T05:10:00Z", State="RUNNING"), rows[0])
    assert [job.attempt for job in parsed.jobs] == [1, 2, 3, 4, 5]
    assert {job.submit.hour for job in parsed.jobs} == {1}
    assert [job.requeued.hour if job.requeued else None for job in parsed.jobs] == [None, 2, 3, 4, 5]
    assert [job.state.live for job in parsed.jobs] == [False] * 4 + [True]
    assert [job.start.hour for job in parsed.jobs if job.start] == [1, 2, 3, 4, 5]
    assert (parsed.merged, parsed.rows) == (1, 6)


def test_steps_and_jobs_without_gpus_are_dropped_and_counted() -> None:
    parsed = read(
        line(),
        line(JobID="12.batch", JobIDRaw="12.batch"),
        line(JobID="12.0", JobIDRaw="12.0"),
        line(JobID="13_4.extern", JobIDRaw="17.extern"),
        line(JobID="14", ReqTRES="cpu=4,gres/gpumem=5G", AllocTRES=""),
        line(JobID="15", State="REVOKED"),
    )
    assert (len(parsed.jobs), parsed.rows) == (1, 6)
    assert parsed.dropped["is a step of a job"] == 3


def test_arrays_and_gangs() -> None:
    parsed = read(
        line(JobID="20_[5-7%2]"),
        line(JobID="20_4", State="RUNNING", Start="2026-03-04T09:00:00Z"),
        line(JobID="93+0", ReqTRES="gres/gpu=8", NNodes="1"),
        line(JobID="93+1", ReqTRES="gres/gpu=1", NNodes="1"),
    )
    jobs = {job.id: job for job in parsed.jobs}
    assert set(jobs) == {"20_4", "20_5", "20_6", "20_7", "93"}
    assert jobs["20_6"].depends_on == ("20_4",) and jobs["20_5"].depends_on == ()
    assert (jobs["93"].gpus, parsed.merged) == (9, 1)


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("2026-07-01T10:00:00", "2026-07-01T08:00:00+00:00"),
        ("2026-01-01T10:00:00", "2026-01-01T09:00:00+00:00"),
        ("2026-10-25T02:30:00", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T02:30:00+0100", "2026-10-25T01:30:00+00:00"),
        ("1772611200", "2026-03-04T08:00:00+00:00"),
    ],
)
def test_times_in_the_sites_zone(written: str, utc: str) -> None:
    (job,) = read(line(Submit=written), zone=ZURICH).jobs
    assert job.submit.isoformat() == utc


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Submit": "2026-03-04T08:00:00"}, "submit is a time without a zone; give --tz or set timezone"),
        ({"Submit": "Ystday 14:03"}, "submit is not a time"),
        ({"Submit": "Unknown"}, "has no Submit time"),
        ({"JobID": "abc"}, "has a job id that cannot be understood"),
        ({"TimelimitRaw": "soon"}, "is not a time limit"),
        ({"ReqTRES": f"cpu=1,gres/gpu={2**64}"}, "has a GPU request that cannot be understood"),
        ({"ReqTRES": "gres/gpu=-1"}, "has a GPU request that cannot be understood"),
        ({"ReqTRES": "gres/gpu=1.5"}, "has a GPU request that cannot be understood"),
        ({"ReqTRES": "gres/gpu=1e3"}, "has a GPU request that cannot be understood"),
        ({"Submit": "99999999999999999999"}, "submit is not a time"),
        ({"NNodes": "two"}, "nnodes is not a whole number"),
        ({"User": "a|b"}, "has not the columns of the header"),
        ({"State": "COMPLETED", "Start": "2026-03-04T09:00:00Z", "End": "2026-03-04T08:30:00Z"}, "ends before it"),
    ],
)
def test_a_row_that_cannot_be_used_is_set_aside_with_the_reason(changes: dict[str, str], why: str) -> None:
    parsed = read(line(**changes), line(JobID="99"))
    assert (len(parsed.jobs), parsed.quarantined.total()) == (1, 1)
    assert why in parsed.account()[0] and "row 2" in parsed.account()[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEADER, "ends within its header line"),
        (line() + "\n", "no header with JobID"),
        ("JobID|State\n", "lacks submit"),
        ("JobID|State|Submit\n", "lacks ReqTRES or AllocTRES"),
    ],
)
def test_output_without_its_header_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        sacct.read(text, Context("q"))


def test_a_header_alone_is_an_empty_queue() -> None:
    parsed = read()
    assert parsed.whole and not parsed.jobs


def test_output_that_is_cut_off_is_not_whole() -> None:
    assert not sacct.read(f"{HEADER}\n{line()}", Context("q")).whole


def test_a_model_may_be_called_by_a_number() -> None:
    (job,) = read(line(ReqTRES="cpu=1,gres/gpu:4090=2", AllocTRES="")).jobs
    assert (job.gpus, job.gpu_model) == (2, "rtx-4090")
