"""The demo plays, judges itself by the clouds' own record, and leaves a folder to go on with."""

from pathlib import Path

import pytest

from broker.demo import demo
from broker.demo.folder import LIVE, MARK
from broker.view.console import Console
from tests.cli.conftest import Broker, Ran, broker

__all__ = ["broker"]


@pytest.fixture
def played(broker: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ran:
    """The first seven hours: contention, a dry zone, a lost reply, a killed run."""
    code = demo(tmp_path / "demo", Console(), pause_s=0, hours=7)
    return Ran(code, *capfd.readouterr())


def test_the_story_is_told_and_the_folder_goes_on(played: Ran, broker: Broker, tmp_path: Path) -> None:
    assert played.code == 0
    assert "not known" not in played.out
    for told in ("4 x p5.48xlarge", "unfilled", "unknown", "SIGKILL", "settled", "not two", "would have cost"):
        assert told in played.out, told
    config = tmp_path / "demo" / "broker.toml"
    held = broker("status", "-c", config, "--json").document["status"]
    assert {each["reservation"]["place"]["scope"]["provider"] for each in held["held"]} == {"aws", "gcp", "azure"}
    assert held["unsettled"] == []
    assert broker("plan", "-c", config).code == 0
    assert not (tmp_path / "demo" / LIVE).exists()


def test_an_earlier_demo_is_kept_beside_and_other_folders_are_left_alone(broker: Broker, tmp_path: Path) -> None:
    mine = tmp_path / "demo"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    ran = broker("demo", "--fast", "--dir", mine)
    assert ran.code == 1
    assert "not made by a demo" in ran.err
    assert (mine / "thesis.txt").read_text() == "years of work"
    (mine / MARK).touch()
    from broker.demo.folder import fresh

    _, moved = fresh(mine)
    assert moved == tmp_path / "demo-1"
    assert (moved / "thesis.txt").read_text() == "years of work"


@pytest.mark.deep
def test_the_whole_day(broker: Broker, tmp_path: Path) -> None:
    ran = broker("demo", "--fast", "--dir", tmp_path / "day")
    assert ran.code == 0, ran
    for told in ("it is renewed", "it is given back", "the clouds' own bill", "at least"):
        assert told in ran.out, told
