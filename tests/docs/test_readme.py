"""Every command block of the README is run, as written, by a shell in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CONFIGURED = """\
[[aws.account]]
name = "main"
regions = ["us-east-1"]
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A machine with `broker`, a Slurm whose `squeue` answers, and an editor that fills in an account."""
    tools = tmp_path_factory.mktemp("bin")
    scripts = {
        "broker": f'exec {sys.executable} -m broker "$@"',
        "squeue": f"cat {ROOT}/examples/slurm/squeue.json",
        "editor": f"cat >> \"$1\" <<'END'\n{CONFIGURED}END",
    }
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BROKER_", "AWS_"))}
    unreachable = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere"}
    return {**clean, **unreachable, "PATH": path, "PYTHONPATH": str(ROOT), "EDITOR": "editor"}


def run(script: str, shell: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-ec", script], env=shell, cwd=folder, capture_output=True, text=True, check=False)


def test_there_are_the_blocks_that_are_run_here() -> None:
    assert len(BLOCKS) == 4


def test_make_targets_exist(shell: dict[str, str]) -> None:
    for line in BLOCKS[0].splitlines():
        target = line.split()[1]
        assert run(f"make -n {target}", shell, ROOT).returncode == 0


def test_the_path_from_nothing_to_a_plan_and_on(shell: dict[str, str], tmp_path: Path) -> None:
    first = run(BLOCKS[1], shell, tmp_path)
    assert first.returncode == 0, first.stderr
    assert "Nothing was bought. To act:" in first.stdout
    assert re.search(r"\+ reserve  \d+ x ", first.stdout)
    last = run(BLOCKS[3], shell, tmp_path)
    assert last.returncode == 0, last.stderr
    assert "done" in last.stdout
    assert "would have cost" in last.stdout


@pytest.mark.deep
def test_the_block_for_real_clouds_stops_at_missing_credentials(shell: dict[str, str], tmp_path: Path) -> None:
    """Without an account it goes as far as it can, names what is missing, and buys nothing."""
    init, editor, check, plan = BLOCKS[2].splitlines()
    assert run(f"{init}\n{editor}", shell, tmp_path).returncode == 0
    checked = run(check, shell, tmp_path)
    assert checked.returncode == 1
    assert "aws/main/us-east-1" in checked.stdout
    assert "credentials" in checked.stdout
    assert run(plan, shell, tmp_path).returncode in (1, 3)
