"""State files that are missing, damaged, old, new, unwritable or on a full disk: one line, nothing changed."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from broker.errors import Exit, StateError
from state.database import in_plain_words
from state.schema import VERSION
from state.store import Store
from state.upkeep import backup, faults
from tests.apply.cloud import buy, plan
from tests.state.worlds import HOUR, LINEAGE, MINUTE, T0, done, held, intent, view

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "state.db"
    with Store.restore(made, now=T0, lineage=LINEAGE) as store:
        store.intend(intent())
        store.conclude("k1", done(T0 + MINUTE), reservation=held())
    return made


def one_line(error: StateError) -> str:
    assert error.exit is Exit.ERROR and error.next_step and "\n" not in str(error)
    return str(error)


def of_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET schema_version = ?", (version,))


def test_a_missing_file_names_both_ways_on(tmp_path: Path) -> None:
    with pytest.raises(StateError) as error:
        Store.open(tmp_path / "state.db")
    assert "broker init" in one_line(error.value) and "state adopt" in one_line(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_made_over_another(path: Path) -> None:
    with pytest.raises(StateError, match="exists already"):
        Store.create(path, now=T0)


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    of_version(path, VERSION + 1)
    before = path.read_bytes()
    with pytest.raises(StateError, match="newer than this broker") as error:
        Store.open(path)
    assert "Upgrade" in one_line(error.value) and path.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"",
        lambda whole: b"not a database at all" * 300,
        lambda whole: whole[:100] + b"\xff" * 4000 + whole[4100:],
    ],
    ids=["cut off", "empty", "text", "overwritten"],
)
def test_a_damaged_file_is_told_in_one_line(path: Path, damage: Callable[[bytes], bytes]) -> None:
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StateError) as error, Store.open(path) as store:
        store.intents()
        store.entries()
        store.count_steps()
    one_line(error.value)


def test_a_full_disk_stops_before_the_call_and_keeps_what_was(path: Path) -> None:
    with Store.open(path) as store:
        with store._write() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar()
            connection.execute(text(f"PRAGMA max_page_count = {pages}"))
        with pytest.raises(StateError, match="is full") as error:
            for number in range(1000):
                store.intend(intent(f"n{number}"))
        one_line(error.value)
    with Store.open(path) as store:
        assert store.intents()[0].key == "k1" and store.projections_agree() and faults(path) == ()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_sent(path: Path) -> None:
    with Store.open(path) as store:
        store._ask(lambda connection: connection.execute(text("PRAGMA query_only = 1")))
        with pytest.raises(StateError, match="cannot be written") as error:
            store.intend(intent("k9"))
    one_line(error.value)


def test_reading_does_not_need_the_right_to_write(path: Path) -> None:
    with Store.open(path, read_only=True) as store:
        assert len(store.reservations()) == 1
        with pytest.raises(StateError, match="cannot be written"):
            store.intend(intent("k9"))


def test_a_reader_sees_the_last_commit_while_a_run_writes(path: Path) -> None:
    with Store.open(path) as writer, Store.open(path, read_only=True) as reader:
        with writer._write() as connection:
            connection.execute(text("UPDATE meta SET quiet_until = 1"))
            assert reader.quiet_until is None
        assert reader.quiet_until is not None


def old_file(tmp_path: Path, version: int) -> Path:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS / f"v{version}.sql").read_text())
    return path


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_old_file_is_brought_up_to_date_with_a_copy_kept(tmp_path: Path, version: int) -> None:
    path = old_file(tmp_path, version)
    with pytest.raises(StateError, match="Upgrade it"):
        Store.open(path, read_only=True)
    with Store.open(path) as store:
        assert store.lineage == LINEAGE
        assert [r.id for r in store.reservations()] == ["res-1"] and [u.used for u in store.use_steps()] == [0, 1]
        assert store.projections_agree()
        store.witness([view(held(used=2), at=T0 + 2 * HOUR)], T0 + 2 * HOUR)
    assert faults(path) == ()
    assert shapes(path) == shapes(fresh(tmp_path)), "as a new file is made"
    assert path.with_name(f"old.db.v{version}").exists()


def fresh(tmp_path: Path) -> Path:
    Store.create(tmp_path / "fresh.db", now=T0).close()
    return tmp_path / "fresh.db"


def shapes(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return [(name, " ".join(sql.split())) for name, sql in rows]


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from state import migrate

    def half(operations: object) -> None:
        migrate._to_2(operations)  # type: ignore[arg-type]
        raise sqlite3.OperationalError("database or disk is full")

    path = old_file(tmp_path, 1)
    monkeypatch.setitem(migrate._MIGRATIONS, 2, half)
    with pytest.raises(StateError, match="is full"):
        Store.open(path)
    monkeypatch.undo()
    with Store.open(path) as store:
        assert store.lineage == LINEAGE


def test_alembic_is_not_imported_for_a_file_of_this_version(path: Path) -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from state.store import Store\n"
        f"Store.open(Path({str(path)!r}), read_only=True).reservations()\n"
        "sys.exit(any(name.startswith('alembic') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_backup_is_whole_and_taken_while_a_run_writes(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        store.intend(intent("k2"))
        copy = backup(path, tmp_path / "copy.db")
        store.intend(intent("k3"))
    assert copy.stat().st_mode & 0o077 == 0
    with Store.open(copy) as restored:
        assert [i.key for i in restored.intents()] == ["k1", "k2"]
    assert faults(copy) == ()


def test_a_backup_that_cannot_be_made_leaves_no_half_of_it(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot write the backup"):
        backup(path, tmp_path / "no" / "copy.db")
    with pytest.raises(StateError, match="no state file"):
        backup(tmp_path / "none.db", tmp_path / "copy.db")


def test_an_older_copy_put_in_its_place_is_noticed(path: Path, tmp_path: Path) -> None:
    copy = backup(path, tmp_path / "copy.db")
    with Store.open(path) as store:
        assert not store.was_replaced()
        store.intend(intent("k2"))
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    shutil.copy(copy, path)
    with Store.open(path) as store:
        assert store.was_replaced()
        store.be_quiet(T0 + HOUR)
        assert not store.was_replaced() and store.quiet_until == T0 + HOUR


def test_faults_are_found(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE intent SET seq = 999")
    assert any("intent" in fault for fault in faults(path))
    with Store.open(path) as store:
        assert not store.projections_agree()
        store.rebuild()
        assert store.projections_agree()
    assert faults(path) == ()


FLIPPED: dict[str, str] = {
    "the price of a purchase": 'UPDATE intent SET body = replace(body, \'"sent":"2026\', \'"sent":"2036\')',
    "the count of a reservation": "UPDATE reservation SET body = replace(body, '\"count\":', '\"count\":1')",
    "whether it is gone": "UPDATE reservation SET gone = 1",
    "the time of a step": "UPDATE count_step SET earliest = earliest + 8",
    "whether it is settled": "UPDATE intent SET status = 'failed'",
    "a plan that was not applied": "INSERT INTO applied_plan VALUES ('p', 1, 0)",
    "an entry": "DROP TRIGGER entry_no_update; UPDATE entry SET body = replace(body, '\"count\":', '\"count\":1')",
    "a kind": "DROP TRIGGER entry_no_update; UPDATE entry SET kind = 'intenu'",
}


@pytest.mark.parametrize("what", FLIPPED)
def test_a_number_that_changed_by_itself_is_found_because_everything_is_there_twice(path: Path, what: str) -> None:
    assert faults(path) == ()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(FLIPPED[what])
    assert faults(path) != ()


def test_what_the_ledger_makes_of_the_tables_is_what_rebuilding_makes_of_them(path: Path) -> None:
    with Store.open(path) as store:
        for minutes, count in ((1, 2), (9, 3), (20, 1)):
            store.witness([view(held(count=count), at=T0 + minutes * MINUTE)], T0 + minutes * MINUTE)
        store.record_applied(plan(buy("k9")), T0 + HOUR)
        assert store.projections_agree()
    assert faults(path) == ()


def test_a_lineage_in_which_a_bit_flipped_is_not_taken_for_another_broker(path: Path) -> None:
    """Nothing that was bought would be ours then, and all of it would be bought again."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET lineage = 'fedcba987654'")
    with pytest.raises(StateError, match="is damaged: it says that it is fedcba987654") as error:
        Store.open(path)
    assert "state adopt" in one_line(error.value)


