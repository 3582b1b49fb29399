"""Random long histories: whatever happens, in whatever order, the promises hold. A failure prints what to replay."""

from pathlib import Path

import pytest

from providers.sandbox.local import Sandbox
from tests.sim.history import Step, drawn, play

QUICK, DEEP = 8, 520


@pytest.mark.parametrize("seed", range(QUICK))
def test_promises_hold_through_a_history(seed: int, sandbox: Sandbox, tmp_path: Path) -> None:
    assert play(sandbox, tmp_path, drawn(seed)).commands


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(QUICK, DEEP))
def test_promises_hold_through_many_histories(seed: int, sandbox: Sandbox, tmp_path: Path) -> None:
    assert play(sandbox, tmp_path, drawn(seed)).commands


def steps(text: str) -> list[Step]:
    """As a failure prints them."""
    return [Step(what, int(seed)) for what, _, seed in (word.partition(":") for word in text.split())]
