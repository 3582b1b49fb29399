"""`broker forecast` on the state's own history: what was learned is kept, and goes on as if it had never stopped."""

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Broker
from tests.cli.test_cli_forecast import START, history

KEPT = "state.demand.json"
CONFIG = '[[pool]]\nname = "a"\ngpu = "h100"\ndefault = true\n'


def until(source: Path, target: Path, days: int) -> Path:
    """What was known after so many days: jobs that came later are not, nor ends."""
    limit = str(START.replace(day=START.day + days))
    with source.open() as read, target.open("w", newline="") as write:
        rows, out = csv.DictReader(read), csv.writer(write)
        out.writerow(rows.fieldnames or ())
        out.writerows(row.values() for row in rows if row["end"] < limit)
    return target


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Path:
    (tmp_path / "broker.toml").write_text(CONFIG)
    past = until(history(tmp_path / "all.csv", 24), tmp_path / "past.csv", 20)
    assert broker("history", "import", past).code == 0
    return tmp_path


def rows(broker: Broker) -> Any:
    ran = broker("forecast", "--hours", 2, "--json")
    assert ran.code == 0, ran.err
    (pool,) = ran.document["forecast"]["pools"]
    return pool["rows"]


def test_it_goes_on_from_what_was_learned(broker: Broker, place: Path) -> None:
    first = rows(broker)
    head = json.loads((place / KEPT).read_bytes())
    assert (head["version"], head["seed"], head["trained_from"]) == (1, 0, "2026-03-02T00:00:00Z")
    assert (place / KEPT).stat().st_mode & 0o777 == 0o600
    begin = time.process_time()
    assert rows(broker) == first
    again_s = time.process_time() - begin
    assert broker("history", "import", "all.csv").code == 0
    resumed = rows(broker)
    assert resumed != first
    (place / KEPT).unlink()
    begin = time.process_time()
    assert rows(broker) == resumed, "as one that had never stopped"
    assert again_s < 0.7 * (time.process_time() - begin), "nothing was learned twice"


def test_given_files_leave_nothing_behind(broker: Broker, place: Path) -> None:
    assert broker("forecast", "--history", "all.csv", "--hours", 1).code == 0
    assert not (place / KEPT).exists()


@pytest.mark.parametrize("damage", [b"", b"{", b'{"kind":"DemandMemory"}', b"\xff"])
def test_what_is_damaged_is_said_and_learned_anew(broker: Broker, place: Path, damage: bytes) -> None:
    good = rows(broker)
    (place / KEPT).write_bytes(damage)
    ran = broker("forecast", "--hours", 2, "--json")
    assert f"{KEPT} is not used: it is damaged; it is learned anew" in ran.out + ran.err
    assert rows(broker) == good
