"""Files into the history: each row once, in whatever order, and every kind of row as what it is."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.history.importing import Imported, Options, import_file
from broker.history.past import jobs
from broker.history.summary import summarise
from broker.model.job import Job, JobState
from broker.queues import sacct
from broker.queues.csv_jobs import write as as_csv
from broker.queues.jsonl_jobs import write as as_jsonl
from broker.queues.parsed import Context
from state.history.store import History
from tests.history.conftest import HEADER, NOW, Bring, row, written

HOUR = 3600


def held(history: History) -> list[Job]:
    return list(jobs(history))


def counted(found: Imported) -> bool:
    return found.rows == found.kept + found.merged + found.dropped + found.quarantined


def test_the_same_file_again_is_not_even_read(history: History, bring: Bring, tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", [row("1"), row("2")])
    first = import_file(file, Options(timezone="UTC"), history, NOW)
    before = held(history)
    again = import_file(file, Options(timezone="UTC"), history, NOW)
    assert (first.kept, first.changed, again.known, again.rows) == (2, 2, True, 0)
    assert held(history) == before


def test_the_same_rows_in_another_file_change_nothing(history: History, bring: Bring) -> None:
    rows = [row("1"), row("2"), row("3", end="Unknown", state="RUNNING")]
    bring(rows)
    before = held(history)
    again = bring(rows[::-1])
    assert (again.known, again.kept, again.changed) == (False, 3, 0)
    assert held(history) == before


ROWS = st.lists(
    st.builds(
        lambda number, day, hour, length, state, gpus: row(
            str(number),
            submit=f"2026-05-{day:02d}T{hour:02d}:00:00",
            start=f"2026-05-{day:02d}T{hour:02d}:30:00" if state != "PENDING" else "Unknown",
            end=f"2026-05-{day + 1:02d}T{length:02d}:00:00" if state not in ("RUNNING", "PENDING") else "Unknown",
            state=state,
            gpus=gpus,
        ),
        st.integers(1, 4),
        st.integers(1, 5),
        st.integers(0, 3),
        st.integers(0, 23),
        st.sampled_from(["COMPLETED", "PREEMPTED", "RUNNING", "PENDING", "CANCELLED by 7"]),
        st.sampled_from([1, 8]),
    ),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_windows_that_overlap_in_any_order_come_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], random: object, cut: int, other: int
) -> None:
    folder = tmp_path_factory.mktemp("windows")
    low, high = sorted((cut, other))
    windows = [rows[:high], rows[low:]]
    shuffled = [list(window) for window in windows]
    for window in shuffled:
        random.shuffle(window)  # type: ignore[attr-defined]
    ends = []
    for name, order in (("a", windows), ("b", shuffled[::-1]), ("c", [*windows, *shuffled])):
        with History.open(folder / f"{name}.db") as history:
            for index, window in enumerate(order):
                if window:
                    import_file(written(folder / f"{name}{index}.txt", window), Options(timezone="UTC"), history, NOW)
            ends.append([job for job in held(history) if not job.state.live])
    assert ends[0] == ends[1] == ends[2]


def test_a_requeued_job_is_one_job_of_two_attempts(history: History, bring: Bring) -> None:
    first = row("7", end="2026-05-01T01:00:00", state="NODE_FAIL")
    second = row("7", submit="2026-05-01T01:00:00", start="2026-05-01T01:30:00", end="2026-05-01T03:00:00")
    bring([second])
    bring([first])
    found = held(history)
    assert [(job.attempt, job.state) for job in found] == [(1, JobState.FAILED), (2, JobState.DONE)]
    assert found[0].submit == found[1].submit
    assert found[1].requeued is not None
    assert summarise(history).total.jobs == 1


def test_an_id_that_comes_again_weeks_later_is_another_job(history: History, bring: Bring) -> None:
    bring([row("7"), row("7", submit="2026-05-20T00:00:00", start="2026-05-20T00:30:00", end="2026-05-20T03:00:00")])
    assert [job.attempt for job in held(history)] == [1, 1]
    assert summarise(history).total.jobs == 2


def test_an_id_of_a_second_cluster_is_another_job(history: History, bring: Bring) -> None:
    bring([row("7"), row("7", cluster="jura")])
    assert sorted(job.cluster for job in held(history)) == ["alps", "jura"]


def test_tasks_of_an_array_are_jobs_of_their_own(history: History, bring: Bring) -> None:
    bring([row("9_1"), row("9_[2-4%2]", start="Unknown", end="Unknown", state="PENDING")])
    assert sorted(job.id for job in held(history)) == ["9_1", "9_2", "9_3", "9_4"]


def test_parts_of_a_heterogeneous_job_are_one_job(history: History, bring: Bring) -> None:
    bring([row("93+0", gpus=8), row("93+1", gpus=16)])
    (job,) = held(history)
    assert (job.id, job.gpus) == ("93", 24)


def test_sizes_of_a_resized_job_add_up_in_gpu_time(history: History, bring: Bring) -> None:
    earlier = row("5", start="2026-05-01T00:00:00", end="2026-05-01T01:00:00", state="RESIZING", gpus=8)
    present = row("5", start="2026-05-01T01:00:00", end="2026-05-01T03:00:00", gpus=16)
    bring([present, earlier])
    total = summarise(history).total
    assert (total.jobs, total.resized) == (1, 1)
    assert total.gpu_hours == pytest.approx(8 * 1 + 16 * 2)


def test_a_job_said_to_run_long_after_its_cluster_went_on_is_a_runaway(history: History, bring: Bring) -> None:
    bring([row("1", end="Unknown", state="RUNNING")])
    bring([row("2", submit="2026-05-25T00:00:00", start="2026-05-25T00:30:00", end="2026-05-25T03:00:00")])
    total = summarise(history).total
    assert (total.live, total.runaway) == (0, 1)
    states = {job.id: (job.state, job.end) for job in held(history)}
    assert states["1"] == (JobState.GONE, None)


def test_a_job_that_runs_is_alive_without_an_end_until_its_end_is_told(history: History, bring: Bring) -> None:
    bring([row("1", end="Unknown", state="RUNNING")])
    assert [(job.state, job.end) for job in held(history)] == [(JobState.RUNNING, None)]
    bring([row("1")])
    assert [job.state for job in held(history)] == [JobState.DONE]
    bring([row("1", end="Unknown", state="RUNNING"), row("1b")])
    assert held(history)[0].state is JobState.DONE


def test_times_without_a_zone_are_refused(history: History, bring: Bring) -> None:
    found = bring([row("1")], timezone=None)
    assert found.failed
    assert "--tz" in found.problems[0]
    assert held(history) == []


@pytest.mark.parametrize(
    ("zone", "hour", "length"),
    [
        ("Europe/Zurich", "2026-10-25T02:30:00", 2 * HOUR),
        ("Australia/Sydney", "2026-04-05T02:30:00", 2 * HOUR),
        ("America/New_York", "2025-11-02T01:30:00", None),
    ],
)
def test_an_end_in_an_hour_that_comes_twice_is_not_before_its_start(
    history: History, bring: Bring, zone: str, hour: str, length: int | None
) -> None:
    day = hour[:10]
    bring([row("1", submit=f"{day}T00:00:00", start=f"{day}T00:30:00", end=hour)], timezone=zone)
    (job,) = held(history)
    assert job.start is not None
    assert job.end is not None
    assert job.end > job.start
    if length is not None:
        assert (job.end - job.start).total_seconds() in (length, length + HOUR)


@given(st.integers(0, 8759), st.sampled_from(["Europe/Zurich", "Australia/Sydney", "America/Santiago", "UTC"]))
@settings(max_examples=60, deadline=None)
def test_fast_times_are_those_of_the_queue_reader(hour: int, zone: str) -> None:
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    from broker.history.clocking import Clocking
    from broker.queues.parsed import Unfit
    from broker.queues.times import moment
    from state.encode import to_us

    text = f"{datetime(2026, 1, 1) + timedelta(hours=hour, minutes=hour % 60):%Y-%m-%dT%H:%M:%S}"  # noqa: DTZ001
    clock = Clocking(ZoneInfo(zone))
    try:
        told = moment(text, ZoneInfo(zone))
    except Unfit:
        with pytest.raises(Unfit):
            clock.us(text)
        return
    assert told is not None
    assert clock.us(text) == to_us(told)


def test_rows_read_as_the_queue_reader_reads_them(history: History, bring: Bring) -> None:
    rows = [
        row("1"),
        row("2", state="CANCELLED by 100"),
        row("3_4", state="OUT_OF_MEMORY"),
        row("4", start="Unknown", end="Unknown", state="PENDING"),
        row("5", state="TIMEOUT", gpus=64),
        row("6.batch"),
        row("7", gpus=0),
        row("x!"),
    ]
    found = bring(rows)
    parsed = sacct.read("\n".join([HEADER, *rows]) + "\n", Context("s", zone=__import__("zoneinfo").ZoneInfo("UTC")))
    assert counted(found)
    assert (found.dropped, found.quarantined) == (parsed.dropped.total(), parsed.quarantined.total())

    def key(job: Job) -> tuple[object, ...]:
        return job.id, job.state, job.submit, job.start, job.end, job.gpus, job.gpu_model, job.tenant, job.user

    assert sorted(map(key, held(history)), key=str) == sorted(map(key, parsed.jobs), key=str)


@pytest.mark.parametrize("write", [as_csv, as_jsonl])
def test_what_is_written_as_a_file_comes_back_the_same(
    history: History, bring: Bring, tmp_path: Path, write: object
) -> None:
    bring([row("1", state="NODE_FAIL"), row("1", submit="2026-05-01T03:00:00", start="2026-05-01T04:00:00",
           end="2026-05-01T05:00:00"), row("2_1"), row("3", end="Unknown", state="RUNNING")])  # fmt: skip
    file = tmp_path / "out.txt"
    file.write_text(write(held(history)), encoding="utf-8")  # type: ignore[operator]
    with History.open(tmp_path / "other.db") as other:
        found = import_file(file, Options(), other, NOW)
        assert counted(found)
        assert held(other) == held(history)


def test_a_gzip_file_is_read(history: History, tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(written(tmp_path / "a", [row()]).read_bytes()))
    assert import_file(file, Options(timezone="UTC"), history, NOW).kept == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\0\0", b"<html>login</html>", b"\x1f\x8bcut", b"JobID|State\n", b"hello world\n", b"\xff\xfeabc"],
)
def test_what_is_no_history_is_one_line(history: History, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad"
    file.write_bytes(content)
    found = import_file(file, Options(), history, NOW)
    assert found.failed
    assert len(found.problems) == 1
    assert "\n" not in found.problems[0]
    assert held(history) == []


def test_a_folder_and_a_missing_file_are_one_line(history: History, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        found = import_file(path, Options(), history, NOW)
        assert (found.failed, len(found.problems)) == (True, 1)


def test_the_last_line_without_its_end_is_set_aside(history: History, tmp_path: Path) -> None:
    file = tmp_path / "cut"
    file.write_text("\n".join([HEADER, row("1"), row("2")[:-20]]), encoding="utf-8")
    found = import_file(file, Options(timezone="UTC"), history, NOW)
    assert (found.kept, found.quarantined) == (1, 1)
    assert counted(found)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("1"), row("2", end="2026-05-01T23:00:00")], True),
        ([row("1"), row("2", end="Unknown", state="RUNNING")], True),
        ([row("1"), row("2", end="2026-05-02T00:00:00")], False),
        (
            [row("1", submit="2026-04-30T20:00:00", start="2026-04-30T21:00:00", end="2026-04-30T23:59:59"), row("2")],
            False,
        ),
        ([row("1", end="Unknown", state="RUNNING")], False),
    ],
)
def test_a_window_of_one_day_is_noticed(bring: Bring, rows: list[str], said: bool) -> None:
    """Without -S, sacct shows only what was there since midnight: that is no history."""
    assert any("without -S" in line for line in bring(rows).problems) is said
