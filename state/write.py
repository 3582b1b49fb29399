"""How a line is added to the ledger, and the few rows that are overwritten."""

from datetime import datetime

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.sqlite import insert

from broker.model.place import Scope
from broker.model.snapshot import ScopeView, Trust
from state.encode import to_text, to_us
from state.entries import Body, Concluded, Entry, Intended, Kind, Used, Witnessed
from state.project import project
from state.schema import ENTRY, SCOPE_LOOK, WATCHED


def append(connection: Connection, at: datetime, kind: Kind, body: Body, *, run_id: str = "") -> Entry:
    """One more line in the ledger, and the projections with it."""
    key, scope, reservation_id = about(body)
    written = connection.execute(
        insert(ENTRY).values(
            at=to_us(at),
            kind=kind,
            moves=int(kind.moves),
            run_id=run_id,
            key=key,
            scope=None if scope is None else str(scope),
            reservation_id=reservation_id,
            body=to_text(body),
        )
    )
    assert written.inserted_primary_key is not None
    entry = Entry(
        seq=written.inserted_primary_key[0],
        at=at,
        kind=kind,
        body=body,
        run_id=run_id,
        key=key,
        scope=None if scope is None else str(scope),
        reservation_id=reservation_id,
    )
    project(connection, entry)
    return entry


def about(body: Body) -> tuple[str | None, Scope | None, str | None]:
    """Action key, scope and reservation id that an entry is found by."""
    match body:
        case Intended(intent=intent):
            return intent.key, intent.request.place.scope, getattr(intent.request, "reservation_id", None)
        case Concluded(key=key, outcome=outcome, holding=holding):
            scope = holding.reservation.place.scope if holding else None
            return key, scope, outcome.reservation_id or (holding.reservation.id if holding else None)
        case Witnessed(holding=holding) | Used(holding=holding):
            owner = holding.reservation.owner
            return owner.key if owner else None, holding.reservation.place.scope, holding.reservation.id
    return None, None, None


def watch(connection: Connection, view: ScopeView, lineage: str) -> None:
    """What others hold there, as last listed."""
    scope = str(view.scope)
    if view.trust is Trust.COMPLETE:
        connection.execute(delete(WATCHED).where(WATCHED.c.scope == scope))
    for reservation in view.reservations:
        if reservation.owner is None or reservation.owner.lineage != lineage:
            row = insert(WATCHED).values(scope=scope, id=reservation.id, body=to_text(reservation))
            connection.execute(row.on_conflict_do_update(["scope", "id"], set_={"body": row.excluded.body}))


def looked(connection: Connection, scope: Scope, began: datetime) -> None:
    """A complete look that showed all that is held there."""
    row = insert(SCOPE_LOOK).values(scope=str(scope), began=to_us(began))
    connection.execute(row.on_conflict_do_update(["scope"], set_={"began": row.excluded.began}))
