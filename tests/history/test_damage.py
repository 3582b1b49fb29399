"""Damaged files: nothing is raised, every row is accounted for, and what is kept can be read again."""

import gzip
import json
import random
from pathlib import Path

import msgspec
import pytest

from broker.history import importing, lines, sources
from broker.history.importing import Options, import_file
from broker.history.past import jobs
from broker.queues.registry import FORMATS
from state.history.store import History
from tests.history.conftest import HEADER, NOW, row, written
from tests.queues import fixtures
from tests.queues.mutations import mutated

OPTIONS = Options(timezone="Europe/Zurich")


@pytest.mark.parametrize("name", ["sacct", "csv", "jsonl", "squeue", "kubernetes"])
def test_mutated_files_are_accounted_for_row_by_row(history: History, tmp_path: Path, name: str) -> None:
    dice, samples = random.Random(name), [path.read_bytes() for path in fixtures.of_format(name)]
    for number in range(150):
        file = tmp_path / "queue"
        file.write_bytes(mutated(dice.choice(samples), dice))
        found = import_file(file, OPTIONS, history, NOW)
        total = found.kept + found.merged + found.dropped + found.quarantined
        assert found.known or found.failed or found.rows == total, f"{name}, input {number}"
        assert all("\n" not in line for line in found.problems)
    list(jobs(history))


@pytest.mark.parametrize(
    ("cells", "quarantined"),
    [
        (row("1_[,]", end="Unknown", state="PENDING"), 1),
        (row("7+99999999999999999999"), 1),
        (row("7").replace("|1|train", f"|{'9' * 5000}|train"), 1),
        (row("7").replace("|60|", f"|{'9' * 5000}|"), 0),
        (row("7", end="Unknown", state="RUNNING").replace("|60|", f"|{'9' * 5000}|"), 0),
    ],
)
def test_numbers_beyond_reason_are_set_aside_alone(
    history: History, tmp_path: Path, cells: str, quarantined: int
) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([HEADER, cells, row("8")]) + "\n")
    found = import_file(file, OPTIONS, history, NOW)
    assert (found.quarantined, found.kept) == (quarantined, 2 - quarantined)


@pytest.mark.parametrize(
    ("cells", "quarantined"),
    [
        (row("7" * 1000), 1),
        (row("7" * 1000 + "_1"), 1),
        (row("7", cluster="c" * 1000), 1),
        (row("7", user="u" * 1000), 1),
        (row("7", account="a" * 1000), 1),
        (row("7").replace("|gpu|", f"|{'q' * 1000}|"), 1),
        (row("7").replace("|gpu|", f"|{','.join(['gpu'] * 1000)}|"), 0),
        (row("7").replace("gpu:h100", f"gpu:{'m' * 1000}"), 1),
        (row("7").replace("|train", f"|{'t' * 1000}"), 0),
    ],
)
def test_names_without_end_are_set_aside_alone_or_cut(
    history: History, tmp_path: Path, cells: str, quarantined: int
) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([HEADER, cells, row("8")]) + "\n")
    found = import_file(file, OPTIONS, history, NOW)
    assert (found.quarantined, found.kept) == (quarantined, 2 - quarantined)
    assert all(len(job.name or "") <= 512 for job, *_ in history.jobs())
    assert any("are cut" in line for line in found.problems) == ("t" * 1000 in cells)


