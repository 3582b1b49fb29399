"""The tables of the history. Times are microseconds since 1970 UTC.

`history_attempt` has one row for each attempt (and part of a heterogeneous job), by what its source calls it and when
it was put into the queue: nothing in a key depends on the order in which rows come in. Names that come again and again
are `history_word`s, whose ids follow from the words alone. `history_resize` holds the earlier sizes of jobs that were
resized while they ran. `history_file` says which files are in, `history_feed` when a live queue was last seen whole.
`mark` stands for a whole row (see `known`).
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

VERSION = 2
LATER = {2: "ALTER TABLE history_attempt ADD COLUMN mark INTEGER"}
"""What a history of the version before lacks, by version."""
METADATA = MetaData()

WORD = Table(
    "history_word",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    sqlite_strict=True,
)

ATTEMPT = Table(
    "history_attempt",
    METADATA,
    Column("cluster", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("submit", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("told", Integer, nullable=False),
    Column("seen", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("eligible", Integer),
    Column("began", Integer),
    Column("ended", Integer),
    Column("gpus", Integer, nullable=False),
    Column("nodes", Integer),
    Column("model", Integer),
    Column("tenant", Integer, nullable=False),
    Column("user", Integer),
    Column("queue", Integer),
    Column("name", Text),
    Column("time_limit_s", Integer),
    Column("priority", Integer, nullable=False),
    Column("more", Text),
    Column("feed", Integer),
    Column("mark", Integer),
    PrimaryKeyConstraint("cluster", "id", "submit", "turn", "part"),
    Index("history_open", "feed", sqlite_where=text("told = 0")),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

RESIZE = Table(
    "history_resize",
    METADATA,
    Column("cluster", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("submit", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("began", Integer, nullable=False),
    Column("ended", Integer, nullable=False),
    Column("gpus", Integer, nullable=False),
    PrimaryKeyConstraint("cluster", "id", "submit", "turn", "part", "began"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

FILE = Table(
    "history_file",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("imported", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    sqlite_strict=True,
)

FEED = Table(
    "history_feed",
    METADATA,
    Column("source", Integer, primary_key=True),
    Column("looked", Integer, nullable=False),
    sqlite_strict=True,
)

RULES = Table(
    "history_rules",
    METADATA,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True),
    Column("secret", Text, nullable=False),
    Column("hashed", Integer, nullable=False),
    Column("kept_since", Integer, nullable=False),
    sqlite_strict=True,
)
