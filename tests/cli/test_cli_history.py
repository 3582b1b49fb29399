"""`broker history`, and who reads and feeds it."""

import sqlite3
from pathlib import Path

from tests.cli.conftest import Broker

HEADER = "id,tenant,submit,start,end,state,gpus,gpu_type"


def jobs(folder: Path, count: int = 30) -> Path:
    rows = [
        f"h{day},vision,2026-04-{day + 1:02d}T00:00:00Z,2026-04-{day + 1:02d}T00:10:00Z,"
        f"2026-04-{day + 1:02d}T05:10:00Z,done,8,h100"
        for day in range(count)
    ]
    file = folder / "jobs.csv"
    file.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return file


def test_import_show_export_and_prune(broker: Broker, demo: Path, tmp_path: Path) -> None:
    file = jobs(tmp_path)
    (first,) = broker("history", "import", file, "-c", demo, "--json").document["files"]
    assert (first["kept"], first["changed"]) == (30, 30)
    assert "is in already" in broker("history", "import", file, "-c", demo).out
    shown = broker("history", "show", "-c", demo, "--json").document
    assert (shown["total"]["jobs"], shown["total"]["gpu_hours"]) == (30, 30 * 5 * 8)
    assert broker("history", "export", "out.csv", "-c", demo).code == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 31
    assert broker("history", "prune", "--keep-days", 1, "-c", demo).code == 0
    assert broker("history", "export", "out.xml", "--to", "xml", "-c", demo).code == 1


def test_a_run_feeds_it_and_the_second_adds_nothing(broker: Broker, demo: Path) -> None:
    assert broker("run", "-c", demo).code == 0
    first = broker("history", "show", "-c", demo, "--json").document["total"]
    assert first["jobs"] > 0
    broker("run", "-c", demo)
    assert broker("history", "show", "-c", demo, "--json").document["total"]["jobs"] == first["jobs"]


def test_a_damaged_history_stops_no_run(broker: Broker, demo: Path) -> None:
    (demo.parent / "state.history.db").write_bytes(b"garbage " * 1000)
    ran = broker("run", "-c", demo)
    assert ran.code == 0
    assert "not added to the history" in ran.out + ran.err
    with sqlite3.connect(demo.parent / "state.db") as ledger:
        assert ledger.execute("SELECT count(*) FROM intent").fetchone()[0] > 0


def test_replays_read_it(broker: Broker, demo: Path, tmp_path: Path) -> None:
    broker("history", "import", jobs(tmp_path), "-c", demo)
    replayed = broker("backtest", "-c", demo, "--json")
    assert replayed.code == 0, replayed.err
    assert replayed.document["source"] == "the history of jobs"


def test_forecasts_read_it(broker: Broker, demo: Path, tmp_path: Path) -> None:
    broker("history", "import", jobs(tmp_path), "-c", demo)
    pools = broker("forecast", "-c", demo, "--json").document["forecast"]["pools"]
    assert max(pool["history_h"] for pool in pools) > 24 * 20


def test_without_a_history_it_is_said_how_to_begin(broker: Broker, demo: Path) -> None:
    ran = broker("history", "show", "-c", demo)
    assert ran.code == 1
    assert "broker history import" in ran.err
    assert broker("history", "import", "none.csv", "-c", demo).code == 1


def test_a_log_of_processors_is_told_how_many_go_with_a_gpu(broker: Broker, demo: Path, tmp_path: Path) -> None:
    log = Path(__file__).parents[1] / "queues" / "fixtures" / "swf" / "log.swf"
    refused = broker("history", "import", log, "-c", demo)
    assert refused.code == 1
    assert "--procs-per-gpu" in refused.out + refused.err
    (found,) = broker("history", "import", log, "--procs-per-gpu", 8, "-c", demo, "--json").document["files"]
    assert (found["format"], found["kept"], found["merged"]) == ("swf", 6, 1)
    broker("history", "export", "log.csv", "-c", demo)
    assert ",4," in next(row for row in (tmp_path / "log.csv").read_text().splitlines() if row.startswith("1,"))
    shown = broker("jobs", log, "--procs-per-gpu", 8, "-c", demo, "--json")
    assert (shown.code, shown.document["sources"][0]["kept"]) == (0, 6)
    assert broker("jobs", log, "-c", demo).code == 1


def test_a_log_that_does_not_say_when_it_began_is_told(broker: Broker, demo: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 5 3600 32 -1 -1 32 7200 -1 1 7 1 1 2 1 -1 -1\n")
    told = ("--procs-per-gpu", 8, "-c", demo)
    refused = broker("history", "import", log, *told)
    assert refused.code == 1
    assert "--epoch" in refused.out + refused.err
    for number, epoch in enumerate(("1772582400", "2026-03-04T00:00:00Z", "2026-03-04T01:00:00+01:00")):
        (found,) = broker("history", "import", log, *told, "--epoch", epoch, "--json").document["files"]
        assert (found["kept"], found["changed"]) == ((1, 1) if number == 0 else (0, 0))
        assert found["known"] is (number > 0), "the same time in other words is the same file"
    broker("history", "export", "log.csv", "-c", demo)
    assert "2026-03-04T00:00:00" in (tmp_path / "log.csv").read_text()
    assert broker("jobs", log, *told, "--epoch", 1772582400, "--json").document["sources"][0]["kept"] == 1
    for wrong in ("yesterday", "2026-03-04T00:00:00", "9" * 30):
        asked = broker("jobs", log, *told, "--epoch", wrong)
        assert asked.code == 1
        assert "--epoch" in asked.err