@pytest.mark.parametrize("name", ["sacct", "csv", "jsonl"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "latin", "nul", "line"])
def test_of_a_file_that_is_no_history_nothing_is_taken(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    """Though rows are taken in portions, and the fault shows behind many of them."""
    monkeypatch.setattr(importing, "_ROWS", 10)
    monkeypatch.setattr(lines, "_BLOCK", 1 << 12)
    monkeypatch.setattr(sources, "_CHUNK", 10)
    monkeypatch.setattr(lines, "_LONGEST", 1 << 16)
    plain = _many(name).encode()
    packed = bytearray(gzip.compress(plain, mtime=0))
    packed[-6] ^= 255
    file = tmp_path / "jobs"
    file.write_bytes({
        "cut": bytes(packed[:-100]), "flipped": bytes(packed), "latin": plain + b"\xe4\n", "nul": plain + b"\0\n",
        "line": plain + b"x" * (1 << 17) + b"\n",
    }[damage])  # fmt: skip
    found = import_file(file, msgspec.structs.replace(OPTIONS, format=name), history, NOW)
    assert found.failed
    assert not list(jobs(history))
    file.write_bytes(plain)
    assert import_file(file, OPTIONS, history, NOW).kept == 500


def _many(name: str) -> str:
    numbers = range(1, 501)
    if name == "sacct":
        return "\n".join([HEADER, *(row(str(number)) for number in numbers)]) + "\n"
    times = "2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z"
    if name == "csv":
        return "id,submit,gpus,end\n" + "".join(f"{number},{times[0]},8,{times[1]}\n" for number in numbers)
    records = ({"id": str(number), "submit": times[0], "gpus": 8, "end": times[1]} for number in numbers)
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_header_alone_is_a_cut_off_file_only_without_its_end(history: History, tmp_path: Path, end: str) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text(HEADER + end)
    found = import_file(file, OPTIONS, history, NOW)
    assert found.failed is (not end)
    assert ("cut off" in "".join(found.problems)) is found.failed


def refused(history: History, file: Path, why: str) -> None:
    found = import_file(file, Options(timezone="UTC"), history, NOW)
    assert found.failed and not found.kept
    (line,) = found.problems
    assert why in line and "\n" not in line
    assert list(jobs(history)) == []


def test_links_in_a_ring_and_files_that_we_may_not_read(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring, other, plain = tmp_path / "ring", tmp_path / "other", written(tmp_path / "plain.txt", [row()])
    ring.symlink_to(other)
    other.symlink_to(ring)
    refused(history, ring, "Too many levels of symbolic links")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    refused(history, plain, "cannot be read: Permission denied; check the path and its mode")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (row().encode("utf-16-le"), "NUL bytes"),
        (f"{HEADER}\n{row()}\n".encode() + b"\0\n", "NUL bytes"),
        (f"{HEADER}\n{row()}\n".encode() + b"\xff\n", "is not UTF-8"),
        (gzip.compress(f"{HEADER}\n{row()}\n".encode())[:-9], "broken gzip"),
        (b"<html><body>Sign in</body></html>", "is a web page"),
        (b"502 Bad Gateway\n", "is in no format that is known"),
        (b"sacct: error: slurmdbd: Unable to contact\n", "is in no format that is known"),
        (b"", "is empty"),
        (f"{HEADER}\n".encode() + b"7" * (17 << 20), "has a line of more than 16 MiB"),
    ],
)
def test_what_is_no_history_adds_nothing(history: History, tmp_path: Path, content: bytes, why: str) -> None:
    """And is not taken for known when it comes again. Of a large file, what was written before the fault stays."""
    file = tmp_path / "sacct.txt"
    file.write_bytes(content)
    refused(history, file, why)
    refused(history, file, why)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings_are_imported_alike(history: History, tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "sacct.txt"
    file.write_bytes(f"{HEADER}\n{row()}\n{row('8')}\n".encode(encoding))
    assert import_file(file, OPTIONS, history, NOW).kept == 2


@pytest.mark.parametrize("beyond", ["10000-01-01T00:00:00", "9" * 30, "99999-01-01", "9999-12-31T23:59:59-23:59"])
@pytest.mark.parametrize("column", ["Submit", "Start", "End", "Eligible"])
def test_dates_beyond_reason_are_set_aside_alone(history: History, tmp_path: Path, beyond: str, column: str) -> None:
    cells = row().split("|")
    cells[HEADER.split("|").index(column)] = beyond
    found = import_file(written(tmp_path / "sacct.txt", ["|".join(cells), row("8")]), OPTIONS, history, NOW)
    assert (found.quarantined, found.kept) == (1, 1)
    assert [job.id for job in jobs(history)] == ["8"]


def test_another_format_behind_a_history_is_set_aside(history: History, tmp_path: Path) -> None:
    file = written(tmp_path / "sacct.txt", [row(), '{"id": "7", "submit": 1, "gpus": 8}', "id,submit,gpus"])
    found = import_file(file, OPTIONS, history, NOW)
    assert (found.kept, found.quarantined, sum("set aside" in line for line in found.problems)) == (1, 2, 1)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_ids_of_a_second_cluster_are_other_jobs(history: History, name: str) -> None:
    """Where the format has no cluster of its own, the one that is told makes the identity."""
    path = fixtures.of_format(name)[0]
    for cluster in ("one", "two"):
        told = Options(format=name, timezone="UTC", cluster=cluster, procs_per_gpu=8)
        assert import_file(path, told, history, NOW).kept
    found = list(jobs(history))
    for each in ("one", "two"):
        assert len([job for job in found if job.cluster == each]) in (0, len(found) / 2)
    assert len({(job.cluster, job.id, job.attempt, job.submit) for job in found}) == len(found)


def test_what_is_too_large_unpacked_is_not_told_of_a_setting_that_it_does_not_have(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    file = tmp_path / "squeue.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"jobs": [], "padding": " " * 5000}).encode()))
    found = import_file(file, OPTIONS, history, NOW)
    assert found.failed and found.problems == (f"{file} is larger than 1,000 bytes unpacked; import it in parts",)
