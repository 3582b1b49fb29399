"""Without an optional library a command says which extra brings it, and never that something broke inside."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Broker, one_line

NEEDS = [
    (("backtest", "--synthetic", 1), "numpy", "sia"),
    (("backtest", "--synthetic", 1), "numba", "sia"),
    (("backtest", "--synthetic", 1, "--forecast", "learned"), "lightgbm", "sia"),
    (("backtest", "--synthetic", 1, "--durations", "learned"), "lightgbm", "sia"),
    (("forecast", "--history", "past.csv"), "lightgbm", "sia"),
    (("forecast", "--history", "past.csv"), "numpy", "sia"),
    (("history", "export", "out.parquet", "--to", "parquet"), "pyarrow", "parquet"),
]


@pytest.mark.parametrize(("command", "library", "extra"), NEEDS, ids=lambda each: str(each))
def test_what_is_missing_is_named_with_what_brings_it(
    broker: Broker, demo: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...], library: str, extra: str
) -> None:
    Path("past.csv").write_text("id,submit,start,end,gpus\n1,2026-07-01T12:00Z,2026-07-01T12:10Z,2026-07-01T15:10Z,8\n")
    assert broker("history", "import", "past.csv", "-c", demo).code == 0
    monkeypatch.setitem(sys.modules, library, None)
    ran = broker(*command, "-c", demo)
    assert ran.code == 1
    assert f" {library}. Install it: " in one_line(ran)
    assert f"gpu-capacity-broker[{extra}]" in ran.err
