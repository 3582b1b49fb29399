"""From entries to the tables that are asked: one function per kind, the same when written and when rebuilt."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, update
from sqlalchemy.dialects.sqlite import insert

from broker.model.intent import Intent, Outcome
from broker.model.ledger import CountStep, UseStep
from broker.model.reservation import Reservation
from state import rows
from state.encode import to_text
from state.entries import Applied, Concluded, Entry, Gap, Holding, Intended, Used, Witnessed
from state.reads import intent_of
from state.schema import APPLIED_PLAN, COUNT_STEP, INTENT, PROJECTIONS, RESERVATION, USE_STEP


def project(connection: Connection, entry: Entry) -> None:
    """Bring the projections up to `entry`."""
    match entry.body:
        case Intended() as intended:
            connection.execute(insert(INTENT).values(rows.intended(entry.seq, intended)))
        case Concluded(key=key, outcome=outcome, holding=holding):
            _concluded(connection, key, outcome)
            if holding:
                _held(connection, entry, holding)
        case Witnessed(holding=holding):
            _held(connection, entry, holding)
        case Used() as used:
            connection.execute(insert(USE_STEP).values(rows.used(entry.seq, used)))
            _held(connection, entry, used.holding)
        case Applied() as applied:
            connection.execute(insert(APPLIED_PLAN).values(rows.applied(entry, applied)))
        case Gap():
            pass


def rebuild(connection: Connection, entries: Iterable[Entry]) -> None:
    """The projections from nothing but the ledger."""
    for table in PROJECTIONS:
        connection.execute(delete(table))
    for entry in entries:
        project(connection, entry)


def contents(connection: Connection) -> list[list[tuple[object, ...]]]:
    """All rows of all projections, in an order of their own: to compare.

    A body that was written before a field was added says the same as one with that field's default.
    """
    return [
        sorted(_as_now_written(table.name, tuple(row)) for row in connection.execute(table.select()))
        for table in PROJECTIONS
    ]


_BODIES = MappingProxyType(
    {INTENT.name: Intent, RESERVATION.name: Reservation, COUNT_STEP.name: CountStep, USE_STEP.name: UseStep}
)
"""What the last column of a projection holds."""


def _as_now_written(table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    body = _BODIES.get(table)
    return row if body is None else (*row[:-1], to_text(msgspec.json.decode(row[-1], type=body)))


def _concluded(connection: Connection, key: str, outcome: Outcome) -> None:
    values = rows.concluded(intent_of(connection, key), outcome)
    connection.execute(update(INTENT).where(INTENT.c.key == key).values(values))


def _held(connection: Connection, entry: Entry, holding: Holding) -> None:
    values = rows.held(entry.seq, holding)
    row = insert(RESERVATION).values(values)
    connection.execute(row.on_conflict_do_update(index_elements=["scope", "id"], set_=values))
    _stepped(connection, holding)


def _stepped(connection: Connection, holding: Holding) -> None:
    scope, reservation_id = str(holding.reservation.place.scope), holding.reservation.id
    ours = (COUNT_STEP.c.scope == scope) & (COUNT_STEP.c.reservation_id == reservation_id)
    connection.execute(delete(COUNT_STEP).where(ours))
    if steps := rows.counted(holding):
        connection.execute(insert(COUNT_STEP), steps)
