"""`broker jobs --quarantine`, `--explain` and `--confirm`, and the doubt that a plan sees."""

from pathlib import Path

import pytest

from broker.cli import run
from broker.commands import queue_reading
from broker.commands.queue_reading import Given
from broker.errors import InputError
from broker.observe.drops import judged
from state.queue_reads import QueueRead, recall, remember

TABLE = "id,submit,gpus,account\n7,2026-03-04T08:00:00Z,8,nlp\n8,soon,8,nlp\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "queue.csv").write_text(TABLE)
    path = tmp_path / "broker.toml"
    path.write_text('mode = "observe"\n[[queue]]\nname = "q"\nfile = "queue.csv"\nmax_age = "3650d"\n'
                    '[[pool]]\nname = "h100"\ngpu = ["h100"]\n')  # fmt: skip
    return path


def test_each_row_that_was_set_aside(config: Path) -> None:
    (row,) = queue_reading.quarantine(config, Given(), flags={})
    assert (row.source, row.where, row.value) == ("q", "queue.csv:row 3", "soon")


def test_a_job_beside_its_raw_fields(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "-c", str(config), "--explain", "7"]) == 0
    out = capsys.readouterr().out
    assert "read as csv at queue.csv:2 of q" in out
    assert any(line.split()[:2] == ["account", "nlp"] and line.split()[-1] == "tenant" for line in out.splitlines())


def test_a_job_that_is_not_there(config: Path) -> None:
    with pytest.raises(InputError, match="no source holds a job 99"):
        queue_reading.explain(config, Given(), "99", flags={})


def test_a_person_confirms_a_drop(config: Path) -> None:
    state = config.with_name("state.db")
    remember(state, {"q": QueueRead(source="q", live=400), "other": QueueRead(source="other", live=5)})
    doubted = queue_reading.read(config, Given(), flags={}).sources
    assert any("broker jobs --confirm q" in line for line in doubted[0].problems)
    assert queue_reading.confirm(config, "q", flags={}) == 1
    assert {name: read.live for name, read in recall(state).items()} == {"q": 1, "other": 5}
    assert judged(doubted, recall(state)) == doubted


def test_why_a_source_is_taken_for_its_format(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "-v", "-c", str(config)]) == 0
    assert "read as csv: its first line names the columns id, submit, gpus" in capsys.readouterr().out
