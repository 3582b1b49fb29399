"""Flags that no other test changes the behaviour with; and the sandbox as other programs find it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from broker.view.console import Console
from tests.cli.conftest import Broker

ROOT = Path(__file__).parents[2]


def test_unused_leaves_out_what_is_used(broker: Broker, demo: Path) -> None:
    from providers.sandbox.local import Sandbox

    broker("run", "-c", demo)
    world = demo.parent / "world.json"
    sandbox = Sandbox(path=world)
    holding = next(each for each in sandbox.market.state.holdings if each.provider == "aws")
    sandbox.market.launch(holding.pool, holding.account, id="i-0123456789abcdef0", holding=holding)
    sandbox.save(world)
    broker("run", "-c", demo)
    everything = broker("status", "-c", demo, "--json").document["status"]["held"]
    unused = broker("status", "-c", demo, "--json", "--unused").document["status"]["held"]
    used = [each for each in everything if each["reservation"]["used"]]
    assert [each["reservation"]["used"] for each in used] == [1]
    assert unused == [each for each in everything if not each["reservation"]["used"]]


def test_status_says_what_idles_while_jobs_run_beside_it(broker: Broker, demo: Path) -> None:
    """The last run saw jobs running, and nothing in the reservations."""
    assert broker("run", "-c", demo).code == 0
    assert "that idle meanwhile" not in broker("status", "-c", demo).out
    queue = demo.parent / "queue.csv"
    queue.write_text(queue.read_text().replace("pending", "running"))
    broker("run", "-c", demo)

    status = broker("status", "-c", demo)

    (line,) = [line for line in status.out.splitlines() if "that idle meanwhile" in line and "pool h100" in line]
    assert "reserved instances of ours that idle meanwhile: " in line and "as of " in line
    warnings = broker("status", "-c", demo, "--json").document["status"]["warnings"]
    assert any("that idle meanwhile" in warning for warning in warnings)


def test_quiet_leaves_out_remarks_and_keeps_the_answer(broker: Broker, demo: Path) -> None:
    loud = broker("apply", "-c", demo, "--yes")
    assert "Plan: " in loud.err
    broker("release", "--all-ours", "-c", demo, "--yes")
    quiet = broker("apply", "-c", demo, "--yes", "-q")
    assert quiet.err == ""
    assert "done" in quiet.out


def test_colour_needs_a_terminal_and_nobody_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b[32m" in Console().paint("+", "green")
    assert Console(colour=False).paint("+", "green") == "+"
    assert Console(json=True).paint("+", "green") == "+"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Console().paint("+", "green") == "+"


def test_the_sandbox_serves_until_interrupted() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "sandbox", "--json", "--speed", "0", "-q"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(child.stdout.readline())
        told = json.loads("".join(lines))
        with urlopen(f"{told['endpoint']}/_sandbox/health", timeout=10) as reply:
            assert "now" in json.loads(reply.read())
        assert told["env"]["AWS_ENDPOINT_URL"] == told["endpoint"]
        assert set(told["code"]) == {"boto3", "google-cloud-compute", "azure-mgmt-compute"}
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=20) == 0, "it ends as it is meant to end"


def test_the_sandbox_says_when_its_port_is_taken(broker: Broker) -> None:
    from providers.sandbox.local import Sandbox

    with Sandbox() as sandbox:
        ran = broker("sandbox", "--port", sandbox.endpoint.rpartition(":")[2])
    assert ran.code == 1
    assert "--port" in ran.err
