"""Rows that are in already are passed over by their marks, and nothing but time depends on it."""

from datetime import timedelta
from pathlib import Path

import pytest

from state.history import known
from state.history.store import History
from tests.history.conftest import NOW, Bring, row

_JOBS = 300
_MARKS = "SELECT count(*), count(mark), count(DISTINCT mark) FROM history_attempt"


def _rows() -> list[str]:
    return [row(f"{number}", user=f"u{number % 7}") for number in range(_JOBS)]


def _all(history: History) -> list[tuple[object, ...]]:
    with history._read() as connection:
        return [tuple(each) for each in connection.exec_driver_sql("SELECT * FROM history_attempt ORDER BY 1, 2, 3")]


def _told(history: History, statement: str) -> tuple[int, ...]:
    with history._write() as connection:
        found = connection.exec_driver_sql(statement)
        return tuple(found.one()) if found.returns_rows else ()


def _written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each import leaves to be written."""
    counts: list[int] = []
    real = known.Known.without

    def counted(self: known.Known, *arguments: object) -> object:
        left = real(self, *arguments)  # type: ignore[arg-type]
        counts.append(len(left))
        return left

    monkeypatch.setattr(known.Known, "without", counted)
    return counts


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without the names of jobs: those that have one have no mark."""
    monkeypatch.setattr("tests.history.conftest.HEADER", _HEADER)


_HEADER = (
    "JobID|Cluster|User|Account|Partition|Submit|Eligible|Start|End|ElapsedRaw|State|ReqTRES|AllocTRES|NNodes|Comment"
)


@pytest.mark.usefixtures("plain")
def test_only_what_is_new_is_written(history: History, bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    written = _written(monkeypatch)
    bring(_rows())
    before = _all(history)
    assert _told(history, _MARKS) == (_JOBS, _JOBS, _JOBS)
    again = bring([*_rows()[::-1], row("9000")])
    assert (again.kept, again.changed) == (_JOBS + 1, 1)
    assert written == [_JOBS, 1]
    assert [each for each in _all(history) if each[1] != "9000"] == before


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("other", [{"state": "FAILED"}, {"end": "2026-05-01T03:00:00"}, {"account": "speech"}])
def test_a_row_that_says_something_else_is_not_known(history: History, bring: Bring, other: dict[str, str]) -> None:
    changed = _rows()
    changed[7] = row("7", user="u0", **other)  # type: ignore[arg-type]
    bring(_rows())
    one = bring(changed)
    there = _all(history)
    assert one.changed in (0, 1), "which of two equally late accounts is believed depends on their values alone"
    bring(_rows())
    assert _all(history) == there


@pytest.mark.usefixtures("plain")
def test_what_becomes_hidden_or_is_forgotten_is_no_longer_known_as_it_was(history: History, bring: Bring) -> None:
    bring(_rows())
    history.hide_names()
    assert _told(history, _MARKS)[1] == 0
    assert bring(_rows()[::-1]).changed == 0
    history.forget(int((NOW + timedelta(days=1)).timestamp() * 1_000_000))
    again = bring([*_rows(), ""])
    assert (again.forgotten, _all(history)) == (_JOBS, [])


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("spoiled", ["mark + 1", "NULL"])
def test_marks_of_another_python_and_none_cost_time_only(history: History, bring: Bring, spoiled: str) -> None:
    bring(_rows())
    before = [each[:-1] for each in _all(history)]
    _told(history, f"UPDATE history_attempt SET mark = {spoiled}")
    assert bring(_rows()[::-1]).changed == 0
    assert [each[:-1] for each in _all(history)] == before


@pytest.mark.usefixtures("plain")
def test_more_rows_than_are_held_in_memory_cost_time_only(
    history: History, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MOST", 10)
    bring(_rows())
    before = _all(history)
    assert bring(_rows()[::-1]).changed == 0
    assert _all(history) == before


@pytest.mark.usefixtures("plain")
def test_a_history_of_the_version_before_is_taken_on(history: History, bring: Bring) -> None:
    bring(_rows())
    before = [each[:-1] for each in _all(history)]
    _told(history, "ALTER TABLE history_attempt DROP COLUMN mark")
    _told(history, "PRAGMA user_version = 1")
    path: Path = history.path
    history.close()
    with History.open(path, read_only=True) as older:
        assert sum(1 for _ in older.jobs()) == _JOBS
    with History.open(path) as renewed:
        assert [each[:-1] for each in _all(renewed)] == before
        assert _told(renewed, "PRAGMA user_version") == (2,)
