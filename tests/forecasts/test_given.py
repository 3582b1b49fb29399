"""Forecasts made elsewhere: read whole or refused with the place."""

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
