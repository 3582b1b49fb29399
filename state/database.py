"""One SQLite file: WAL, full fsync, foreign keys, one connection that threads take turns on, errors in plain words."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError, NoResultFound

from broker import regular
from broker.errors import StateError

BUSY_S = 10.0


def engine_for(path: Path, *, read_only: bool) -> Engine:
    """Nothing is opened yet."""
    return _engine(lambda: _connect(path, read_only=read_only))


def _engine(connect: Any) -> Engine:
    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=StaticPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    a_file(path)
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_S,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    return connection


def a_file(path: Path) -> None:
    """SQLite opens a pipe as if it were a file, and waits for ever. Raises sqlite3.Error."""
    try:
        regular.require(path)
    except OSError as error:
        raise sqlite3.DatabaseError(f"not a database: {error.strerror}") from None


def make_file(path: Path) -> None:
    """An empty file that only its owner reads. Raises StateError if there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_symlink() and not path.exists():
            what = f"{path} is a link to a file that is not there"
            raise StateError(what, next_step="Remove the link, or put back what it points to") from None
        raise StateError(f"{path} exists already", next_step="Use it, or give another --state") from None
    except OSError as error:
        raise StateError(f"cannot create the state file {path}: {error.strerror}", next_step=_PERMISSIONS) from None


@contextmanager
def in_plain_words(path: Path) -> Iterator[None]:
    """Every database error as one StateError that says what to do; also rows that hold what we never wrote."""
    try:
        yield
    except UNREADABLE as error:
        raise _translated(path, sqlite3.DatabaseError(f"malformed: {error}")) from error
    except DBAPIError as error:
        raise _translated(path, error.orig or error) from error
    except sqlite3.Error as error:
        raise _translated(path, error) from error


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError, NoResultFound)
"""What reading a row ends in that SQLite took for whole: it keeps no checksums."""

_PERMISSIONS = "Check the directory's permissions, or give another --state"
_WORDS = (
    ("disk is full", "the disk of {path} is full", "Free some space and run again; nothing is lost"),
    ("readonly", "{path} cannot be written", "Make it and its directory writable for this user"),
    ("unable to open", "{path} cannot be opened", _PERMISSIONS),
    ("locked", "{path} is held by another program", "Close what has it open and run again"),
    ("malformed", "{path} is damaged", "Restore a backup, or make a new one with: broker state adopt"),
    ("not a database", "{path} is not a state file, or is damaged", "Restore a backup, or: broker state adopt"),
    ("no such table", "{path} is not a state file of the broker", "Restore a backup, or: broker state adopt"),
    ("disk i/o error", "the disk of {path} failed", "Check the disk; restore a backup if the file is damaged"),
)


def _translated(path: Path, error: BaseException) -> StateError:
    text = str(error).lower()
    if "readonly" in text and not os.access(path.parent, os.W_OK):
        what = f"{path.parent} cannot be written, and even to be read {path.name} needs files beside it"
        return StateError(what, next_step="Make the folder writable for this user, or be the user who runs the broker")
    for sign, what, next_step in _WORDS:
        if sign in text:
            return StateError(what.format(path=path), next_step=next_step)
    return StateError(f"the state file {path} cannot be used: {error}", next_step="Restore a backup")
