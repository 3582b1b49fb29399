"""What the history keeps of one attempt, as it lies in the table, and which of two accounts of it is believed.

An account of how it ended, from a source that says so, beats one of a job that lives or is no longer listed. Of two
of a kind the later one counts, and of two equally late ones the one whose values are larger: any order of imports
ends at the same row.
"""

import hashlib
from typing import Any, NamedTuple

LIVE, GONE, TOLD = 0, 1, 2
"""`told`: it lives as far as is known; a queue stopped listing it; a source says how it ended."""

Value = int | str | None
Row = tuple[Any, ...]
"""As `Fact`: a plain tuple is made in half the time."""


class Fact(NamedTuple):
    """In the order of the table's columns. Times in microseconds since 1970 UTC; names are ids of words.

    `submit` is of this attempt. `turn` tells attempts apart whose source gives all the same submit; below 0 it stands
    for what the source calls the attempt for good. `part` is of a heterogeneous job. `seen` is the latest time of which
    the account speaks. `feed` is the live queue that lists it. `more` is JSON of what only few jobs have.
    """

    cluster: int
    id: str
    submit: int
    turn: int
    part: int
    told: int
    seen: int
    state: str
    eligible: int | None
    began: int | None
    ended: int | None
    gpus: int
    nodes: int | None
    model: int | None
    tenant: int
    user: int | None
    queue: int | None
    name: str | None
    time_limit_s: int | None
    priority: int
    more: str | None
    feed: int | None

    @property
    def key(self) -> "Key":
        return self.cluster, self.id, self.submit, self.turn, self.part


def turn_of(uid: str) -> int:
    """The `turn` of an attempt that its source names for good: the same in every import."""
    return -1 - (int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest()) >> 2)


Key = tuple[int, str, int, int, int]
KEY = 5
"""So many columns identify a fact."""

COLUMNS = Fact._fields
NAMES = ", ".join(COLUMNS)
_COMPARED = tuple(name for name in COLUMNS[KEY:] if name != "feed")
_NULLABLE = frozenset({"eligible", "began", "ended", "nodes", "model", "user", "queue", "name", "time_limit_s", "more"})


def _ranked(table: str) -> str:
    """The row value that decides; NULL ranks below everything."""
    names = [name for name in _COMPARED if name not in ("told", "seen")]
    values = [f"ifnull({table}.{name}, -1)" if name in _NULLABLE else f"{table}.{name}" for name in names]
    return f"({table}.told = {TOLD}, {table}.seen, {table}.told, {', '.join(values)})"


_SET = ", ".join(f"{name} = excluded.{name}" for name in (*_COMPARED, "mark"))
_FEED = "feed = coalesce(excluded.feed, history_attempt.feed)"
_BELIEVED = f"ON CONFLICT DO UPDATE SET {_SET}, {_FEED} WHERE {_ranked('excluded')} > {_ranked('history_attempt')}"

UPSERT = f"INSERT INTO history_attempt ({NAMES}) VALUES ({', '.join('?' * len(COLUMNS))}) {_BELIEVED}"
RARE = ("turn", "part", "told", "name", "more", "feed")
"""What only few rows of jobs that ended have; `told` is TOLD for all of them."""
BOUND = tuple(name for name in COLUMNS if name not in RARE)
ENDED = (
    f"INSERT INTO history_attempt ({', '.join(BOUND)}, mark, turn, part, told) "
    f"VALUES ({', '.join('?' * len(BOUND))}, ?, 0, 0, {TOLD}) {_BELIEVED}"
)
"""Of rows that have nothing rare: to bind a value takes longer than all else that an INSERT does with it."""
WAITING = f"CREATE TEMP TABLE IF NOT EXISTS history_waiting ({NAMES})"
WAIT = f"INSERT INTO history_waiting ({NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"
_DATED = NAMES.replace("seen", "max(seen, ?)")
SETTLE = (
    f"INSERT INTO history_attempt ({NAMES}) SELECT {_DATED} FROM history_waiting "
    f"WHERE rowid > ? AND rowid <= ? {_BELIEVED}"
)
RESIZED = (
    "INSERT INTO history_resize VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ended = excluded.ended, "
    "gpus = excluded.gpus WHERE (excluded.ended, excluded.gpus) > (history_resize.ended, history_resize.gpus)"
)
