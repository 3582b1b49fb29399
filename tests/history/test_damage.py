"""Damaged files: nothing is raised, every row is accounted for, and what is kept can be read again."""

import random
from pathlib import Path

import pytest

from broker.history.importing import Options, import_file
from broker.history.past import jobs
from state.history.store import History
from tests.history.conftest import HEADER, NOW, row
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


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_header_alone_is_a_cut_off_file_only_without_its_end(history: History, tmp_path: Path, end: str) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text(HEADER + end)
    found = import_file(file, OPTIONS, history, NOW)
    assert found.failed is (not end)
    assert ("cut off" in "".join(found.problems)) is found.failed
