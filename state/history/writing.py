"""Takes facts into the history in short transactions: a broker that wants to write its ledger never waits long."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from operator import itemgetter

from sqlalchemy import Connection

from state.history.facts import ENDED, RESIZED, SETTLE, UPSERT, WAIT, WAITING, Row
from state.history.known import Known, usual
from state.history.words import Words

Write = Callable[[], AbstractContextManager[Connection]]
_CHUNK = 20_000
_WORD = "INSERT OR IGNORE INTO history_word (id, kind, text) VALUES (?, ?, ?)"


class Writer:
    """One import. Facts of what lives wait until `finish`, when it is known how fresh the file is.

    `changed` counts rows that were new or told more than what was there.
    """

    def __init__(self, write: Write, words: Words, kept_since: int) -> None:
        self.words = words
        self.changed = 0
        self.forgotten = 0
        self._write = write
        self._kept_since = kept_since
        self._waiting = 0
        self._known = Known()

    def add(self, ended: Sequence[Row], live: Sequence[Row] = (), resized: Sequence[Row] = ()) -> None:
        """One transaction. What ended before the time from which history is kept is left out and counted."""
        kept = [row for row in ended if row[_SEEN] >= self._kept_since]
        self.forgotten += len(ended) - len(kept)
        with self._write() as connection:
            self._spell(connection)
            self._take_ended(connection, kept)
            self._take(connection, RESIZED, resized)
            if live:
                connection.exec_driver_sql(WAITING)
                connection.exec_driver_sql(WAIT, list(live))
                self._waiting += len(live)

    def finish(self, fresh_us: int) -> None:
        """What lives was seen alive at `fresh_us`."""
        for first in range(0, self._waiting, _CHUNK):
            with self._write() as connection:
                before = _changes(connection)
                connection.exec_driver_sql(SETTLE, (fresh_us, first, first + _CHUNK))
                self.changed += _changes(connection) - before
        self.drop()

    def drop(self) -> None:
        """Forget what waits."""
        with self._write() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS temp.history_waiting")
        self._waiting = 0

    def _spell(self, connection: Connection) -> None:
        if self.words.fresh:
            connection.exec_driver_sql(_WORD, self.words.fresh)
            self.words.fresh.clear()

    def _take_ended(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Rows that are in as they are need not be written to find out that they change nothing."""
        most = [row for row in rows if usual(row)]
        few = [row for row in rows if not usual(row)] if len(most) < len(rows) else []
        self._take(connection, ENDED, sorted(self._known.without(connection, most), key=_BY_ID))
        self._take(connection, UPSERT, sorted(few, key=_BY_ID))

    def _take(self, connection: Connection, statement: str, rows: Sequence[Row]) -> None:
        if rows:
            before = _changes(connection)
            connection.exec_driver_sql(statement, list(rows))
            self.changed += _changes(connection) - before


_SEEN = 6
_BY_ID = itemgetter(1)
"""Rows of one place in the table come together, so that a page is touched once; nearly all are of one cluster."""


def _changes(connection: Connection) -> int:
    return int(getattr(connection.connection.driver_connection, "total_changes", 0))
