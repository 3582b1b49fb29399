"""Sources as a whole: what can be wrong with a file or a command, and that unknown is never taken for empty."""

import gzip
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from broker.clock import FixedClock
from broker.config import QueueSource
from broker.model.job import JobState
from broker.model.snapshot import SourceView, Trust
from broker.queues.read import detected, read_all, read_source

NOW = datetime(2026, 3, 4, 9, tzinfo=UTC)
CLOCK = FixedClock(NOW)
TABLE = "id,submit,gpus\n7,2026-03-04T08:00:00Z,8\n"


def view(source: QueueSource) -> SourceView:
    found = read_source(source, CLOCK, CLOCK)
    assert found.rows == found.kept + found.merged + found.dropped + found.quarantined
    assert found.kept == len(found.jobs)
    assert all("\n" not in line and line.startswith("queue q: ") for line in found.problems)
    return found


def written(folder: Path, content: bytes | str, name: str = "queue.csv", age: timedelta = timedelta(0)) -> QueueSource:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    at = (NOW - age).timestamp()
    os.utime(path, (at, at))
    return QueueSource(name="q", files=(path,), pools=("h100",))


def program(code: str, timeout_s: float = 20, max_bytes: int = 10**6) -> QueueSource:
    return QueueSource(
        name="q", command=(sys.executable, "-c", code), timeout=timedelta(seconds=timeout_s), max_bytes=max_bytes
    )


def unknown(source: QueueSource, why: str) -> None:
    found = view(source)
    assert (found.trust, found.jobs, found.pools) == (Trust.UNKNOWN, (), source.pools)
    (line,) = found.problems
    assert why in line


@pytest.mark.parametrize(
    "content",
    [
        TABLE,
        b"\xef\xbb\xbf" + TABLE.encode(),
        TABLE.encode("utf-16"),
        gzip.compress(TABLE.encode(), mtime=0),
        TABLE.replace("\n", "\r\n"),
    ],
)
def test_encodings_that_can_be_read(tmp_path: Path, content: bytes | str) -> None:
    found = view(written(tmp_path, content))
    assert (found.trust, found.kept, found.as_of) == (Trust.COMPLETE, 1, NOW)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (TABLE.encode("latin-1") + b"\xe9\n", "is not UTF-8 (byte"),
        (TABLE.encode() + b"\0" * 100, "NUL bytes"),
        (TABLE.encode("utf-16-le"), "NUL bytes"),
        (gzip.compress(TABLE.encode(), mtime=0)[:-9], "broken gzip"),
        (gzip.compress(b"0" * 10**7, mtime=0), "is larger than"),
        ("<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"),
        ("slurm_load_jobs error: Unable to contact slurm controller\n", "is in no format that is known"),
        ("user;job_id;submitted_at\n", "is a table of jobs, but has no column gpus; id, submit and gpus"),
        ("Auftrag;Zahl;Wer\n", "may be a table of jobs, but none of our columns is in it"),
        ('{"jobs":[],"errors":[{"error_number":9000}]}', "reports an error"),
        ('{"jobs":[{"job_id":1', "is not whole JSON"),
        ("id,submit,gpus\n7,2026-03-04T08:00:00,8\n", "set timezone"),
    ],
)
def test_content_that_cannot_be_believed(tmp_path: Path, content: bytes | str, why: str) -> None:
    source = written(tmp_path, content)
    unknown(QueueSource(name="q", files=source.files, pools=("h100",), max_bytes=10**6), why)


@pytest.mark.parametrize(
    "content", ["\x1b[2Jgone\x07\n", '{"jobs":[],"errors":["\\u001b[2J"]}', "id,submit,gpus,\x1b[2J\n1,2,3,4\n"]
)
def test_what_a_queue_says_cannot_steer_a_terminal(tmp_path: Path, content: str) -> None:
    found = view(written(tmp_path, content))
    assert found.problems and all(line.isprintable() for line in found.problems)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    unknown(QueueSource(name="q", files=(tmp_path / "none",)), "No such file")
    unknown(QueueSource(name="q", files=(tmp_path,)), "is not a regular file")
    os.mkfifo(tmp_path / "pipe")
    unknown(QueueSource(name="q", files=(tmp_path / "pipe",)), "is not a regular file")
    unknown(QueueSource(name="q", files=written(tmp_path, TABLE).files, max_bytes=5), "is larger than 5 bytes")


