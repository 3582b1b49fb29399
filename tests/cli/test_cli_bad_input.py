"""Bad input at the command line: the right exit code, one clear line with what to do, nothing bought, nothing lost."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from broker.apply.apply import apply as carry_out
from broker.apply.apply import call
from broker.clock import FixedClock, WallClock
from broker.model.request import Request
from broker.model.reservation import Reservation
from providers.base import Provider
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.local import Sandbox
from tests.cli.conftest import Broker, edit, entries, one_line, purchases

ROOT = Path(__file__).parents[2]


# -- the queue


def half_written(queue: Path) -> None:
    queue.write_text(queue.read_text()[:-25])


def a_folder(queue: Path) -> None:
    queue.unlink()
    queue.mkdir()


def wrong_encoding(queue: Path) -> None:
    queue.write_bytes(b"\x81\x8d" * 400)


def too_old(queue: Path) -> None:
    edit(queue.parent / "broker.toml", 'max_age = "3650d"', 'max_age = "30m"')
    long_ago = (WallClock().now() - timedelta(hours=5)).timestamp()
    os.utime(queue, (long_ago, long_ago))


def as_command(*command: str, timeout: str = "2s") -> Callable[[Path], None]:
    def spoil(queue: Path) -> None:
        said = f'command = {json.dumps(command)}\ntimeout = "{timeout}"'
        edit(queue.parent / "broker.toml", 'file = "queue.csv"', said)
        edit(queue.parent / "broker.toml", 'max_age = "3650d"', "")

    return spoil


BAD_QUEUES = {
    "missing": Path.unlink,
    "empty": lambda queue: queue.write_text(""),
    "a folder": a_folder,
    "wrong encoding": wrong_encoding,
    "too old": too_old,
    "command fails": as_command("false"),
    "command hangs": as_command("sleep", "30"),
    "command prints an error": as_command("echo", "slurm_load_jobs error: Unable to contact slurm controller"),
    "no such command": as_command("squeue-that-is-not-there"),
}


@pytest.mark.parametrize("kind", BAD_QUEUES)
def test_a_queue_that_cannot_be_believed_is_unknown(broker: Broker, demo: Path, kind: str) -> None:
    """Nothing is bought for it, and what is held is kept."""
    assert broker("run", "-c", demo).code == 0
    held, before = broker("status", "--json", "-c", demo).document["status"]["held"], purchases(demo)
    BAD_QUEUES[kind](demo.parent / "queue.csv")
    ran = broker("run", "-c", demo)
    assert ran.code in (1, 3), ran
    problem = next(line for line in ran.out.splitlines() if "queue" in line and line.startswith("! "))
    assert "queue queue: " in problem
    assert purchases(demo) == before
    assert broker("status", "--json", "-c", demo).document["status"]["held"] == held
    assert "Traceback" not in ran.err + ran.out


def test_a_half_written_queue_releases_nothing(broker: Broker, demo: Path) -> None:
    half_written(demo.parent / "queue.csv")
    ran = broker("plan", "-c", demo, "--json")
    source = ran.document
    assert ran.code in (0, 3)
    assert source["observed"]["problems"]


# -- the configuration


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[guards]", "[gaurds]", "guards"),
        ("max_new_instances", "max_new_instance", "max_new_instances"),
        ("max_new_instances", "Max_New_Instances", "max_new_instances"),
        ('default_runtime = "6h"', "default_runtime = 6", "unit"),
        ('default_runtime = "6h"', 'default_runtime = "6 parsecs"', "parsecs"),
        ("max_usd_per_hour = 2000", "max_usd_per_hour = -1", "negative"),
        ("max_usd_per_month = 500000", "max_usd_per_month = 1\nmax_usd_per_run = 5", "max_usd_per_run"),
        ('gpu = ["h100"]', 'gpu = ["h1000"]', "h1000"),
        ("regions = [", "regions = [[", "TOML"),
    ],
)
def test_a_wrong_configuration_names_the_place_and_the_nearest_right_one(
    broker: Broker, demo: Path, before: str, after: str, said: str
) -> None:
    edit(demo, before, after)
    ran = broker("run", "-c", demo)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert purchases(demo) == 0


def test_all_mistakes_are_reported_at_once(broker: Broker, demo: Path) -> None:
    edit(demo, "max_new_instances", "max_new_instance")
    edit(demo, 'default_runtime = "6h"', 'default_runtime = "six"')
    ran = broker("check", "-c", demo)
    assert "2 mistakes" in ran.err
    assert ran.err.count("\n") == 3


def test_a_pool_that_no_offer_can_serve_lists_each_option_and_what_removed_it(broker: Broker, demo: Path) -> None:
    edit(demo, 'name = "h100"\ngpu = ["h100"]', 'name = "h100"\ngpu = ["h100"]\nmachine_types = ["p5e.48xlarge"]')
    ran = broker("plan", "-c", demo, "--pool", "h100")
    assert "pool h100 stays 32 GPUs short" in ran.out
    assert "Nothing was bought. To act" not in ran.out
    offers = broker("offers", "-c", demo, "--gpu", "H100", "--json").document["shelf"]["offers"]
    listed = [line for line in ran.out.splitlines() if "not taken: " in line]
    assert len(listed) == len(offers) > 10
    assert all("is not among the machine types of pool h100" in line for line in listed)


def test_what_a_budget_takes_out_is_named_with_the_budget_and_is_not_asked_about(broker: Broker, demo: Path) -> None:
    edit(demo, "max_usd_per_hour = 2000", "max_usd_per_hour = 0.01")
    plan = broker("plan", "-c", demo)
    assert plan.code == 5
    refused = [line for line in plan.out.splitlines() if "refused by max_usd_per_hour" in line]
    assert len(refused) >= 2 and all("$0.01" in line for line in refused)
    assert "all of it was refused" in plan.out
    applied = broker("apply", "--yes", "-c", demo)
    assert (applied.code, "max_usd_per_hour" in applied.out, purchases(demo)) == (5, True, 0)


# -- the clouds


def with_fault(config: Path, **rule: object) -> None:
    world = config.parent / "world.json"
    sandbox = Sandbox(path=world)
    sandbox.world.faults.add(Rule(times=None, **rule))  # type: ignore[arg-type]
    sandbox.save(world)


@pytest.mark.parametrize(
    ("provider", "operation", "code", "status"),
    [
        ("aws", "DescribeCapacityReservations", "UnauthorizedOperation", 403),
        ("gcp", "reservations.aggregatedList", "forbidden", 403),
        ("azure", "capacityReservationGroups.listBySubscription", "AuthorizationFailed", 403),
        ("aws", "DescribeCapacityReservations", "RequestExpired", 400),
        ("aws", "DescribeCapacityReservations", "AuthFailure", 401),
    ],
)
def test_one_cloud_that_refuses_costs_only_itself(
    broker: Broker, demo: Path, provider: str, operation: str, code: str, status: int
) -> None:
    """Permission denied or credentials expired on one of three: said by name, the rest goes on, exit 3."""
    with_fault(demo, kind=FaultKind.ERROR, provider=provider, operation=operation, code=code, status=status)
    ran = broker("run", "-c", demo)
    assert ran.code == 3, ran
    assert f"! {provider}/" in ran.out
    assert code.lower() in ran.out.lower()
    checked = broker("check", "-c", demo)
    assert checked.code == 1
    assert f"{provider}/" in next(line for line in checked.out.splitlines() if line.startswith("error"))


def test_each_failed_attempt_has_a_line_with_code_and_request_id(broker: Broker, demo: Path) -> None:
    for provider, operation, code in (
        ("aws", "CreateCapacityReservation", "InsufficientInstanceCapacity"),
        ("azure", "capacityReservations.createOrUpdate", "AllocationFailed"),
    ):
        with_fault(demo, kind=FaultKind.ERROR, provider=provider, operation=operation, code=code, status=409)
    ran = broker("run", "-c", demo)
    assert ran.code == 3
    results = [line for line in ran.out.splitlines() if line.startswith(("unfilled", "failed", "refused"))]
    assert len(results) == 2, ran.out
    for code in ("InsufficientInstanceCapacity", "AllocationFailed"):
        assert sum(code in line for line in results) == 1
    asked = {call.request_id for call in Sandbox(path=demo.parent / "world.json").record.calls if call.status == 409}
    named = {re.findall(r"\(request ([^)]+)\)", line)[0] for line in results}
    assert named == asked, "the cloud's own, for whoever has to ask its support"
    history = broker("state", "history", "-c", demo).out
    assert all(f"(request {each})" in history for each in named)
    assert purchases(demo) == 0


def test_a_clock_off_by_an_hour_freezes(broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    off = FixedClock(WallClock().now() + timedelta(hours=1))
    monkeypatch.setattr("providers.sandbox.local.Sandbox.clock", off)
    ran = broker("run", "-c", demo)
    assert ran.code == 5, ran
    assert "clock" in ran.out + ran.err
    assert purchases(demo) == 0


# -- the state


def newer(state: Path) -> None:
    with sqlite3.connect(state) as connection:
        connection.execute("UPDATE meta SET schema_version = 999")


def damaged(state: Path) -> None:
    state.with_name("state.db-wal").unlink(missing_ok=True)
    state.write_bytes(state.read_bytes()[:50] + os.urandom(20_000))


BAD_STATES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "init"),
    "newer": (newer, "Upgrade the broker"),
    "damaged": (damaged, "adopt"),
    "not a state": (lambda state: state.write_text("hello, I am a text file, not a database at all " * 9), "adopt"),
}


@pytest.mark.parametrize("kind", BAD_STATES)
@pytest.mark.parametrize("command", ["run", "plan", "status", "apply --yes", "release --all-ours --yes"])
def test_a_state_that_cannot_be_used(broker: Broker, demo: Path, kind: str, command: str) -> None:
    spoil, said = BAD_STATES[kind]
    spoil(demo.parent / "state.db")
    ran = broker(*command.split(), "-c", demo)
    assert ran.code == 1, ran
    line = one_line(ran)
    assert "state.db" in line
    assert said in line
    assert purchases(demo) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_state_buys_nothing(broker: Broker, demo: Path) -> None:
    (demo.parent / "state.db").chmod(0o400)
    ran = broker("run", "-c", demo)
    assert ran.code == 1
    assert "cannot be written" in one_line(ran)
    assert purchases(demo) == 0


def test_a_full_disk_buys_nothing(broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(demo.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=2**20))
    for command in (["run"], ["apply", "--yes"], ["release", "--all-ours", "--yes"]):
        ran = broker(*command, "-c", demo)
        assert ran.code == 1, ran
        assert "full" in ran.err
    assert purchases(demo) == 0


def test_a_disk_that_fills_up_in_a_run_loses_nothing(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own limit on pages stands in for the disk: the same error from the same place."""
    from state import database

    connect = database._connect

    def small(path: Path, *, read_only: bool) -> sqlite3.Connection:
        connection = connect(path, read_only=read_only)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as limited:
        limited.setattr(database, "_connect", small)
        ran = broker("run", "-c", demo)
        assert ran.code == 3, ran
        assert "full" in ran.err
    assert broker("run", "-c", demo).code == 0
    held = broker("status", "--json", "-c", demo).document["status"]
    assert held["unsettled"] == []
    assert len(held["held"]) == purchases(demo) == 2


