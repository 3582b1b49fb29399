"""Commands run in this process, through the same `run` that the console script calls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.cli import run
from providers.sandbox.local import Sandbox


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout as one JSON document."""
        return json.loads(self.out)


Broker = Callable[..., Ran]


@pytest.fixture
def broker(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Broker:
    """`broker("status", "-c", path)`, in an empty folder, with no variable of the caller's."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "STATE", "JSON", "QUIET", "VERBOSE", "NO_COLOR", "MODE", "MAX_HOURLY", "LOCK_TIMEOUT"):
        monkeypatch.delenv(f"BROKER_{name}", raising=False)

    def run_it(*arguments: object) -> Ran:
        capfd.readouterr()
        code = run([str(each) for each in arguments])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run_it


@pytest.fixture
def demo(broker: Broker, tmp_path: Path) -> Path:
    """The configuration of a fresh sandbox."""
    assert broker("init", "demo", "--sandbox").code == 0
    return tmp_path / "demo" / "broker.toml"


def purchases(config: Path) -> int:
    holdings = Sandbox(path=config.parent / "world.json").market.state.holdings
    return len(holdings)


def entries(broker: Broker, config: Path) -> int:
    return len(broker("state", "history", "-c", config, "--json").document["entries"])


def one_line(ran: Ran) -> str:
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("broker: ")
    assert "Traceback" not in ran.err
    return ran.err


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
