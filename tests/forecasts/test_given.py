"""Forecasts made elsewhere: read whole or refused with the place."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker.errors import InputError
from forecasts.given import read
from forecasts.quantiles import LEVELS

MADE = "2026-03-01T00:00:00Z"
AT = datetime(2026, 3, 1, 6, tzinfo=UTC)


def test_quantiles_of_a_csv_are_read_at_our_levels(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"unique_id,ds,generated_at,q0.1,q0.5,q0.9\nh100,2026-03-01T06:00:00Z,{MADE},8,16,-3\n")
    found = read(file).at("h100", AT)
    assert found[LEVELS.index(0.9)] == 16.0
    assert found.min() == 0.0


def test_sample_paths_of_a_jsonl_become_quantiles(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    row = f'{{"unique_id":"h100","ds":"2026-03-01T06:00:00Z","generated_at":"{MADE}","sample_0":0,"sample_1":10}}'
    file.write_text(row + "\n")
    assert read(file).at("h100", AT)[LEVELS.index(0.5)] == 5.0


def parquet_file(path: Path, columns: dict[str, object]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_a_parquet_file_says_what_the_csv_does(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    stamps = pyarrow.array([AT, AT + timedelta(hours=1)], pyarrow.timestamp("ns", "UTC"))
    columns = {"unique_id": ["h100"] * 2, "ds": stamps, "generated_at": [MADE] * 2, "q0.1": [8, 1], "q0.9": [16.0, 3.0]}
    found = read(parquet_file(tmp_path / "f.parquet", columns))
    text = tmp_path / "f.csv"
    lines = [f"h100,2026-03-01T06:00:00Z,{MADE},8,16", f"h100,2026-03-01T07:00:00Z,{MADE},1,3"]
    text.write_text("\n".join(["unique_id,ds,generated_at,q0.1,q0.9", *lines]) + "\n")
    same = read(text)
    assert found.until == same.until
    assert found.generated_at == same.generated_at
    for at in (AT, AT + timedelta(hours=1)):
        assert found.at("h100", at).tolist() == same.at("h100", at).tolist()


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"ds": [datetime(2026, 3, 1, 6)]}, "f.parquet:1: .* has no offset from UTC"),  # noqa: DTZ001
        ({"q0.5": [None]}, "f.parquet:1: a number of GPUs is missing"),
        ({"q0.5": [[1.0]]}, "f.parquet:1: "),
        ({"q0.5": [float("nan")]}, "nan is no number of GPUs"),
    ],
)
def test_a_bad_parquet_row_gets_one_line_with_its_place(tmp_path: Path, changed: dict[str, object], cause: str) -> None:
    columns = {"unique_id": ["h100"], "ds": [AT], "generated_at": [MADE], "q0.5": [8.0], **changed}
    with pytest.raises(InputError, match=cause):
        read(parquet_file(tmp_path / "f.parquet", columns))


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    columns = {"unique_id": ["h100"], "ds": [AT], "generated_at": [MADE], "q0.5": [8.0]}
    file = parquet_file(tmp_path / "f.parquet", columns)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InputError, match="broken Parquet"):
        read(file)


def test_parquet_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="needs pyarrow") as refused:
        read(tmp_path / "f.parquet")
    assert "gpu-capacity-broker[parquet]" in (refused.value.next_step or "")


def test_an_old_or_short_forecast_says_so(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"unique_id,ds,generated_at,q0.5\nh100,2026-03-01T06:00:00Z,{MADE},8\n")
    lines = read(file).problems(AT + timedelta(days=3), timedelta(days=1), timedelta(hours=24))
    assert lines == (
        "forecast is 78 h old, more than 24 h: not used",
        "forecast of pool h100 ends 24 h ahead or earlier: silent beyond",
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("unique_id,ds,q0.5\nh100,2026-03-01T06:00:00Z,8\n", "f.csv:2: column generated_at is missing"),
        (f"unique_id,ds,generated_at,q0.5\nh100,2026-03-01T06:00:00,{MADE},8\n", "has no offset from UTC"),
        (f"unique_id,ds,generated_at,q0.5\nh100,2026-03-01T06:00:00Z,{MADE},inf\n", "inf is no number of GPUs"),
        (f"unique_id,ds,generated_at,q7\nh100,2026-03-01T06:00:00Z,{MADE},1\n", "between 0 and 1"),
        (f"unique_id,ds,generated_at\nh100,2026-03-01T06:00:00Z,{MADE}\n", "neither quantiles"),
        ("", "no forecast in it"),
    ],
)
def test_a_bad_file_gets_one_line_with_its_place(tmp_path: Path, text: str, cause: str) -> None:
    file = tmp_path / "f.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=cause):
        read(file)
