"""What is hidden, forgotten, exported; and a history file that is in a bad way."""

import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker.errors import StateError, UsageError
from broker.history import exporting
from broker.history.importing import Options, import_file
from broker.history.past import jobs
from broker.history.summary import summarise
from state.encode import to_us
from state.history.store import History, beside
from tests.history.conftest import NOW, Bring, row, written


def test_hidden_names_are_nowhere_in_the_file_and_still_join(history: History, bring: Bring) -> None:
    bring([row("1", user="ada")])
    history.hide_names()
    bring([row("2", user="ada"), row("3", user="bob")])
    one, two, three = jobs(history)
    assert one.user == two.user != three.user
    assert one.name == two.name != "train"
    assert one.tenant == "vision"
    history.close()
    raw = b"".join(path.read_bytes() for path in history.path.parent.glob("state.history*"))
    assert b"userada" not in raw
    with sqlite3.connect(history.path) as connection:
        words = {row[0] for row in connection.execute("SELECT text FROM history_word")}
    assert not {"ada", "bob"} & words


def test_aliases_differ_from_one_history_to_the_next(tmp_path: Path) -> None:
    aliases = set()
    for name in ("a", "b"):
        with History.open(tmp_path / f"{name}.db") as history:
            history.hide_names()
            import_file(written(tmp_path / "f.txt", [row()]), Options(timezone="UTC"), history, NOW)
            aliases |= {job.user for job in jobs(history)}
    assert len(aliases) == 2


def test_what_is_forgotten_stays_so(history: History, bring: Bring) -> None:
    late = row("2", submit="2026-05-20T00:00:00", start="2026-05-20T00:30:00", end="2026-05-20T03:00:00")
    bring([row("1"), late])
    assert history.forget(to_us(datetime(2026, 5, 10, tzinfo=UTC))) == 1
    again = bring([late, row("1")])
    assert (again.changed, again.forgotten) == (0, 1)
    assert [job.id for job in jobs(history)] == ["2"]


def test_the_summary_knows_span_gaps_and_tenants(history: History, bring: Bring) -> None:
    late = row("2", submit="2026-05-20T00:00:00", start="2026-05-20T00:30:00", end="2026-05-20T03:00:00", account="nlp")
    bring([row("1"), late])
    found = summarise(history)
    assert (found.first, found.last) == (datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 20, 3, tzinfo=UTC))
    assert [(gap.begin.day, gap.end.day) for gap in found.gaps] == [(2, 20)]
    assert {each.tenant: each.gpu_hours for each in found.tenants} == {"vision": 16.0, "nlp": 20.0}


def test_exports_read_back_as_the_same_jobs(history: History, bring: Bring, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    bring([row("1"), row("2_1"), row("3", end="Unknown", state="RUNNING")])
    for form in ("csv", "parquet"):
        target = tmp_path / f"out.{form}"
        assert exporting.to_file(target, exporting.writer(form), jobs(history)) == 3
        with History.open(tmp_path / f"{form}.db") as other:
            import_file(target, Options(), other, NOW)
            assert list(jobs(other)) == list(jobs(history))


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow"):
        exporting.writer("parquet")


def test_only_its_owner_reads_the_file(history: History) -> None:
    assert stat.S_IMODE(history.path.stat().st_mode) == 0o600


def test_it_lies_beside_the_ledger() -> None:
    assert beside(Path("/a/state.db")) == Path("/a/state.history.db")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(StateError, match="damaged"):
        History.open(path)


def test_a_damaged_page_is_one_line(history: History, bring: Bring) -> None:
    bring([row(str(number)) for number in range(2000)])
    history.close()
    raw = bytearray(history.path.read_bytes())
    raw[4096 * 5 :] = b"\xff" * (len(raw) - 4096 * 5)
    history.path.write_bytes(bytes(raw))
    with pytest.raises(StateError) as caught, History.open(history.path) as damaged:
        list(jobs(damaged))
    assert "damaged" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_a_newer_version_is_left_alone(history: History) -> None:
    history.close()
    with sqlite3.connect(history.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match="newer"):
        History.open(history.path)


def test_a_full_disk_is_one_line_and_what_was_in_stays(history: History, bring: Bring) -> None:
    bring([row("1")])
    with history._engine.begin() as connection:
        pages = int(connection.exec_driver_sql("PRAGMA page_count").scalar() or 0)
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StateError, match="full"):
        bring([row(str(number)) for number in range(2, 5000)])
    assert [job.id for job in jobs(history)] == ["1"]


def test_a_read_only_history_is_one_line(history: History, bring: Bring) -> None:
    bring([row("1")])
    history.close()
    with History.open(history.path, read_only=True) as closed, pytest.raises(StateError, match="cannot be written"):
        closed.forget(to_us(NOW - timedelta(days=1)))
