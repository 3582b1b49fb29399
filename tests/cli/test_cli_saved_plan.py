"""A saved plan can be looked at for as long as its file lasts: what it would do and cost, and why not any more."""

import csv
import json
import sqlite3
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from broker.clock import WallClock
from state.lock import Lock
from tests.cli.conftest import Broker, purchases
from tests.cli.test_cli_loop import HALF_A_MILLIONTH


@pytest.fixture
def saved(broker: Broker, demo: Path) -> Path:
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    return demo.parent.parent / "p.json"


def warned(broker: Broker, demo: Path) -> list[str]:
    """The warnings, which are the same in each form and never an error."""
    document: Any = None
    for how in ("json", "table", "md", "csv"):
        ran = broker("report", "--plan", "p.json", "-c", demo, "--format", how)
        assert ran.code == 0, ran
        document = document or json.loads(ran.out)
        said = ran.err if how == "csv" else ran.out
        assert all(warning in said for warning in document["warnings"])
    warnings: list[str] = document["warnings"]
    return warnings


def test_what_a_plan_would_cost_adds_up_however_it_is_grouped(broker: Broker, demo: Path, saved: Path) -> None:
    actions = json.loads(saved.read_text())["plan"]["actions"]
    added = sum((Decimal(each["usd_per_hour"]) for each in actions), Decimal(0))
    idle = sum(Decimal(each["usd_idle_at_worst"]) for each in actions)
    for by in ("tenant", "pool", "provider", "reservation"):
        report = broker("report", "--plan", "p.json", "-c", demo, "--by", by, "--json").document
        assert (report["kind"], report["complete"], report["warnings"]) == ("plan-report", True, [])
        assert (Decimal(report["total"]["usd_per_hour_added"]), Decimal(report["total"]["usd_idle_at_worst"])) == (
            added,
            idle,
        )
        lines = sum((Decimal(line["usd_per_hour_added"]) for line in report["lines"]), Decimal(0))
        assert abs(lines - added) <= len(report["lines"]) * HALF_A_MILLIONTH
    rows = list(csv.DictReader(StringIO(broker("report", "--plan", "p.json", "-c", demo, "--format", "csv").out)))
    assert {row["tenant"] for row in rows} == {"vision", "nlp"}
    assert broker("report", "--plan", "p.json", "-c", demo, "--strict").code == 0
    assert purchases(demo) == 0


def test_an_applied_plan_is_shown_with_a_warning(broker: Broker, demo: Path, saved: Path) -> None:
    before = broker("report", "--plan", "p.json", "-c", demo, "--json").document
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 0
    (warning,) = warned(broker, demo)
    assert warning.startswith("already applied at 20")
    after = broker("report", "--plan", "p.json", "-c", demo, "--json").document
    assert (after["lines"], after["total"]) == (before["lines"], before["total"])


def test_a_plan_that_the_state_moved_on_from_is_shown_with_a_warning(broker: Broker, demo: Path, saved: Path) -> None:
    assert broker("run", "-c", demo).code == 0
    (warning,) = warned(broker, demo)
    assert "serial" in warning
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 5


def test_an_expired_plan_is_shown_with_a_warning(
    broker: Broker, demo: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = WallClock().now() + timedelta(days=400)
    monkeypatch.setattr("broker.commands.saved_plans.clock_of", lambda _: WallClock())
    monkeypatch.setattr("broker.clock.WallClock.now", lambda _: later)
    (warning,) = warned(broker, demo)
    assert "expired" in warning


def test_a_plan_of_another_state_or_of_one_that_is_gone_is_shown_with_a_warning(
    broker: Broker, demo: Path, saved: Path
) -> None:
    for part in demo.parent.glob("state.db*"):
        part.unlink()
    (warning,) = warned(broker, demo)
    assert "not known" in warning
    assert not list(demo.parent.glob("state.db*"))
    assert broker("init", "other", "--sandbox").code == 0
    ran = broker("report", "--plan", "p.json", "-c", "other/broker.toml")
    assert (ran.code, "belongs to another state" in ran.out) == (0, True)


def test_looking_needs_no_lock_and_writes_nothing(broker: Broker, demo: Path, saved: Path) -> None:
    state = demo.parent / "state.db"

    def everything() -> list[str]:
        with sqlite3.connect(f"file:{state}?mode=ro", uri=True) as connection:
            return list(connection.iterdump())

    before, plan = everything(), saved.read_bytes()
    with Lock(state, command="broker run", now=WallClock().now()):
        assert broker("report", "--plan", "p.json", "-c", demo).code == 0
    assert (everything(), saved.read_bytes()) == (before, plan)


def test_what_is_not_a_whole_plan_is_not_shown_as_one(broker: Broker, demo: Path, saved: Path) -> None:
    saved.write_text(saved.read_text().replace('"usd_per_hour": "', '"usd_per_hour": "9'))
    ran = broker("report", "--plan", "p.json", "-c", demo)
    assert (ran.code, ran.out, "edited" in ran.err) == (1, "", True)
    assert broker("report", "--plan", "nowhere.json", "-c", demo).code == 1


def test_since_says_nothing_of_a_plan(broker: Broker, demo: Path, saved: Path) -> None:
    ran = broker("report", "--plan", "p.json", "--since", "7d", "-c", demo)
    assert (ran.code, "--since" in ran.err) == (1, True)
