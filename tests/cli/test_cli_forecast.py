"""`broker forecast`: histories in, quantiles and their accuracy out; too little is said to be too little."""

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker.commands.forecasting import Quantile, Row
from broker.view.forecast import _table
from tests.cli.conftest import Broker

START = datetime(2026, 3, 2, tzinfo=UTC)


def history(path: Path, days: int, *, ended: bool = True) -> Path:
    """Some jobs each hour, more by day, of three users; lengths of 10 minutes to some hours."""
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "tenant", "user", "submit", "start", "end", "state", "gpus"))
        for number in range(days * 24 * 3):
            hour = number // 3
            if rng.random() > (0.9 if 8 <= hour % 24 < 20 else 0.3):
                continue
            submit = START + timedelta(hours=hour, seconds=rng.uniform(0, 3600))
            start = submit + timedelta(seconds=30)
            end = start + timedelta(seconds=rng.lognormvariate(8, 1)) if ended else ""
            state = "done" if ended else "running"
            rows.writerow((number, "lab", f"u{number % 3}", submit, start, end, state, rng.choice([1, 2, 4])))
    return path


def test_quantiles_are_ordered_whole_and_repeatable(broker: Broker, tmp_path: Path) -> None:
    flags = ("forecast", "--history", history(tmp_path / "h.csv", 12), "--hours", 3, "--json")
    ran = broker(*flags)
    assert ran.code == 0, ran.err
    assert (ran.document["format_version"], ran.document["kind"]) == (1, "forecast")
    (pool,) = ran.document["forecast"]["pools"]
    assert [row["ahead_h"] for row in pool["rows"]] == [1, 2, 3]
    for row in pool["rows"]:
        gpus = [each["gpus"] for each in row["quantiles"]]
        assert gpus == sorted(gpus)
        assert all(isinstance(each, int) and each >= 0 for each in gpus)
    assert pool["history_h"] >= 240
    assert pool["notes"] == []
    assert broker(*flags).out == ran.out


def test_the_table_and_its_plot() -> None:
    levels = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    rows = [
        Row(ahead_h=hours, at=START + timedelta(hours=hours), quantiles=tuple(map(Quantile, levels, gpus)))
        for hours, gpus in ((1, (0, 8, 9, 10, 12, 16, 18, 20, 30)), (24, (0, 0, 0, 4, 20, 30, 36, 40, 50)))
    ]
    assert _table(rows) == (
        "ahead  at (UTC)     5%  25%  50%  75%  95%  99%  0 .. 40 GPUs\n"
        "  1 h  03-02 01:00   8   10   12   16   20   30          --==|====----\n"
        " 24 h  03-03 00:00   0    4   20   30   40   50  ----================|==========----------"
    )


@pytest.mark.parametrize(("days", "says"), [(1, "cold start"), (4, "little history")])
def test_a_cold_start_says_so(broker: Broker, tmp_path: Path, days: int, says: str) -> None:
    ran = broker("forecast", "--history", history(tmp_path / "h.csv", days), "--hours", 168)
    assert ran.code == 0
    assert says in ran.out
    assert "nothing can be said" in ran.out


def test_a_queue_without_finished_jobs_says_that_the_past_is_understated(broker: Broker, tmp_path: Path) -> None:
    ran = broker("forecast", "--history", history(tmp_path / "h.csv", 1, ended=False))
    assert "no finished job is known" in ran.out


def test_accuracy_beside_what_it_has_to_beat(broker: Broker, tmp_path: Path) -> None:
    ran = broker("forecast", "--history", history(tmp_path / "h.csv", 24), "--hours", 1, "--accuracy", "--json")
    found = {each["figure"]: each for each in ran.document["forecast"]["pools"][0]["accuracy"]}
    assert set(found) == {"demand 1 h ahead", "demand 6 h ahead", "demand 24 h ahead", "duration"}
    for each in found.values():
        assert [score["by"] for score in each["scores"]] == ["broker", "last week", "persistence", "rolling quantile"]
        assert len({score["count"] for score in each["scores"]}) == 1
        assert each["error_tail_index"] > 0
    pinball = {score["by"]: score["pinball"] for score in found["demand 1 h ahead"]["scores"]}
    assert pinball["broker"] < min(pinball["last week"], pinball["persistence"])
    assert {part["split"] for part in found["duration"]["parts"]} == {"hour of day", "novelty", "burst decile"}
    said = broker("forecast", "--history", history(tmp_path / "short.csv", 15), "--hours", 1, "--accuracy").out
    for word in ("pinball", "CRPS", "90% band holds", "band by novelty", "autocorrelation", "tail index"):
        assert word in said