def test_a_full_disk_under_the_copy_is_not_blamed_on_the_state(path: Path, tmp_path: Path) -> None:
    """A limit on what may be written, as a disk that is full: in a process of its own, for it stays."""
    copy = tmp_path / "copy.db"
    code = (
        "import resource, sys; from pathlib import Path; from state.upkeep import backup\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "backup(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, path, copy], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert f"StateError: cannot write the backup {copy}" in ran.stderr
    assert not list(tmp_path.glob("copy*"))


def test_a_folder_that_cannot_be_written_is_named_where_reading_needs_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says "readonly database" then, of a file that nobody wanted to write."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StateError, match=f"{path.parent} cannot be written, and even to be read"), in_plain_words(path):
        raise sqlite3.OperationalError("attempt to write a readonly database")


def test_a_backup_replaces_an_older_one_and_no_other_file(path: Path, tmp_path: Path) -> None:
    copy = backup(path, tmp_path / "copy.db")
    assert backup(path, copy) == copy
    other = tmp_path / "broker.toml"
    other.write_text("mode = 'act'")
    for target, why in ((other, "no backup"), (path, "the state itself"), (tmp_path, "a folder")):
        before = target.read_bytes() if target.is_file() else None
        with pytest.raises(StateError, match=why):
            backup(path, target)
        assert before is None or target.read_bytes() == before
