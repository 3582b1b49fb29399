"""Copies of the state, and whether it is whole."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import select

from broker.errors import StateError
from state.database import UNREADABLE, a_file, engine_for, in_plain_words
from state.schema import META, VERSION
from state.whole_file import holds_else

_SQLITE = b"SQLite format 3\0"


def backup(path: Path, target: Path) -> Path:
    """A consistent copy, also while a run writes. Replaces an older copy as a whole, and nothing else.

    Raises StateError.
    """
    _spare(path, target)
    fresh = target.with_name(f"{target.name}.new")
    with in_plain_words(path), closing(_opened(path)) as source:
        try:
            os.close(os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(fresh)) as copy:
                source.backup(copy)
            fresh.replace(target)
        except OSError as error:
            raise _unwritten(target, str(error.strerror)) from None
        except sqlite3.Error as error:
            if error.sqlite_errorcode not in _OF_THE_COPY:
                raise
            raise _unwritten(target, str(error)) from None
        finally:
            fresh.unlink(missing_ok=True)
    return target


_OF_THE_COPY = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
"""The state is open for reading by then: what cannot be written is the copy."""


def _unwritten(target: Path, why: str) -> StateError:
    return StateError(f"cannot write the backup {target}: {why}", next_step="Give another place")


def _spare(path: Path, target: Path) -> None:
    """A mistyped name costs no file, and least of all the state itself."""
    if target.resolve() in {path.with_name(path.name + beside).resolve() for beside in ("", "-wal", "-shm")}:
        raise StateError(f"{target} is the state itself", next_step="Give another place")
    if target.is_dir():
        raise _unwritten(target, "it is a folder")
    try:
        taken = holds_else(target, lambda begun: begun.startswith(_SQLITE))
    except OSError as error:
        raise _unwritten(target, str(error.strerror)) from None
    if taken:
        raise StateError(f"{target} is there already and is no backup", next_step="Give another place")


def faults(path: Path) -> tuple[str, ...]:
    """What is wrong with the file, one line each; empty when it is whole. Raises StateError if it cannot be read."""
    with in_plain_words(path), closing(_opened(path)) as connection:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
        broken = [str(row[0]) for row in rows if row[0] != "ok"]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    found = (*broken, *(f"{row[0]}: row {row[1]} points to nothing in {row[2]}" for row in orphans))
    return found or _contradictions(path)


def _contradictions(path: Path) -> tuple[str, ...]:
    """What a file that SQLite takes for whole says twice, and not alike."""
    from state.agreement import disagreements

    engine = engine_for(path, read_only=True)
    try:
        with engine.begin() as connection:
            if connection.execute(select(META.c.schema_version)).scalar_one() > VERSION:
                return ()
            return disagreements(connection)
    except UNREADABLE as error:
        return (f"a row holds what was never written: {error}",)
    finally:
        engine.dispose()


def _opened(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise StateError(f"there is no state file {path}", next_step="Make one: broker init, or broker state adopt")
    a_file(path)
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
