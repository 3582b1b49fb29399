"""Rows that are in already, as they are: told by a mark, without writing them to see that nothing changes.

An export that overlaps with earlier ones holds mostly such rows. Marks are only ever a short cut: a row without one, or
whose mark was made by another Python, is written and compared in full.
"""

import sys
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

from sqlalchemy import Connection

from broker.model.job import JobState
from state.history.facts import BOUND, RARE, TOLD, Fact, Row

MOST = 1_500_000
"""So many marks are held at a time: about a hundred megabytes."""
_SAMPLE = 64
_WORTH = 0.5
_ENOUGH = 0.9
_STATES = {state.value: int.from_bytes(state.value.encode()) for state in JobState}
_MADE_BY = sys.hexversion >> 16
_OF_ROW = (
    "SELECT mark FROM history_attempt WHERE (cluster, id, submit, turn, part) = (?, ?, ?, 0, 0) AND mark IS NOT NULL"
)
_OF_STRETCH = "SELECT mark FROM history_attempt WHERE cluster = ? AND id BETWEEN ? AND ? AND mark IS NOT NULL LIMIT ?"


def usual(row: Row) -> bool:
    """It ended, and has nothing that only few rows have: then it has a mark."""
    return bool(_RARE(row) == _NOTHING_RARE)


def mark(row: Row) -> int:
    """64 bits that differ where usual rows do.

    Python hashes whole numbers, and tuples of them, alike in every process; not so None or text.
    """
    (
        cluster, identity, submit, _, _, _, seen, state, eligible, began, ended, gpus, nodes, model, tenant, user,
        queue, _, time_limit_s, priority, _, _,
    ) = row  # fmt: skip
    return hash((
        _MADE_BY, cluster, int.from_bytes(identity.encode()), submit, seen, _STATES[state], eligible or 0, began or 0,
        ended or 0, gpus, -1 if nodes is None else nodes, model or 0, tenant, user or 0, queue or 0,
        -1 if time_limit_s is None else time_limit_s, priority,
    ))  # fmt: skip


_RARE = itemgetter(*(Fact._fields.index(name) for name in RARE))
_NOTHING_RARE = (0, 0, TOLD, None, None, None)
_BOUND = itemgetter(*(Fact._fields.index(name) for name in BOUND))
_ID = itemgetter(1)


class Known:
    """What is known of the table during one import: the marks of the stretch of ids that is being read."""

    def __init__(self) -> None:
        self._marks: set[int] = set()

    def without(self, connection: Connection, rows: Sequence[Row]) -> list[Row]:
        """Those of these usual rows that may tell something new, as `facts.ENDED` takes them."""
        marks = list(map(mark, rows))
        if self._worth(connection, rows, marks):
            known = self._marks
            return [(*_BOUND(row), each) for row, each in zip(rows, marks, strict=True) if each not in known]
        return [(*_BOUND(row), each) for row, each in zip(rows, marks, strict=True)]

    def _worth(self, connection: Connection, rows: Sequence[Row], marks: Sequence[int]) -> bool:
        """Whether half of a few rows are in, and so the marks of all were loaded."""
        few = range(0, len(rows), len(rows) // _SAMPLE + 1)
        there = [marks[at] for at in few if _is_in(connection, rows[at], marks[at])]
        if len(there) <= len(few) * _WORTH:
            return False
        if sum(each in self._marks for each in there) < len(there) * _ENOUGH:
            self._load(connection, rows)
        return True

    def _load(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Only speed depends on it that most rows are of the first one's cluster."""
        self._marks = set()
        ids = list(map(_ID, rows))
        driver = connection.connection.driver_connection
        assert driver is not None
        self._marks.update(chain.from_iterable(driver.execute(_OF_STRETCH, (rows[0][0], min(ids), max(ids), MOST))))


def _is_in(connection: Connection, row: Row, its_mark: int) -> bool:
    return connection.exec_driver_sql(_OF_ROW, row[:3]).scalar() == its_mark
