"""Slurm's SLUID: an attempt's name for good, which ids are not where a controller was reset."""

from pathlib import Path

import pytest

from broker.history.exporting import as_csv, to_file
from broker.history.importing import Options, import_file
from broker.history.past import jobs
from broker.model.job import JobState
from state.history.facts import turn_of
from state.history.store import History
from tests.history.conftest import HEADER, NOW, Bring, row
from tests.queues import fixtures

NAMED = f"{HEADER}|SLUID|OriginalSLUID"
ONE, OTHER = "sCH7X9K2M5M000", "sCH7XB11QZ4000"


def named(sluid: str, original: str = "", **cells: object) -> str:
    return f"{row(**cells)}|{sluid}|{original}"  # type: ignore[arg-type]


@pytest.fixture
def told(history: History, tmp_path: Path) -> Bring:
    names = iter(range(100))

    def imported(*rows: str, header: str = NAMED) -> object:
        file = tmp_path / f"named{next(names)}.txt"
        file.write_text("\n".join([header, *rows]) + "\n")
        return import_file(file, Options(timezone="UTC"), history, NOW)

    return imported  # type: ignore[return-value]


def test_an_id_that_comes_again_in_the_same_second_is_another_attempt(history: History, told: Bring) -> None:
    found = told(named(ONE), named(OTHER, end="2026-05-01T05:10:00"))
    assert (found.kept, found.changed) == (2, 2)
    assert sorted(job.uid or "" for job in jobs(history)) == [ONE, OTHER]


def test_the_same_rows_in_another_order_change_nothing(history: History, told: Bring) -> None:
    told(named(ONE), named(OTHER, end="2026-05-01T05:10:00"))
    before = list(jobs(history))
    assert told(named(OTHER, end="2026-05-01T05:10:00"), named(ONE)).changed == 0
    assert list(jobs(history)) == before


def test_a_resize_renews_the_sluid_but_not_the_attempt(history: History, told: Bring) -> None:
    earlier = named(ONE, ONE, start="2026-05-01T00:00:00", end="2026-05-01T01:00:00", state="RESIZING", gpus=8)
    told(named(OTHER, ONE, start="2026-05-01T01:00:00", end="2026-05-01T03:00:00", gpus=16), earlier)
    ((attempt,),) = history.jobs()
    assert [size.gpus for size in attempt.sizes] == [8, 16]


def test_a_resize_that_only_the_sluid_tells_of_is_said(told: Bring) -> None:
    found = told(f"{row(state='RESIZING', end='2026-05-01T01:00:00')}|{ONE}", header=f"{HEADER}|SLUID")
    assert "ask for OriginalSLUID" in found.problems[0]


@pytest.mark.parametrize("first", ["named", "plain"])
def test_with_and_without_it_is_one_attempt_and_the_end_is_believed(history: History, told: Bring, first: str) -> None:
    """As after an upgrade of Slurm, or beside a live queue, which has none."""
    plain = (row(state="RUNNING", end="Unknown"),)
    whole = (named(ONE),)
    for _ in range(2):
        if first == "plain":
            told(*plain, header=HEADER)
        told(*whole)
        told(*plain, header=HEADER)
    (job,) = jobs(history)
    assert (job.state, job.uid) == (JobState.DONE, ONE)


def test_sacct_as_json_says_the_same_and_an_export_reads_back(history: History, tmp_path: Path) -> None:
    (path,) = (path for path in fixtures.of_format("sacct-json") if path.name == "sluid.json")
    assert import_file(path, Options(timezone="UTC"), history, NOW).changed == 3
    before = sorted(jobs(history), key=lambda job: str(job.uid))
    assert [(job.id, job.uid) for job in before] == [("201", ONE), ("201", OTHER), ("202", "sCH7XD00000000")]
    target = tmp_path / "export.csv"
    to_file(target, as_csv, before)
    again = import_file(target, Options(timezone="UTC"), history, NOW)
    assert (again.kept, again.changed) == (3, 0)


def test_a_name_gives_one_turn_below_zero() -> None:
    assert turn_of(ONE) == turn_of(ONE) < 0
    assert turn_of(ONE) != turn_of(OTHER)
