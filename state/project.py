"""From entries to the tables that are asked: one function per kind, the same when written and when rebuilt."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, update
from sqlalchemy.dialects.sqlite import insert

from broker.model.intent import Intent, Outcome
from broker.model.ledger import CountStep, UseStep
from broker.model.request import ReserveRequest
from broker.model.reservation import Reservation
from state.encode import to_text, to_us
from state.entries import Applied, Concluded, Entry, Gap, Holding, Intended, Used, Witnessed
from state.reads import intent_of
from state.schema import APPLIED_PLAN, COUNT_STEP, INTENT, PROJECTIONS, RESERVATION, USE_STEP


def project(connection: Connection, entry: Entry) -> None:
    """Bring the projections up to `entry`."""
    match entry.body:
        case Intended(intent=intent):
            _intended(connection, entry, intent)
        case Concluded(key=key, outcome=outcome, holding=holding):
            _concluded(connection, key, outcome)
            if holding:
                _held(connection, entry, holding)
        case Witnessed(holding=holding):
            _held(connection, entry, holding)
        case Used() as used:
            _used(connection, entry, used)
        case Applied(plan_id=plan_id):
            connection.execute(insert(APPLIED_PLAN).values(plan_id=plan_id, seq=entry.seq, at=to_us(entry.at)))
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


def _intended(connection: Connection, entry: Entry, intent: Intent) -> None:
    request = intent.request
    connection.execute(
        insert(INTENT).values(
            key=intent.key,
            seq=entry.seq,
            status=intent.status,
            ended=None,
            scope=str(request.place.scope),
            reservation_id=None if isinstance(request, ReserveRequest) else request.reservation_id,
            body=to_text(intent),
        )
    )


def _concluded(connection: Connection, key: str, outcome: Outcome) -> None:
    intent = msgspec.structs.replace(intent_of(connection, key), outcome=outcome)
    values: dict[str, object] = {"status": outcome.status, "ended": to_us(outcome.at), "body": to_text(intent)}
    if outcome.reservation_id is not None:
        values["reservation_id"] = outcome.reservation_id
    connection.execute(update(INTENT).where(INTENT.c.key == key).values(values))


def _held(connection: Connection, entry: Entry, holding: Holding) -> None:
    reservation = holding.reservation
    values = {
        "seq": entry.seq,
        "gone": int(reservation.state.gone),
        "confirmed": to_us(holding.confirmed),
        "changed": to_us(holding.changed),
        "body": to_text(reservation),
    }
    row = insert(RESERVATION).values(scope=str(reservation.place.scope), id=reservation.id, **values)
    connection.execute(row.on_conflict_do_update(index_elements=["scope", "id"], set_=values))
    _stepped(connection, holding)


def _stepped(connection: Connection, holding: Holding) -> None:
    scope, reservation_id = str(holding.reservation.place.scope), holding.reservation.id
    ours = (COUNT_STEP.c.scope == scope) & (COUNT_STEP.c.reservation_id == reservation_id)
    connection.execute(delete(COUNT_STEP).where(ours))
    rows = [
        {
            "scope": scope,
            "reservation_id": reservation_id,
            "ordinal": ordinal,
            "earliest": to_us(step.earliest),
            "latest": to_us(step.latest),
            "body": to_text(step),
        }
        for ordinal, step in enumerate(holding.steps)
    ]
    if rows:
        connection.execute(insert(COUNT_STEP), rows)


def _used(connection: Connection, entry: Entry, used: Used) -> None:
    step = used.step
    connection.execute(
        insert(USE_STEP).values(
            seq=entry.seq,
            scope=str(step.scope),
            reservation_id=step.reservation_id,
            at=to_us(step.at),
            body=to_text(step),
        )
    )
    _held(connection, entry, used.holding)
