"""A live queue, look by look: what is new, what has started, and what is no longer listed.

Only differences are written. What a whole listing no longer holds has left between the last look and this one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from state.history.facts import GONE, NAMES, UPSERT, Fact, Key

_LOOKED = "INSERT INTO history_feed VALUES (?, ?) ON CONFLICT DO UPDATE SET looked = max(looked, excluded.looked)"
_LEFT = (
    f"UPDATE history_attempt SET told = {GONE}, state = 'gone', ended = ?, seen = ? "
    "WHERE (cluster, id, submit, turn, part) = (?, ?, ?, ?, ?) AND told = 0"
)
_OPEN = f"SELECT {NAMES} FROM history_attempt WHERE told = 0 AND feed = ?"
_STAYING = tuple(Fact._fields.index(name) for name in ("state", "eligible", "began", "gpus", "nodes", "time_limit_s"))


class Listing(NamedTuple):
    """One look at one queue. `whole`: what is not in it is not in the queue. `facts` bear `seen` = `at`."""

    source: int
    at: int
    whole: bool
    facts: tuple[Fact, ...]


class Noticed(NamedTuple):
    """Rows that are new or changed, and rows of jobs that have left the queue."""

    changed: int = 0
    left: int = 0


def notice(connection: Connection, listings: Sequence[Listing]) -> Noticed:
    """A job that another of the queues lists now has not left."""
    listed = {fact.key for listing in listings for fact in listing.facts}
    changed = left = 0
    for listing in listings:
        known = _open(connection, listing.source)
        news = [fact for fact in listing.facts if _news(fact, known)]
        before = _looked(connection, listing.source)
        if news:
            connection.exec_driver_sql(UPSERT, [tuple(fact) for fact in news])
        missing = [key for key in known if key not in listed] if listing.whole and listing.at > before else []
        if missing:
            connection.exec_driver_sql(
                _LEFT, [(_between(before, known[key], listing.at), listing.at, *key) for key in missing]
            )
        connection.exec_driver_sql(_LOOKED, (listing.source, listing.at))
        changed, left = changed + len(news), left + len(missing)
    return Noticed(changed, left)


def _open(connection: Connection, source: int) -> dict[Key, Fact]:
    facts = map(Fact._make, connection.exec_driver_sql(_OPEN, (source,)))
    return {fact.key: fact for fact in facts}


def _news(fact: Fact, known: Mapping[Key, Fact]) -> bool:
    """Priorities change all the time and tell nothing about the past."""
    before = known.get(fact.key)
    return before is None or any(fact[at] != before[at] for at in _STAYING)


def _looked(connection: Connection, source: int) -> int:
    found = connection.exec_driver_sql("SELECT looked FROM history_feed WHERE source = ?", (source,)).scalar()
    return int(found or 0)


def _between(before: int, known: Fact, at: int) -> int:
    """Half-way between the last look that showed it and the one that did not."""
    return (max(before, known.seen) + at) // 2
