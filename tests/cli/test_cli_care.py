"""`check`, `offers`, and the care for a state file: lock, copy, loss."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from state.lock import Holder, lock_path
from tests.cli.conftest import Broker, purchases


def test_check_finds_all_in_order_and_changes_nothing(broker: Broker, demo: Path) -> None:
    ran = broker("check", "-c", demo)
    assert ran.code == 0, ran
    assert "0 errors" in ran.out
    for area in ("configuration", "state", "queue queue", "clock", "aws/main/us-east-1", "gcp/", "azure/"):
        assert area in ran.out
    assert purchases(demo) == 0


def test_check_v_says_where_each_value_comes_from(broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_LOCK_TIMEOUT", "5s")
    settings = {each["key"]: each for each in broker("check", "-v", "--json", "-c", demo).document["settings"]}
    assert settings["lock_timeout"]["origin"] == "environment"
    assert settings["mode"]["origin"] == "file"
    assert settings["purchase.lead"]["origin"] == "default"


def test_check_reports_everything_even_after_a_first_error(broker: Broker, demo: Path) -> None:
    (demo.parent / "queue.csv").unlink()
    (demo.parent / "state.db").unlink()
    ran = broker("check", "-c", demo)
    assert ran.code == 1
    assert "2 errors" in ran.out
    assert "gcp/" in ran.out


def test_offers_of_one_gpu_cheapest_first(broker: Broker, demo: Path) -> None:
    shelf = broker("offers", "--gpu", "H100", "--json", "-c", demo).document["shelf"]["offers"]
    assert {offer["shape"]["gpu_model"].split("-")[0] for offer in shelf} == {"h100"}
    rates = [float(offer["price"]["usd_per_hour"]) / offer["shape"]["gpus"] for offer in shelf if offer["price"]]
    assert rates == sorted(rates)
    assert "no price: not bought" in broker("offers", "-c", demo).out
    assert broker("offers", "--gpu", "Z999", "-c", demo).code == 1


def test_a_backup_is_a_whole_state(broker: Broker, demo: Path, tmp_path: Path) -> None:
    broker("run", "-c", demo)
    assert broker("state", "backup", tmp_path / "copy.db", "-c", demo).code == 0
    original = broker("state", "history", "--json", "-c", demo)
    copy = broker("state", "history", "--json", "-c", demo, "--state", tmp_path / "copy.db")
    assert original.document == copy.document


def test_unlock_forgets_only_another_hosts_holder(broker: Broker, demo: Path) -> None:
    assert "Nobody holds" in broker("state", "unlock", "-c", demo).out
    gone = Holder(host="elsewhere", pid=1, since=datetime(2026, 3, 4, tzinfo=UTC), command="broker run")
    lock_path(demo.parent / "state.db").write_bytes(msgspec.json.encode(gone))
    assert broker("run", "-c", demo, "--lock-timeout", "1s").code == 4
    assert "elsewhere" in broker("state", "unlock", "-c", demo).out
    assert broker("state", "unlock", "--force", "-c", demo).code == 0
    assert broker("run", "-c", demo, "--lock-timeout", "1s").code == 0


def test_a_lost_state_is_adopted_and_buys_nothing_for_a_while(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = {each["reservation"]["id"] for each in broker("status", "--json", "-c", demo).document["status"]["held"]}
    before = purchases(demo)
    for path in demo.parent.glob("state.db*"):
        path.unlink()
    ran = broker("run", "-c", demo)
    assert ran.code == 1
    assert "state adopt" in ran.err
    assert broker("state", "adopt", "-c", demo).code == 0
    found = {each["reservation"]["id"] for each in broker("status", "--json", "-c", demo).document["status"]["held"]}
    assert found == held
    with (demo.parent / "queue.csv").open("a") as queue:
        queue.write("1005,vision,ana,2026-03-04T09:05:00Z,pending,16,h100,2,21600,10\n")
    assert broker("run", "-c", demo).code == 3
    assert purchases(demo) == before
    assert "nothing is bought before" in broker("status", "-c", demo).out


def test_adopt_is_for_a_lost_state_only(broker: Broker, demo: Path) -> None:
    ran = broker("state", "adopt", "-c", demo)
    assert ran.code == 1
    assert "nothing is lost" in ran.err
