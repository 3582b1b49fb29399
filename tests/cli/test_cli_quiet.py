"""With -q, and with nobody to confirm: why nothing was done is on stderr all the same, and first things come first."""

from pathlib import Path

import pytest

from broker.cli.asking import Asking
from broker.errors import Exit, UsageError
from broker.view.console import Console
from tests.cli.conftest import Broker, edit, one_line


@pytest.mark.parametrize("command", ["apply --yes", "run", "release --all-ours --yes"])
def test_quiet_says_on_stderr_what_refused_everything(broker: Broker, demo: Path, command: str) -> None:
    if command.startswith("release"):
        assert broker("run", "-c", demo).code == 0
    (demo.parent / "FREEZE").touch()
    ran = broker(*command.split(), "-q", "-c", demo)
    assert ran.code == Exit.REFUSED
    assert "broker: refused by freeze_file: frozen by" in one_line(ran)


def test_quiet_says_what_a_budget_refused_of_more(broker: Broker, demo: Path) -> None:
    ran = broker("apply", "--yes", "-q", "--max-hourly", "20", "-c", demo)
    assert ran.code == Exit.PARTLY_DONE
    assert "refused by max_usd_per_hour" in one_line(ran)


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_apply_says_what_could_not_be_read_where_it_does_nothing(
    broker: Broker, demo: Path, quiet: tuple[str, ...]
) -> None:
    (demo.parent / "queue.csv").unlink()
    ran = broker("apply", "--yes", *quiet, "-c", demo)
    assert ran.code == Exit.ERROR
    assert "queue.csv cannot be read" in ran.out
    assert "Nothing is decided about what could not be read: queue" in ran.out
    assert ("could not be read: queue" in ran.err) == bool(quiet)


def test_quiet_says_that_a_figure_is_missing(broker: Broker, demo: Path) -> None:
    edit(demo, 'state = "state.db"', 'state = "state.db"\nprices = "prices.csv"')
    (demo.parent / "prices.csv").write_text("provider,region,machine_type,usd_per_hour,source,retrieved\n")
    broker("run", "-c", demo)
    (demo.parent / "state.db").unlink()
    broker("state", "adopt", "-c", demo)
    ran = broker("report", "--strict", "-q", "-c", demo)
    assert (ran.code == Exit.PARTLY_DONE) == ("a price is missing" in ran.err)


def test_who_is_asked_sees_what_about_also_with_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.readline", lambda: "no\n", raising=False)
    assert not Asking(Console(quiet=True), yes=False, interactive=True).confirmed("+ reserve 4", "Do this?")
    assert "+ reserve 4" in capsys.readouterr().err


def test_nobody_is_asked_where_nobody_can_answer() -> None:
    with pytest.raises(UsageError, match="nobody is here"):
        Asking(Console(), yes=False, interactive=False).confirmed("+ reserve 4", "Do this?")


def test_an_id_that_does_not_exist_is_said_before_anybody_is_to_confirm(broker: Broker, demo: Path) -> None:
    line = one_line(broker("release", "nope", "-c", demo))
    assert "nope is in no listing" in line and "--yes" not in line


@pytest.mark.parametrize(("file", "said"), [("nope.json", "there is no plan nope.json"), ("queue", "not a plan")])
def test_so_is_a_plan_that_does_not_exist_or_is_none(broker: Broker, demo: Path, file: str, said: str) -> None:
    Path("queue").write_text("{")
    assert said in one_line(broker("apply", file, "-c", demo))


def test_so_is_a_mistake_in_the_configuration(broker: Broker, demo: Path) -> None:
    edit(demo, 'mode = "act"', 'mode = "acts"')
    for command in ("apply", "release --all-ours"):
        assert "has 1 mistake" in broker(*command.split(), "-c", demo).err


def test_what_exists_still_needs_a_word_that_it_may_be_done(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = broker("status", "--json", "-c", demo).document["status"]["held"][0]["reservation"]["id"]
    for command in (f"release {held}", "release --all-ours", "apply"):
        assert "--yes" in one_line(broker(*command.split(), "-c", demo))
