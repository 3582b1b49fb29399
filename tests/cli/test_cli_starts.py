"""What owed starts want is learned by `broker schedule`, hour by hour, and kept beside the state."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from broker.clock import FixedClock
from broker.commands import scheduling
from tests.cli.conftest import Broker
from tests.cli.test_cli_schedule import CONFIG, HEADER
from tests.schedule.cluster import START

KEPT = "state.starts.json"


@pytest.fixture
def clock(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    (tmp_path / "broker.toml").write_text(CONFIG)
    (tmp_path / "queue.csv").write_text(HEADER)
    clock = FixedClock(START)
    monkeypatch.setattr(scheduling, "clock_of", lambda _: clock)
    return clock


def notes_after(broker: Broker, clock: FixedClock, hours: float, *flags: str) -> list[str]:
    clock.at = START + timedelta(hours=hours)
    ran = broker("schedule", "--json", *flags)
    assert ran.code == 0, ran.err
    notes: list[str] = ran.document["schedule"]["notes"]
    return notes


def test_an_hour_that_passed_is_learned_once_and_kept_for_the_owner(
    broker: Broker, clock: FixedClock, tmp_path: Path
) -> None:
    notes_after(broker, clock, 0)
    assert not (tmp_path / KEPT).exists(), "no hour has passed yet"
    for hours in (1, 1.4, 2, 2.5):
        notes_after(broker, clock, hours)
    (pool,) = json.loads((tmp_path / KEPT).read_bytes())["body"]["pools"].values()
    assert pool["hour"] == int(START.timestamp() // 3600) + 2
    assert pool["starts"]["wanted"] == [0.0, 0.0]
    assert (tmp_path / KEPT).stat().st_mode & 0o777 == 0o600


def test_a_look_only_writes_nothing(broker: Broker, clock: FixedClock, tmp_path: Path) -> None:
    notes_after(broker, clock, 0)
    notes_after(broker, clock, 1, "--look")
    assert not (tmp_path / KEPT).exists()


def test_a_damaged_file_is_said_and_begun_anew(broker: Broker, clock: FixedClock, tmp_path: Path) -> None:
    for hours in (0, 1):
        notes_after(broker, clock, hours)
    (tmp_path / KEPT).write_bytes((tmp_path / KEPT).read_bytes()[:100])
    assert f"{KEPT} is not used: it is damaged; it is learned anew" in notes_after(broker, clock, 2)
    assert not any("not used" in note for note in notes_after(broker, clock, 3))
