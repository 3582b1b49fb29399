"""The history's own SQLite file beside the ledger: a damaged, full or huge history never stands in the ledger's way."""

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import NamedTuple

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from broker.errors import StateError
from state.database import engine_for, make_file
from state.history import keeping, reading, tables
from state.history.reading import Attempt
from state.history.runs import last_runs
from state.history.watching import Listing, Noticed, notice
from state.history.words import Words
from state.history.writing import Writer

_BULK_CACHE = "PRAGMA cache_size = -16384"
_USUAL_CACHE = "PRAGMA cache_size = -2000"


class Rules(NamedTuple):
    """`hashed`: users and job names are kept as aliases made with `secret`. Older than `kept_since` is left out."""

    secret: str = ""
    hashed: bool = False
    kept_since: int = 0


def beside(state: Path) -> Path:
    """Where the history of a state file lies."""
    return state.with_name(f"{state.stem}.history{state.suffix or '.db'}")


class History:
    """Imports and runs may write at the same time: no order of them changes the end. All methods raise StateError."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self._engine = engine
        self._turn = RLock()

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "History":
        """Made where there is none, unless `read_only`."""
        if not path.exists() and not read_only:
            make_file(path)
        history = cls(path, engine_for(path, read_only=read_only))
        history._ready(read_only=read_only)
        return history

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, *, read_only: bool) -> None:
        with self._read() as connection:
            version = int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)
        if version > tables.VERSION:
            what = f"the history {self.path} was written by a newer broker"
            raise StateError(what, next_step="Use that version, or move the file away and import again")
        if version == 0 and not read_only:
            with self._write() as connection:
                tables.METADATA.create_all(connection)
                connection.exec_driver_sql(f"PRAGMA user_version = {tables.VERSION}")
        if 0 < version < tables.VERSION and not read_only:
            self._renew()

    def _renew(self) -> None:
        with self._write() as connection:
            found = int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)
            for version in range(found + 1, tables.VERSION + 1):
                connection.exec_driver_sql(tables.LATER[version])
            connection.exec_driver_sql(f"PRAGMA user_version = {tables.VERSION}")

    @property
    def rules(self) -> Rules:
        with self._read() as connection:
            row = connection.exec_driver_sql("SELECT secret, hashed, kept_since FROM history_rules").first()
        return Rules(row[0], bool(row[1]), row[2]) if row else Rules()

    def words(self) -> Words:
        """Ids as this history has them: with aliases where names are hidden."""
        rules = self.rules
        return Words(rules.secret if rules.hashed else "")

    def hide_names(self) -> None:
        """From now on users and job names are kept as aliases; those that are in already become aliases too."""
        if self.rules.hashed:
            return
        with self._write() as connection:
            self._ruled(connection)
            secret = connection.exec_driver_sql("SELECT secret FROM history_rules").scalar()
            keeping.hide(connection, Words(str(secret)))
            connection.exec_driver_sql("UPDATE history_rules SET hashed = 1")
        self.shrink()

    def jobs(self, since: int | None = None) -> Iterator[tuple[Attempt, ...]]:
        """The attempts of each job that was not over before `since` (microseconds), ordered by cluster and id."""
        with self._read() as connection:
            yield from reading.jobs(connection, since)

    def runs(self, users: Iterable[str], latest: int) -> dict[str, list[float]]:
        """Seconds that the `latest` finished attempts of each user ran, by the name that the queue gives the user."""
        words = self.words()
        named = {words.user[user]: user for user in users}
        with self._read() as connection:
            return {named[word]: seconds for word, seconds in last_runs(connection, named, latest).items()}

    def files(self) -> int:
        """How many files are in."""
        with self._read() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM history_file").scalar() or 0)

    def has_file(self, digest: str) -> bool:
        with self._read() as connection:
            found = connection.exec_driver_sql("SELECT 1 FROM history_file WHERE digest = ?", (digest,)).first()
        return found is not None

    def record_file(self, digest: str, name: str, imported: int, rows: int) -> None:
        """The file is in as a whole."""
        with self._write() as connection:
            row = (digest, name, imported, rows)
            connection.exec_driver_sql("INSERT OR REPLACE INTO history_file VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def importing(self) -> Iterator[Writer]:
        """A writer, with room in memory for many pages. What was added before an error stays, and does no harm."""
        with self._read() as connection:
            connection.exec_driver_sql(_BULK_CACHE)
        writer = Writer(self._write, self.words(), self.rules.kept_since)
        try:
            yield writer
        finally:
            self._forget_import()

    def _forget_import(self) -> None:
        with self._read() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS temp.history_waiting")
            connection.exec_driver_sql(_USUAL_CACHE)

    def notice(self, listings: Sequence[Listing], words: Words) -> Noticed:
        """What live queues hold now. `words` are those that the facts were made with."""
        with self._write() as connection:
            if words.fresh:
                connection.exec_driver_sql("INSERT OR IGNORE INTO history_word VALUES (?, ?, ?)", words.fresh)
            return notice(connection, listings)

    def forget(self, before: int) -> int:
        """Jobs that were over before then, now and in imports to come. Returns how many were forgotten."""
        earlier = before < self.rules.kept_since
        with self._write() as connection:
            self._ruled(connection)
            if earlier:
                connection.exec_driver_sql("DELETE FROM history_file")
            connection.exec_driver_sql("UPDATE history_rules SET kept_since = ?", (before,))
        return keeping.forget(self._write, before)

    def shrink(self) -> None:
        """The file takes no more room than what is in it."""
        with self._plainly(), closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("VACUUM")

    def _ruled(self, connection: Connection) -> None:
        row = (1, secrets.token_hex(32), 0, 0)
        connection.exec_driver_sql("INSERT OR IGNORE INTO history_rules VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._turn, self._plainly(), self._engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection:
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._turn, self._plainly(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            raise _translated(self.path, error) from error


_AGAIN = "Move it away and import again; the ledger is another file and untouched"
_WORDS = (
    ("disk is full", "the disk of the history {path} is full", "free some space and run it again"),
    ("readonly", "the history {path} cannot be written", "make it and its directory writable for this user"),
    ("unable to open", "the history {path} cannot be opened", "check the path and its directory's permissions"),
    ("locked", "the history {path} is held by another program", "wait for it, or close what has it open"),
    ("malformed", "the history {path} is damaged", _AGAIN),
    ("not a database", "the history {path} is damaged, or no history", _AGAIN),
    ("disk i/o error", "the disk of the history {path} failed", "check the disk"),
)


def _translated(path: Path, error: BaseException) -> StateError:
    text = str(getattr(error, "orig", None) or error).lower()
    for sign, what, next_step in _WORDS:
        if sign in text:
            return StateError(what.format(path=path), next_step=next_step)
    return StateError(f"the history {path} cannot be used: {text}", next_step=_AGAIN)