def test_links_in_a_ring_and_to_nowhere_are_one_line(tmp_path: Path) -> None:
    ring, other, dangling = (tmp_path / name for name in ("ring", "other", "dangling"))
    ring.symlink_to(other)
    other.symlink_to(ring)
    dangling.symlink_to(tmp_path / "none")
    unknown(QueueSource(name="q", files=(ring,)), "Too many levels of symbolic links")
    unknown(QueueSource(name="q", files=(dangling,)), "No such file")


@pytest.mark.parametrize("step", ["stat", "read_bytes"])
def test_a_file_that_we_may_not_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Whoever runs the tests may read everything, so the refusal is played."""
    source = written(tmp_path, TABLE)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, step, refuse)
    unknown(source, "cannot be read: Permission denied; check the path and its mode")


def test_a_file_that_is_too_old_or_from_the_future(tmp_path: Path) -> None:
    unknown(written(tmp_path, TABLE, age=timedelta(minutes=61)), "is 1 h 1 min old, allowed are 30 min")
    unknown(written(tmp_path, TABLE, age=timedelta(minutes=-61)), "1 h 1 min in the future")
    assert view(written(tmp_path, TABLE, age=timedelta(minutes=29))).trust is Trust.COMPLETE


def test_a_new_copy_of_an_old_answer_is_old(tmp_path: Path) -> None:
    old = int((NOW - timedelta(hours=2)).timestamp())
    unknown(
        written(tmp_path, f'{{"jobs":[],"errors":[],"last_update":{{"set":true,"number":{old}}}}}'), "2 h 0 min old"
    )


def test_age_counts_from_the_machines_clock_when_the_other_is_a_sandboxs(tmp_path: Path) -> None:
    path = tmp_path / "queue.csv"
    path.write_text(TABLE)
    found = read_source(QueueSource(name="q", files=(path,)), CLOCK)
    assert found.trust is Trust.COMPLETE and found.as_of and NOW - found.as_of < timedelta(minutes=1)


@pytest.mark.parametrize("content", ["id,submit,gpus\n", '{"jobs":[],"errors":[]}', '{"meta":{"jobs":0}}\n'])
def test_an_empty_queue_is_complete(tmp_path: Path, content: str) -> None:
    found = view(written(tmp_path, content))
    assert (found.trust, found.rows, found.problems) == (Trust.COMPLETE, 0, ())


def test_rows_that_were_set_aside_make_it_partial(tmp_path: Path) -> None:
    found = view(written(tmp_path, TABLE + "8,soon,8\n"))
    assert (found.trust, found.kept, found.quarantined) == (Trust.PARTIAL, 1, 1)
    assert "1 row set aside: submit is not a time" in found.problems[0]


def test_a_command_is_read() -> None:
    found = view(program(f"print({TABLE!r}, end='')"))
    assert (found.trust, found.kept, found.as_of) == (Trust.COMPLETE, 1, NOW)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; print('id,submit,gpus'); print('no route', file=sys.stderr); sys.exit(3)", "(exit 3): no route"),
        ("import sys; sys.exit(1)", "(exit 1); run it by hand"),
        ("pass", "printed nothing"),
        ("import os; os.kill(os.getpid(), 9)", "(signal 9)"),
        ("print('<html><body>502</body></html>')", "is a web page"),
        ("print('x' * 2_000_000)", "printed more than"),
    ],
)
def test_commands_that_fail(code: str, why: str) -> None:
    unknown(program(code), why)


def test_a_program_that_is_not_there() -> None:
    unknown(QueueSource(name="q", command=("/no/such/squeue",)), "cannot be started: No such file")


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(mark)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    begun = time.monotonic()
    unknown(program(code, timeout_s=1), "did not end within 1 s")
    assert time.monotonic() - begun < 10
    assert _gone(int(mark.read_text()))


def test_a_child_that_outlives_its_parent_does_not_hold_us(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    unknown(program(code, timeout_s=1), "did not end within 1 s")


def test_an_interrupted_program_leaves_no_command_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys; from datetime import timedelta; from broker.clock import WallClock;"
        "from broker.config import QueueSource; from broker.queues.read import read_all;"
        f"read_all([QueueSource(name='q', command=(sys.executable, '-c', {child!r}))], WallClock())"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=10)
    assert _gone(int(mark.read_text()))


def _gone(pid: int) -> bool:
    """Within seconds: a kill takes a moment to arrive, and a killed child may stay a zombie until it is collected."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_several_sources_at_once_and_who_is_believed(tmp_path: Path) -> None:
    low = tmp_path / "low.csv"
    high = tmp_path / "high.csv"
    low.write_text("id,submit,gpus,state\n1,2026-03-04T08:00:00Z,8,pending\n2,2026-03-04T08:00:00Z,8,pending\n")
    high.write_text(
        "id,submit,gpus,state,attempt\n1,2026-03-04T08:00:00Z,8,done,2\n1,2026-03-04T07:00:00Z,8,preempted,1\n"
    )
    missing = QueueSource(name="gone", files=(tmp_path / "gone",))
    sources = (QueueSource(name="low", files=(low,)), missing, QueueSource(name="high", files=(high,), precedence=1))
    first, gone, last = read_all(sources, CLOCK)
    assert [(job.id, job.state) for job in first.jobs] == [("2", JobState.PENDING)]
    assert (first.kept, first.merged, first.rows) == (1, 1, 2)
    assert gone.trust is Trust.UNKNOWN
    assert len(last.jobs) == 2


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, TABLE).files[0]
    found = view(QueueSource(name="q", files=(path, path)))
    assert (found.kept, found.merged, found.rows) == (1, 1, 2)


