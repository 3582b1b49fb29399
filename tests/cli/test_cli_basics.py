"""How every command behaves: flags, usage errors, exit codes, one line on stderr, JSON on stdout."""

import json
from pathlib import Path

import pytest

from broker import __version__
from tests.cli.conftest import Broker


def test_version(broker: Broker) -> None:
    assert broker("--version")[:2] == (0, f"broker {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["bogus"], ["status", "--bogus"], ["report", "--by", "moon"], [], ["state"]]
)
def test_wrong_usage_exits_1_with_one_line_that_names_the_help(broker: Broker, arguments: list[str]) -> None:
    ran = broker(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("broker: ")
    assert "--help" in ran.err


def test_common_flags_stand_before_or_after_the_command(broker: Broker, demo: Path) -> None:
    before = broker("-c", demo, "--json", "status")
    after = broker("status", "-c", demo, "--json")
    assert before.document["kind"] == after.document["kind"] == "status"


@pytest.mark.parametrize(("name", "value"), [("BROKER_CONFIG", None), ("BROKER_JSON", "1")])
def test_common_flags_are_variables_too(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    monkeypatch.setenv(name, value or str(demo))
    ran = broker("status", *(["-c", demo] if value else []))
    assert ran.code == 0
    assert ran.out.startswith("{") == (name == "BROKER_JSON")


def test_a_flag_wins_over_the_variable_and_the_variable_over_the_file(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_STATE", "of-variable.db")
    assert "of-flag.db" in broker("status", "-c", demo, "--state", "of-flag.db").err
    assert "of-variable.db" in broker("status", "-c", demo).err


def test_an_error_is_a_document_too_with_json(broker: Broker) -> None:
    ran = broker("status", "-c", "nowhere.toml", "--json")
    assert ran.code == 1
    assert ran.document["kind"] == "error"
    assert "nowhere.toml" in ran.document["what"]
    assert "nowhere.toml" in ran.err


def test_no_traceback_without_vv(broker: Broker) -> None:
    assert "Traceback" not in broker("status", "-c", "nowhere.toml", "-v").err
    assert "Traceback" in broker("status", "-c", "nowhere.toml", "-vv").err


def test_what_nobody_foresaw_is_one_line_too(broker: Broker, monkeypatch: pytest.MonkeyPatch, demo: Path) -> None:
    def burst(*_: object, **__: object) -> None:
        raise RuntimeError("boom\nboom")

    monkeypatch.setattr("broker.commands.standpoint.load", burst)
    ran = broker("status", "-c", demo)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "RuntimeError: boom boom" in ran.err


def test_interrupted_exits_130(broker: Broker, monkeypatch: pytest.MonkeyPatch, demo: Path) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("broker.commands.standpoint.load", stop)
    ran = broker("status", "-c", demo)
    assert (ran.code, ran.out) == (130, "")
    assert "interrupted" in ran.err


def test_no_colour_where_nobody_looks(broker: Broker, demo: Path) -> None:
    assert "\x1b" not in broker("status", "-c", demo).out


def test_a_flag_without_its_value_names_the_help_of_its_command(broker: Broker) -> None:
    assert broker("backtest", "--synthetic").err.endswith("See: broker backtest --help\n")
    assert broker("history", "import", "--tz").err.endswith("See: broker history import --help\n")


def test_a_question_is_not_followed_by_a_full_stop(broker: Broker, demo: Path) -> None:
    assert 'did you mean "aws"? Use one of' in broker("plan", "--provider", "awz", "-c", demo).err


def test_init_overwrites_nothing(broker: Broker, demo: Path) -> None:
    before = demo.read_bytes()
    ran = broker("init", "demo", "--sandbox")
    assert ran.code == 1
    assert "exists already" in ran.err
    assert demo.read_bytes() == before


def test_init_makes_a_state_where_only_that_is_missing(broker: Broker, demo: Path) -> None:
    """A lost state is found again by `state adopt`; where nothing was ever bought there is nothing to find."""
    state, before = demo.parent / "state.db", demo.read_bytes()
    state.unlink()
    assert broker("state", "adopt", "-c", demo).code == 1
    ran = broker("init", "demo")
    assert (ran.code, demo.read_bytes()) == (0, before)
    assert state.exists() and f"broker state adopt -c {demo.relative_to(Path.cwd())}" in ran.out
    assert broker("plan", "-c", demo).code == 0


def test_init_makes_no_second_state_beside_what_one_bought(broker: Broker, demo: Path) -> None:
    """A new lineage would take its own for somebody else's, and never give them back."""
    assert broker("apply", "--yes", "-c", demo).code == 0
    for beside in ("state.db", "state.db-wal", "state.db-shm"):
        (demo.parent / beside).unlink(missing_ok=True)
    ran = broker("init", "demo")
    assert ran.code == 1 and "had bought something" in ran.err
    assert not (demo.parent / "state.db").exists()
    assert broker("state", "adopt", "-c", demo).code == 0
    assert "2 reservations held" in broker("status", "-c", demo).out


def test_init_for_real_clouds_watches_only(broker: Broker, tmp_path: Path) -> None:
    assert broker("init").code == 0
    assert 'mode = "observe"' in (tmp_path / "broker.toml").read_text()
    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600


def test_init_says_what_it_made(broker: Broker) -> None:
    made = broker("init", "here", "--sandbox", "--json").document
    assert made["written"] == ["here/broker.toml", "here/queue.csv", "here/world.json"]
    assert len(made["lineage"]) == 12


def test_an_unknown_reservation_is_named_with_what_to_do(broker: Broker, demo: Path) -> None:
    ran = broker("status", "cr-nowhere", "-c", demo)
    assert ran.code == 1
    assert "cr-nowhere" in ran.err
    assert "broker state history" in ran.err


def test_a_report_of_nothing(broker: Broker, demo: Path) -> None:
    assert broker("report", "-c", demo, "--format", "csv").out.startswith("tenant,spent_usd_low,spent_usd_high")
    assert json.loads(broker("report", "-c", demo, "--format", "json").out)["report"]["total"]["spent"]["low"] == "0"
    assert broker("report", "-c", demo, "--since", "yesterday-ish").code == 1


def test_jobs_by_tenant_and_pool_with_every_row_accounted_for(broker: Broker, demo: Path) -> None:
    ran = broker("jobs", "-c", demo)
    assert "4 rows read = 4 kept, 0 merged, 0 dropped, 0 quarantined" in ran.out
    groups = {(each["tenant"], each["pool"]): each for each in broker("jobs", "-c", demo, "--json").document["groups"]}
    assert groups["vision", "h100"]["queued_gpus"] == 24
    assert groups["nlp", "a100"]["queued_jobs"] == 1


def test_jobs_of_a_file_need_no_configuration(broker: Broker, demo: Path) -> None:
    assert "4 kept" in broker("jobs", demo.parent / "queue.csv").out


def test_a_queue_that_cannot_be_read_is_unknown_and_not_empty(broker: Broker, demo: Path) -> None:
    (demo.parent / "queue.csv").write_text("")
    ran = broker("jobs", "-c", demo)
    assert ran.code == 1
    assert "unknown, not empty" in ran.out
