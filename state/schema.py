"""The tables of schema version 2. Times are microseconds since 1970 UTC; money is micro-dollars; bodies are JSON.

`entry` is the ledger: append-only, held so by triggers. `intent`, `reservation`, `count_step`, `use_step` and
`applied_plan` are projections of it and can be rebuilt from it alone. `meta`, `heartbeat`, `scope_look` and
`watched` are overwritten: they say how things are now, and nothing is derived from them that could cost money.
"""

from sqlalchemy import (
    DDL,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    event,
)

VERSION = 2
METADATA = MetaData()

META = Table(
    "meta",
    METADATA,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True),
    Column("schema_version", Integer, nullable=False),
    Column("lineage", Text, nullable=False),
    Column("created", Integer, nullable=False),
    Column("quiet_until", Integer),
    sqlite_strict=True,
)

ENTRY = Table(
    "entry",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("at", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("moves", Integer, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("key", Text),
    Column("scope", Text),
    Column("reservation_id", Text),
    Column("body", Text, nullable=False),
    Index("entry_by_moves", "moves", "seq"),
    Index("entry_by_reservation", "reservation_id", "seq"),
    Index("entry_by_time", "at"),
    sqlite_strict=True,
)

INTENT = Table(
    "intent",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("seq", Integer, ForeignKey("entry.seq"), nullable=False, unique=True),
    Column("status", Text, nullable=False),
    Column("ended", Integer),
    Column("scope", Text, nullable=False),
    Column("reservation_id", Text),
    Column("body", Text, nullable=False),
    Index("intent_by_status", "status", "ended"),
    Index("intent_by_reservation", "scope", "reservation_id"),
    sqlite_strict=True,
)

RESERVATION = Table(
    "reservation",
    METADATA,
    Column("scope", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("seq", Integer, ForeignKey("entry.seq"), nullable=False),
    Column("gone", Integer, nullable=False),
    Column("confirmed", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("scope", "id"),
    sqlite_strict=True,
)

COUNT_STEP = Table(
    "count_step",
    METADATA,
    Column("scope", Text, nullable=False),
    Column("reservation_id", Text, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("earliest", Integer, nullable=False),
    Column("latest", Integer, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("scope", "reservation_id", "ordinal"),
    sqlite_strict=True,
)

USE_STEP = Table(
    "use_step",
    METADATA,
    Column("seq", Integer, ForeignKey("entry.seq"), primary_key=True),
    Column("scope", Text, nullable=False),
    Column("reservation_id", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Index("use_step_by_reservation", "scope", "reservation_id", "at"),
    sqlite_strict=True,
)

APPLIED_PLAN = Table(
    "applied_plan",
    METADATA,
    Column("plan_id", Text, primary_key=True),
    Column("seq", Integer, ForeignKey("entry.seq"), nullable=False),
    Column("at", Integer, nullable=False),
    sqlite_strict=True,
)

HEARTBEAT = Table(
    "heartbeat",
    METADATA,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True),
    Column("body", Text, nullable=False),
    sqlite_strict=True,
)

SCOPE_LOOK = Table(
    "scope_look",
    METADATA,
    Column("scope", Text, primary_key=True),
    Column("began", Integer, nullable=False),
    sqlite_strict=True,
)

WATCHED = Table(
    "watched",
    METADATA,
    Column("scope", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("scope", "id"),
    sqlite_strict=True,
)

PROJECTIONS = (INTENT, RESERVATION, COUNT_STEP, USE_STEP, APPLIED_PLAN)

for _verb in ("UPDATE", "DELETE"):
    event.listen(
        ENTRY,
        "after_create",
        DDL(  # type: ignore[no-untyped-call]  # SQLAlchemy has no types here
            f"CREATE TRIGGER entry_no_{_verb.lower()} BEFORE {_verb} ON entry "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        ),
    )