def test_the_format_is_found_out_with_a_reason(tmp_path: Path) -> None:
    for content, name in (
        (TABLE, "csv"),
        ('{"jobs": []}', "squeue"),
        ('{\n "jobs": []}', "squeue"),
        ('{"id": 1}\n{"id": 2}\n', "jsonl"),
        ("JobID|State|Submit\n", "sacct"),
        ('Loading\n{"jobs": []}\n', "squeue"),
    ):
        found = detected(written(tmp_path, content), CLOCK)
        assert found.name == name and found.why


def test_own_gpu_names_are_understood_and_new_ones_listed(tmp_path: Path) -> None:
    head = "id,submit,gpus,gpu_type\n"
    rows = [f"{number},2026-03-04T08:00:00Z,8,{name}\n" for number, name in enumerate(("Big", "a100", "brandnew"), 1)]
    source = written(tmp_path, head + "".join(rows))
    aliases = (("big", "h100"), ("a100", "a100-80gb"))
    found = view(msgspec.structs.replace(source, gpu_aliases=aliases))
    assert [job.gpu_model for job in found.jobs] == ["h100", "a100-80gb", "brandnew"]
    assert found.problems == ("queue q: GPU models not known: brandnew; say what they are in [gpu_aliases]",)


def test_a_machine_type_or_a_piece_may_stand_where_a_model_stands(tmp_path: Path) -> None:
    head = "id,submit,gpus,gpu_type\n"
    rows = [f"{number},2026-03-04T08:00:00Z,8,{name}\n" for number, name in enumerate(("ml.p5.48xlarge", "1g.5gb"), 1)]
    found = view(written(tmp_path, head + "".join(rows)))
    assert [job.gpu_model for job in found.jobs] == ["h100"]
    assert found.dropped == 1


def test_columns_of_other_names_make_it_a_table(tmp_path: Path) -> None:
    source = written(tmp_path, "Auftrag;Zahl;Wann\n7;8;2026-03-04T08:00:00Z\n")
    columns = (("gpus", "Zahl"), ("id", "Auftrag"), ("submit", "Wann"))
    found = view(msgspec.structs.replace(source, columns=columns))
    assert [(job.id, job.gpus) for job in found.jobs] == [("7", 8)]
    assert found.read_as == "csv: its columns are named by you"


def test_an_end_that_is_still_to_come_is_not_believed(tmp_path: Path) -> None:
    rows = "7,2026-03-04T08:00:00Z,8,done,2026-03-04T17:00:00Z\n8,2026-03-04T08:00:00Z,8,done,2026-03-04T08:30:00Z\n"
    found = view(written(tmp_path, f"id,submit,gpus,state,end\n{rows}"))
    assert [(job.id, bool(job.end)) for job in found.jobs] == [("7", False), ("8", True)]
    assert found.problems == ("queue q: job 7 has ended, but in the future: such ends are not believed",)


def test_what_was_dropped_is_counted_by_reason(tmp_path: Path) -> None:
    rows = "7,2026-03-04T08:00:00Z,8\n8,2026-03-04T08:00:00Z,0\n9,2026-03-04T08:00:00Z,0.5\n"
    assert view(written(tmp_path, f"id,submit,gpus\n{rows}")).dropped_why == (
        ("asks for a fraction of a GPU", 1), ("asks for no GPU", 1),
    )  # fmt: skip
