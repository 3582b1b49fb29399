"""CPU time of the commands that need no cloud, as ratios to a bare two-command Typer app in the same run."""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import ScopeView, Trust
from state.store import Store
from tests.measures import Take

pytestmark = pytest.mark.bench
ROOT = Path(__file__).parents[2]
TRIES = 7
BARE = """\
import typer
app = typer.Typer()
@app.command()
def one(name: str, count: int = 1) -> None:
    "Say one."
    print(name * count)
@app.command()
def two(loud: bool = False) -> None:
    "Say two."
    print(loud)
app()
"""
CONFIG = """\
state = "state.db"
[[queue]]
name = "queue"
file = "queue.csv"
[[pool]]
name = "h100"
gpu = ["h100"]
[[aws.account]]
name = "main"
regions = ["us-east-1"]
"""
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def cpu_s(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> float:
    """The least of several tries: what the machine's other work adds is not ours, nor is compiling a module once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return min(_once(command, {**kept, "PYTHONPATH": str(ROOT), **(env or {})}, cwd) for _ in range(TRIES))


def _once(command: Sequence[str], env: Mapping[str, str], cwd: Path | None) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture
def bare(tmp_path: Path) -> list[str]:
    (tmp_path / "bare").write_text(BARE)
    return [sys.executable, str(tmp_path / "bare")]


BROKER = [sys.executable, "-m", "broker"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A state that holds 500 reservations on three clouds."""
    (tmp_path / "broker.toml").write_text(CONFIG)
    with Store.create(tmp_path / "state.db", now=NOW) as store:
        store.witness([_view(name, count, store.lineage) for name, count in _SHARES.items()], NOW)
    return tmp_path / "broker.toml"


_SHARES = {ProviderName.AWS: 200, ProviderName.GCP: 150, ProviderName.AZURE: 150}


def _view(name: ProviderName, count: int, lineage: str) -> ScopeView:
    scope = Scope(name, "main", "us-east-1")
    reservations = tuple(
        Reservation(
            id=f"cr-{name}-{number:012}",
            place=Place(scope, "us-east-1a"),
            machine_type="p5.48xlarge",
            count=4,
            used=3,
            state=ReservationState.ACTIVE,
            raw_state="active",
            gpu_model="h100",
            gpus_per_instance=8,
            owner=Owner(lineage, f"{name}{number}"),
            tags=(("team", "ml-platform"),),
        )
        for number in range(count)
    )
    return ScopeView(scope=scope, trust=Trust.COMPLETE, reservations_at=NOW, reservations=reservations)


def test_help_and_completion_cost_at_most_half_more_than_a_bare_app(bare: list[str], site: Path, take: Take) -> None:
    bare_help = cpu_s([*bare, "--help"])
    take("broker --help / bare --help", cpu_s([*BROKER, "--help"]) / bare_help, 1.5, "x CPU")
    take("broker --version / bare --help", cpu_s([*BROKER, "--version"]) / bare_help, 1.5, "x CPU")
    asked = {"COMP_WORDS": "bare o", "COMP_CWORD": "1", "_BARE_COMPLETE": "complete_bash"}
    bare_completion = cpu_s(bare, asked)
    for words in ("broker st", "broker status cr-aws-00000000000"):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_BROKER_COMPLETE": "complete_bash"}
        took = cpu_s(BROKER, asked, cwd=site.parent)
        take(f"completion of `{words}` / bare completion", took / bare_completion, 1.5, "x CPU")


def test_status_of_500_reservations_costs_at_most_three_bare_commands(bare: list[str], site: Path, take: Take) -> None:
    bare_command = cpu_s([*bare, "one", "x"])
    status = cpu_s([*BROKER, "status", "-c", str(site)])
    take("broker status, 500 reservations / bare command", status / bare_command, 3.0, "x CPU")