# -- a person


def test_ctrl_c_exits_130_and_the_next_run_settles(broker: Broker, demo: Path) -> None:
    """SIGINT while the cloud has bought and not yet answered: the outcome is recorded or found, and nothing twice."""
    with_fault(demo, kind=FaultKind.DELAY, provider="aws", operation="CreateCapacityReservation", delay_s=1.5)
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "run", "-c", str(demo)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        deadline = time.monotonic() + 30
        while not purchases(demo) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert broker("run", "-c", demo).code == 0
    bought = purchases(demo)
    assert broker("run", "-c", demo).code == 0
    assert purchases(demo) == bought == 2
    assert entries(broker, demo) > 0


def test_no_answer_is_no(broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only "yes" confirms."""
    import io

    monkeypatch.setattr("broker.cli.act.interactive", lambda: True)
    for answer in ("", "\n", "y\n", "YES\n", "no\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        ran = broker("apply", "-c", demo)
        assert ran.code == 1, answer
        assert "not confirmed" in ran.err
    assert purchases(demo) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert broker("apply", "-c", demo).code == 0
    assert purchases(demo) == 2


def test_out_of_time_is_said_and_a_rerun_is_safe(broker: Broker, demo: Path) -> None:
    with_fault(demo, kind=FaultKind.DELAY, provider="gcp", operation="reservations.aggregatedList", delay_s=4)
    ran = broker("run", "-c", demo, "--max-seconds", "1")
    assert ran.code == 3
    assert "stopped after 1 s" in one_line(ran)
    assert purchases(demo) == 0


def test_a_freeze_file_and_observe_mode_stop_everything(broker: Broker, demo: Path) -> None:
    (demo.parent / "FREEZE").touch()
    ran = broker("run", "-c", demo)
    assert ran.code == 5
    assert "FREEZE" in ran.out
    (demo.parent / "FREEZE").unlink()
    edit(demo, 'mode = "act"', 'mode = "observe"')
    assert broker("run", "-c", demo).code == 5
    assert purchases(demo) == 0


def test_a_freeze_file_that_appears_in_the_middle_of_a_run_stops_the_rest(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.commands.acting.carry_out", partial(carry_out, parallel=1))

    def one_by_one(provider: Provider, request: Request) -> Reservation:
        (demo.parent / "FREEZE").touch()
        return call(provider, request)

    monkeypatch.setattr("broker.apply.apply.call", one_by_one)
    ran = broker("run", "-c", demo)
    assert ran.code == 3
    assert "FREEZE forbids it since this run began; not sent" in ran.out
    assert purchases(demo) == 1


def test_what_is_protected_is_not_given_back_and_the_exit_code_says_that_not_all_was(
    broker: Broker, demo: Path
) -> None:
    assert broker("run", "-c", demo).code == 0
    held = re.findall(r"cr-[0-9a-f]+", broker("status", "-c", demo).out)[0]
    demo.write_text(f'protect = ["{held}", "cr-mistyped"]\n{demo.read_text()}')
    alone = broker("release", held, "--yes", "-c", demo)
    assert alone.code == 5 and f"{held} is protected by the configuration" in alone.out
    assert broker("release", held, "--yes", "--force", "protect", "-c", demo).code == 1
    rest = broker("release", "--all-ours", "--yes", "-c", demo)
    assert rest.code == 3 and f"{held} is protected by the configuration" in rest.out
    assert held in broker("status", "-c", demo).out
    checked = broker("check", "-c", demo).out
    assert "protect names cr-mistyped, which this state does not hold" in checked
    assert f"protect names {held}" not in checked
