"""What the long run counted, over all workers, and the one line that sums it up."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.apply.boundary import Boundary
from providers.sandbox.local import Sandbox
from tests.crash.clouds import CLOUDS, preload

COUNTS = "BROKER_CRASH_COUNTS"
KILLS_WANTED = 300


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and COUNTS not in os.environ:
        import tempfile

        os.environ[COUNTS] = tempfile.mkdtemp(prefix="broker-crash-")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What this test counts is added up over all of them, where these tests are what is run."""
    counted: Counter[str] = Counter()
    yield counted
    folder = os.environ.get(COUNTS)
    if folder:
        name = f"{os.getpid()}-{abs(hash(request.node.nodeid))}.json"
        (Path(folder) / name).write_text(json.dumps(counted), encoding="utf-8")


def _total() -> Counter[str]:
    total: Counter[str] = Counter()
    for file in Path(os.environ.get(COUNTS, "/nonexistent")).glob("*.json"):
        total.update(json.loads(file.read_text(encoding="utf-8")))
    return total


def _missed(total: Counter[str]) -> list[str]:
    """What a whole run of the crash tests must reach and did not; nothing is asked of a part of them."""
    if not total["cells"] or not total["kills"]:
        return []
    never = [f"never killed at: {boundary.value}" for boundary in Boundary if not total[boundary.value]]
    few = [f"only {total['kills']} kills of {KILLS_WANTED}"] if total["kills"] < KILLS_WANTED else []
    return never + few


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and _missed(_total()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    total = _total()
    if not total["cells"]:
        return
    for boundary in Boundary:
        terminalreporter.write_line(f"  killed {total[boundary.value]:5} times  {boundary.value}")
    for line in _missed(total):
        terminalreporter.write_line(f"  {line}")
    what = f"{total['cells']} cells, {total['kills']} seeded kills, {total['histories']} other histories"
    found = "0 duplicates, 0 leaks, ledger equal to the clouds' own record" if exitstatus == 0 else "FAILED"
    terminalreporter.write_line(f"crash: {what} on {len(CLOUDS)} clouds: {found}")


@pytest.fixture(scope="session", autouse=True)
def loaded() -> None:
    preload()


@pytest.fixture(scope="session")
def server(loaded: None) -> Iterator[Sandbox]:
    """One server for all tests of a process: clients that are made for it can be used again."""
    with Sandbox(seed=1) as started:
        yield started


@pytest.fixture
def sandbox(server: Sandbox) -> Iterator[Sandbox]:
    """As new, for each test."""
    new = server.world.saved()
    yield server
    server.world.restore(new)
