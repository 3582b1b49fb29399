"""The loop through the commands, against the built-in clouds over the wire."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.clock import WallClock
from providers.sandbox.local import Sandbox
from tests.cli.conftest import Broker, entries, purchases

HALF_A_MILLIONTH = Decimal("0.0000005")
IDENTIFIERS = re.compile(r"cr-[0-9a-f]{17}|broker-[0-9a-f]{12}-[0-9a-z]{24}")


def effects(config: Path) -> list[Any]:
    """What the clouds themselves say was done to them."""
    return list(Sandbox(path=config.parent / "world.json").record.effects)


def test_plan_proposes_and_changes_nothing(broker: Broker, demo: Path) -> None:
    ran = broker("plan", "-c", demo)
    assert ran.code == 0
    assert "pool h100 needs 32 GPUs and holds 0" in ran.out
    assert "Nothing was bought. To act:" in ran.out
    assert broker("plan", "-c", demo, "--detailed-exitcode").code == 2
    assert (effects(demo), entries(broker, demo)) == ([], 0)


def test_the_same_snapshot_gives_the_same_plan_in_three_forms(broker: Broker, demo: Path) -> None:
    document = broker("plan", "-c", demo, "--json").document
    assert document["kind"] == "plan"
    actions = [action for action in document["plan"]["actions"] if action["type"] == "reserve"]
    assert sum(action["request"]["count"] for action in actions) >= 2
    assert all(isinstance(action["usd_per_hour"], str) for action in actions)
    markdown = broker("plan", "-c", demo, "--format", "md").out
    assert all(
        f"| {action['request']['count']} x {action['request']['machine_type']} |" in markdown for action in actions
    )


def test_narrowing_leaves_out_and_never_adds(broker: Broker, demo: Path) -> None:
    whole = broker("plan", "-c", demo, "--json").document["plan"]["actions"]
    for flag, name, keep in (
        ("--pool", "a100", lambda action: action["pool"] == "a100"),
        ("--provider", "aws", lambda action: action["request"]["place"]["scope"]["provider"] == "aws"),
        ("--tenant", "nlp", lambda action: any(tenant == "nlp" for tenant, _ in action["tenants"])),
    ):
        narrowed = broker("plan", "-c", demo, "--json", flag, name).document["plan"]["actions"]
        assert [each["offer"] for each in narrowed] == [each["offer"] for each in whole if keep(each)]
    ran = broker("plan", "-c", demo, "--pool", "h10O")
    assert ran.code == 1
    assert 'did you mean "h100"' in ran.err


def test_apply_needs_a_yes(broker: Broker, demo: Path) -> None:
    """No terminal and no --yes: at once, naming the flag."""
    ran = broker("apply", "-c", demo)
    assert ran.code == 1
    assert "--yes" in ran.err
    assert purchases(demo) == 0


def test_a_saved_plan_applied_twice_buys_once(broker: Broker, demo: Path) -> None:
    assert broker("plan", "-c", demo, "--out", "p.json").code == 0
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 0
    bought = purchases(demo)
    again = broker("apply", "p.json", "-c", demo, "--yes")
    assert again.code == 0
    assert "already applied" in again.out
    assert purchases(demo) == bought > 0


def test_run_buys_then_has_nothing_to_do_and_leaves_no_trace(broker: Broker, demo: Path) -> None:
    first = broker("run", "-c", demo)
    assert first.code == 0, first
    assert "done" in first.out
    before = entries(broker, demo), len(effects(demo)), purchases(demo)
    second = broker("run", "-c", demo)
    assert second.code == 0
    assert "nothing to do" in second.out
    assert (entries(broker, demo), len(effects(demo)), purchases(demo)) == before


def test_run_with_json_is_one_event_a_line(broker: Broker, demo: Path) -> None:
    lines = broker("run", "-c", demo, "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [events[0]["kind"], events[-1]["kind"]] == ["observed", "summary"]
    assert all(event["format_version"] == 1 for event in events)
    assert events[-1]["done"] == sum(event["kind"] == "result" for event in events) > 0


def test_a_dry_run_does_nothing(broker: Broker, demo: Path) -> None:
    ran = broker("run", "--dry-run", "-c", demo)
    assert ran.code == 0
    assert "dry run" in ran.out
    proposed = [line for line in ran.out.splitlines() if line.startswith("would")]
    assert len(proposed) == len(broker("plan", "-c", demo, "--json").document["plan"]["actions"]) > 0
    assert (effects(demo), entries(broker, demo), purchases(demo)) == ([], 0, 0)


def test_status_prints_exactly_how_a_job_consumes_each_reservation(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = broker("status", "-c", demo, "--json").document["status"]["held"]
    assert held
    for each in held:
        reservation = each["reservation"]
        document = broker("status", reservation["id"], "-c", demo, "--json").document
        assert document["consume_with"], reservation
        text = broker("status", reservation["id"], "-c", demo).out
        for name, value in document["consume_with"].items():
            assert name in text
            assert value in text
    aws = next(each["reservation"]["id"] for each in held if each["reservation"]["id"].startswith("cr-"))
    assert aws in broker("status", aws, "-c", demo, "--json").document["consume_with"].values()


def test_identifiers_never_wrap_however_narrow_the_terminal(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker("run", "-c", demo)
    monkeypatch.setenv("COLUMNS", "40")
    ids = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    out = broker("status", "-c", demo).out
    assert all(any(each in line for line in out.splitlines()) for each in ids)
    assert IDENTIFIERS.search(out)


def test_release_by_id_and_then_all_of_it(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    ids = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    assert len(ids) >= 2
    assert broker("release", ids[0], "-c", demo, "--yes").code == 0
    left = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    assert left == ids[1:]
    assert broker("release", "--all-ours", "-c", demo, "--yes").code == 0
    assert "Nothing is held." in broker("status", "-c", demo).out


def test_release_of_an_id_that_does_not_exist(broker: Broker, demo: Path) -> None:
    ran = broker("release", "cr-nowhere", "-c", demo, "--yes")
    assert ran.code == 1
    assert "cr-nowhere" in ran.err
    assert effects(demo) == []


def test_release_of_what_is_given_back_already_does_not_call_it_somebody_elses(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = broker("status", "-c", demo, "--json").document["status"]["held"]
    mine = next(each["reservation"]["id"] for each in held if each["reservation"]["id"].startswith("cr-"))
    assert broker("release", mine, "-c", demo, "--yes").code == 0
    again = broker("release", mine, "-c", demo, "--yes")
    assert (again.code, "is given back already" in again.err, "another buyer" in again.err) == (1, True, False)


def test_release_wants_ids_or_all(broker: Broker, demo: Path) -> None:
    assert broker("release", "-c", demo, "--yes").code == 1
    assert broker("release", "cr-1", "--all-ours", "-c", demo, "--yes").code == 1


def test_the_report_covers_what_was_bought(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    for by in ("tenant", "pool", "provider", "reservation"):
        report = broker("report", "-c", demo, "--json", "--by", by).document["report"]
        parts = [Decimal(line["committed"]) for line in report["lines"]]
        total = Decimal(report["total"]["committed"])
        assert total > 0
        assert abs(sum(parts) - total) <= HALF_A_MILLIONTH * (len(parts) + 1), "time passes only between two reports"


def test_the_ledger_tells_a_reservation_from_intent_to_end(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = broker("status", "-c", demo, "--json").document["status"]["held"][0]["reservation"]["id"]
    kinds = [entry["kind"] for entry in broker("state", "show", held, "-c", demo, "--json").document["entries"]]
    assert "outcome" in kinds
    assert held in broker("state", "history", "-c", demo, "--since", "1h").out


def test_max_hourly_lowers_the_limit_and_cannot_raise_it(broker: Broker, demo: Path) -> None:
    ran = broker("run", "-c", demo, "--max-hourly", "1")
    assert ran.code == 5
    assert "max_usd_per_hour" in ran.out
    assert purchases(demo) == 0
    assert broker("run", "-c", demo, "--max-hourly", "100000").code == 1


def test_force_names_one_guard_and_no_budget(broker: Broker, demo: Path) -> None:
    demo.write_text(demo.read_text().replace("max_new_instances = 32", "max_new_instances = 0"))
    assert broker("run", "-c", demo).code == 5
    assert broker("run", "-c", demo, "--force", "max_usd_per_hour").code == 1
    assert purchases(demo) == 0
    assert broker("run", "-c", demo, "--force", "max_new_instances").code == 0
    assert purchases(demo) > 0


def test_another_run_that_holds_the_lock_is_named(broker: Broker, demo: Path) -> None:
    code = (
        "import sys,time; from pathlib import Path; from datetime import datetime,UTC; from state.lock import Lock\n"
        "with Lock(Path(sys.argv[1]), command='broker run', now=datetime(2026,3,4,tzinfo=UTC)):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(demo.parent / "state.db")],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ran = broker("run", "-c", demo, "--lock-timeout", "1s")
        assert broker("plan", "-c", demo).code == 0
        other.kill()
    assert ran.code == 4
    assert str(other.pid) in ran.err


def test_a_plan_for_another_time_is_not_saved(broker: Broker, demo: Path) -> None:
    later = f"{WallClock().now() + timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}"
    assert broker("plan", "-c", demo, "--at", later).code == 0
    assert broker("plan", "-c", demo, "--at", later, "--out", "p.json").code == 1
    assert broker("plan", "-c", demo, "--at", "tomorrow").code == 1


def test_documents_speak_utc_and_plain_decimals(broker: Broker, demo: Path) -> None:
    text = broker("plan", "-c", demo, "--json").out
    assert msgspec.json.decode(text)
    assert re.search(r'"made": "20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"', text)
    assert not re.search(r'"\d+E[+-]\d+"', text)
