"""What compiling goes by: the records' classes, and the kernels that a kernel calls."""

from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

import broker.backtest.easy  # noqa: F401 - kernels that others do not call
from broker.backtest.replay import replay_until
from broker.sia.columns import Job
from broker.sia.compiling import _modules_of, allocating, compiled, filled, kernel


def test_a_whole_number_of_seconds_makes_no_other_record() -> None:
    whole, broken = filled(Job(reclaim_s=60, restore_s=1), 1), filled(Job(reclaim_s=59.5), 1)
    assert whole.dtype == broken.dtype
    assert whole["reclaim_s"][0] / 8 == 7.5


def test_machine_code_is_kept_by_the_kernels_that_it_is_made_of_and_no_others() -> None:
    modules = _modules_of(replay_until)
    assert {"broker.backtest.replay", "broker.sia.step", "broker.sia.columns", "broker.sia.heap"} <= set(modules)
    assert "broker.backtest.easy" not in modules


@kernel
def _first_of(values: list[float]) -> float:
    found = [values[0]]
    return found[0]


def test_a_kernel_that_allocates_is_refused_unless_it_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no reference is ever counted in one that is not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    values = np.array([2.0])
    with pytest.raises(NumbaError, match="NRT required"):
        compiled(_first_of)(values)
    compiled.cache_clear()
    assert compiled(allocating(_first_of))(values) == 2.0