def test_accuracy_that_cannot_be_told_is_said(broker: Broker, tmp_path: Path) -> None:
    past = tmp_path / "short.csv"
    past.write_text("id,submit,gpus,start,end,state\n7,2026-03-04T08:00Z,8,2026-03-04T08:00Z,2026-03-05T08:00Z,done\n")
    assert "its accuracy cannot be told from" in broker("forecast", "--history", past, "--accuracy").out
    assert "its accuracy cannot be told from" not in broker("forecast", "--history", past).out


def test_a_job_from_the_future_does_not_move_the_present(broker: Broker, tmp_path: Path) -> None:
    past = tmp_path / "odd.csv"
    rows = "7,2026-03-04T08:00Z,8,2026-03-04T08:00Z,2026-03-05T08:00Z,done\n8,9999-12-31T23:00Z,8,,,pending\n"
    past.write_text(f"id,submit,gpus,start,end,state\n{rows}")
    ran = broker("forecast", "--history", past)
    assert (ran.code, "1 job from the future left out" in ran.out, "at 2026-03-05 08:00" in ran.out) == (0, True, True)


CONFIG = """
forecast = "mine.csv"
[[pool]]
name = "h100"
gpu = "h100"
default = true
"""


def mine(path: Path, made: datetime, gpus: int, hours: int) -> None:
    rows = [f"h100,{(START + timedelta(hours=hour)).isoformat()},{made.isoformat()},{gpus}" for hour in range(hours)]
    path.write_text("\n".join(["unique_id,ds,generated_at,q0.5", *rows]) + "\n")


def test_your_own_forecast_competes_and_is_scored(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text('forecast_max_age = "30d"' + CONFIG)
    history(tmp_path / "h.csv", 4)
    flags = ("forecast", "--history", "h.csv", "--hours", 1)
    mine(tmp_path / "mine.csv", START + timedelta(days=1), 4000, 24 * 6)
    assert "pinball loss where your forecast spoke" in broker(*flags).out
    late = START + timedelta(days=5)
    mine(tmp_path / "mine.csv", late, 4000, 24 * 6)
    assert "your forecast spoke" not in broker(*flags).out, "nothing that was written later counts for the past"


def test_an_old_short_or_broken_forecast_of_yours_is_reported(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG)
    flags = ("forecast", "--history", history(tmp_path / "h.csv", 4), "--hours", 48)
    mine(tmp_path / "mine.csv", START, 5, 24)
    said = broker(*flags).out
    assert "your forecast is" in said
    assert "not used" in said
    mine(tmp_path / "mine.csv", START + timedelta(days=4), 5, 24)
    assert "your forecast ends 48 h ahead or earlier" in broker(*flags).out
    rows = ("x", "2026-03-05T06:00:00Z", "2026-03-05T05:00:00Z", "5")
    (tmp_path / "mine.csv").write_text(f"unique_id,ds,generated_at,q0.5\n{','.join(rows)}\n")
    ran = broker(*flags)
    assert "your forecast says nothing of this pool" in ran.out
    assert "mine.csv forecasts x: no such pool, not used" in ran.out
    (tmp_path / "mine.csv").write_text("unique_id\nh100\n")
    assert "your forecast is not used" in broker(*flags).out


def test_refusals(broker: Broker, tmp_path: Path) -> None:
    path = history(tmp_path / "h.csv", 1)
    assert 'there is no pool "b"' in broker("forecast", "--history", path, "--pool", "b").err
    ran = broker("forecast", "--history", tmp_path / "none.csv")
    assert (ran.code, ran.out) == (1, "")
    assert "the past is not known" in ran.err
    assert broker("forecast", "--hours", 0).code == 1
