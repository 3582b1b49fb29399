"""What commands that need no cloud must not load, and what completion knows without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Broker

ROOT = Path(__file__).parents[2]
HEAVY = ("boto3", "botocore", "google", "azure", "numpy", "scipy", "numba", "lightgbm", "alembic", "moto")
SCRIPT = """\
import sys
from broker.cli import run
code = run(sys.argv[1:])
print("loaded:", *sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
sys.exit(code)
"""


def loaded(*arguments: object, cwd: Path, **env: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.rpartition("loaded:")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["status"], ["report"], ["state", "history"]])
def test_no_sdk_no_numbers_no_migrations(broker: Broker, demo: Path, arguments: list[str]) -> None:
    config = [] if arguments[0].startswith("-") else ["-c", demo]
    assert not loaded(*arguments, *config, cwd=demo.parent).intersection(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_needs_no_database(demo: Path, arguments: list[str]) -> None:
    assert "sqlalchemy" not in loaded(*arguments, cwd=demo.parent)


def completions(words: str, cwd: Path) -> list[str]:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_BROKER_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "broker"],
        env={**os.environ, "PYTHONPATH": str(ROOT), **asked},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_ids_are_completed_from_the_local_state(broker: Broker, demo: Path) -> None:
    broker("run", "-c", demo)
    held = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    assert sorted(completions("broker release ", demo.parent)) == sorted(held)
    assert completions(f"broker status {held[0][:5]}", demo.parent) == [held[0]]


def test_names_are_completed_from_the_configuration_that_is_named(broker: Broker, demo: Path, tmp_path: Path) -> None:
    """From any folder: `-c` on the line counts as the variable does."""
    broker("run", "-c", demo)
    held = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert sorted(completions(f"broker status -c {demo} ", elsewhere)) == sorted(held)
    assert completions(f"broker plan -c {demo} --pool h", elsewhere) == ["h100"]
    assert completions(f"broker -c {demo} plan --tenant v", elsewhere) == ["vision"]
    assert completions("broker plan --provider a", elsewhere) == ["aws", "azure"]
    assert completions("broker jobs --format sq", elsewhere) == ["squeue"]
    assert completions("broker plan --pool ", elsewhere) == []


def test_completion_waits_for_no_pipe_that_stands_where_the_configuration_should(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "broker.toml")
    assert completions("broker plan --pool ", tmp_path) == []
    assert completions("broker status ", tmp_path) == []


def test_completion_without_a_state_is_silent(tmp_path: Path) -> None:
    assert completions("broker status ", tmp_path) == []
    assert "status" in completions("broker sta", tmp_path)
