"""Ordered migrations of the schema. Loaded, with Alembic, only when a file's version differs.

Each runs in one transaction together with its version number, after a copy of the file was put beside it. A released
migration is never edited; each old schema is kept as a test file.
"""

from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, update

from state.schema import META, VERSION
from state.upkeep import backup


def migrate(path: Path, engine: Engine, version: int) -> Path:
    """Bring the file up to this broker's version; returns where the copy of the old one is."""
    copy = backup(path, path.with_name(f"{path.name}.v{version}"))
    for target in range(version + 1, VERSION + 1):
        with engine.begin() as connection:
            _MIGRATIONS[target](Operations(MigrationContext.configure(connection)))
            _versioned(connection, target)
    return copy


def _versioned(connection: Connection, version: int) -> None:
    connection.execute(update(META).values(schema_version=version))


def _to_2(operations: Operations) -> None:
    """`state show` and `report` ask the ledger by reservation and by time."""
    operations.create_index("entry_by_reservation", "entry", ["reservation_id", "seq"])
    operations.create_index("entry_by_time", "entry", ["at"])


_MIGRATIONS = {2: _to_2}
