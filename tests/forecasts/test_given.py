"""Forecasts made elsewhere: read whole or refused with the place."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from broker.errors import InputError
from forecasts.given import read
from forecasts.quantiles import LEVELS

MADE = "2026-03-01T00:00:00Z"
AT = datetime(2026, 3, 1, 6, tzinfo=UTC)


def test_quantiles_of_a_csv_are_read_at_our_levels(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"unique_id,ds,generated_at,q0.1,q0.5,q0.9\nh100,2026-03-01T06:00:00Z,{MADE},8,16,-3\n")
    given = read(file)
    found = given.at("h100", AT, AT)
    assert found[LEVELS.index(0.9)] == 16.0
    assert found.min() == 0.0
    assert given.repairs == (
        f"{file}: 1 row whose quantiles fall as their level rises: put in order",
        f"{file}: 1 row with GPUs below zero: taken as 0",
    )


def test_sample_paths_of_a_jsonl_become_quantiles(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    row = f'{{"unique_id":"h100","ds":"2026-03-01T06:00:00Z","generated_at":"{MADE}","sample_0":0,"sample_1":10}}'
    file.write_text(row + "\n")
    assert read(file).at("h100", AT, AT)[LEVELS.index(0.5)] == 5.0


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
    for at in (AT, AT + timedelta(hours=1)):
        for by in (AT, AT - timedelta(days=1)):
            assert np.array_equal(found.at("h100", at, by), same.at("h100", at, by), equal_nan=True)


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


@pytest.mark.parametrize(
    ("pool", "now", "line"),
    [
        ("h100", AT + timedelta(days=3), "forecast is 78 h old, more than 24 h: not used"),
        ("h100", AT - timedelta(hours=6), "forecast ends 24 h ahead or earlier: silent beyond"),
        (
            "h100",
            AT - timedelta(hours=9),
            "forecast was made after 2026-02-28 21:00 UTC, the last hour that is known: not used",
        ),
        ("l4", AT, "forecast says nothing of this pool"),
    ],
)
def test_a_forecast_that_is_of_no_use_says_so(tmp_path: Path, pool: str, now: datetime, line: str) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"unique_id,ds,generated_at,q0.5\nh100,2026-03-01T06:00:00Z,{MADE},8\n")
    given = read(file)
    assert given.problems(pool, now, timedelta(days=1), timedelta(hours=24)) == (line,)
    assert given.usable(pool, now, timedelta(days=1)) == ("silent beyond" in line)


def test_of_an_hour_what_was_said_last_by_then_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    made = [AT - timedelta(hours=hours) for hours in (1, 5, 3)]
    rows = [f"h100,{AT.isoformat()},{at.isoformat()},{at.hour}" for at in made]
    file.write_text("\n".join(["unique_id,ds,generated_at,q0.5", *rows]) + "\n")
    said = [read(file).at("h100", AT, AT - timedelta(hours=hours))[0] for hours in (0, 1, 2, 3, 4, 5)]
    assert said == [5.0, 5.0, 3.0, 3.0, 1.0, 1.0]
    assert np.isnan(read(file).at("h100", AT, AT - timedelta(hours=6))).all()


def test_rows_that_clash_or_miss_the_hour_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    rows = [f"h100,2026-03-01T06:00:00Z,{MADE},{gpus},x" for gpus in (8, 8, 9)]
    rows.append(f"h100,2026-03-01T06:30:00Z,{MADE},8,x")
    file.write_text("\n".join(["unique_id,ds,generated_at,q0.5,quality", *rows]) + "\n")
    given = read(file)
    assert given.repairs == (
        f"{file}: 1 row whose ds is no whole hour: not used",
        f"{file}: 1 row with other figures for the same pool, hour and generated_at: the last is taken",
    )
    assert given.at("h100", AT, AT)[0] == 9.0


def test_of_a_last_line_without_an_end_it_is_said_that_it_may_be_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"unique_id,ds,generated_at,q0.5\nh100,2026-03-01T06:00:00Z,{MADE},12")
    given = read(file)
    assert given.repairs == (f"{file}: 1 row without an end, the last: it may be cut off",)
    assert given.at("h100", AT, AT)[0] == 12.0


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
