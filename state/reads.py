"""What is asked of the tables. Each function is one query over one open connection."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from broker.errors import StateError
from broker.model.intent import Intent, IntentStatus
from broker.model.ledger import CountStep, Heartbeat, UseStep
from broker.model.place import Scope
from broker.model.reservation import Reservation
from broker.model.snapshot import Cooling, Idle
from state.encode import from_us, to_us
from state.entries import Body, Entry, Holding, Kind
from state.idleness import LOOK_BACK, levels
from state.schema import (
    APPLIED_PLAN,
    COUNT_STEP,
    ENTRY,
    HEARTBEAT,
    INTENT,
    RESERVATION,
    SCOPE_LOOK,
    USE_STEP,
    WATCHED,
)

OPEN = (IntentStatus.PLANNED, IntentStatus.UNKNOWN)
COOLED = (IntentStatus.UNFILLED, IntentStatus.REFUSED)

_INTENT = msgspec.json.Decoder(Intent)
_RESERVATION = msgspec.json.Decoder(Reservation)
_COUNT_STEP = msgspec.json.Decoder(CountStep)
_USE_STEP = msgspec.json.Decoder(UseStep)
_HEARTBEAT = msgspec.json.Decoder(Heartbeat)
_BODY: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)


def serial(connection: Connection) -> int:
    found = connection.execute(select(func.max(ENTRY.c.seq)).where(ENTRY.c.moves == 1)).scalar()
    return int(found or 0)


def bought_as(connection: Connection) -> str | None:
    """The lineage that an intent of this ledger was sent under; None where it has none."""
    body = connection.execute(select(INTENT.c.body).limit(1)).scalar()
    return None if body is None else _INTENT.decode(body).request.lineage


def intent_of(connection: Connection, key: str) -> Intent:
    body = connection.execute(select(INTENT.c.body).where(INTENT.c.key == key)).scalar()
    if body is None:
        raise StateError(f"the ledger has no intent {key}", next_step="See: broker state list")
    return _INTENT.decode(body)


def has_intent(connection: Connection, key: str) -> bool:
    return connection.execute(select(INTENT.c.seq).where(INTENT.c.key == key)).scalar() is not None


def all_intents(connection: Connection) -> tuple[Intent, ...]:
    return _intents(connection)


def open_intents(connection: Connection) -> tuple[Intent, ...]:
    return _intents(connection, INTENT.c.status.in_(OPEN))


def live_intents(connection: Connection) -> tuple[Intent, ...]:
    """The open ones, and those whose reservation still lives."""
    living = select(RESERVATION.c.id).where(
        RESERVATION.c.scope == INTENT.c.scope, RESERVATION.c.id == INTENT.c.reservation_id, RESERVATION.c.gone == 0
    )
    return _intents(connection, INTENT.c.status.in_(OPEN) | living.exists())


def _intents(connection: Connection, *where: ColumnElement[bool]) -> tuple[Intent, ...]:
    rows = connection.execute(select(INTENT.c.body).where(*where).order_by(INTENT.c.seq)).scalars()
    return tuple(_INTENT.decode(body) for body in rows)


def held(connection: Connection) -> tuple[Reservation, ...]:
    """Ours, gone ones included."""
    rows = connection.execute(select(RESERVATION.c.body).order_by(RESERVATION.c.scope, RESERVATION.c.id)).scalars()
    return tuple(_RESERVATION.decode(body) for body in rows)


def watched(connection: Connection) -> tuple[Reservation, ...]:
    rows = connection.execute(select(WATCHED.c.body).order_by(WATCHED.c.scope, WATCHED.c.id)).scalars()
    return tuple(_RESERVATION.decode(body) for body in rows)


def looked(connection: Connection, scope: Scope) -> datetime | None:
    """When the latest look began that showed all of the scope as it is known."""
    began = connection.execute(select(SCOPE_LOOK.c.began).where(SCOPE_LOOK.c.scope == str(scope))).scalar()
    return None if began is None else from_us(began)


def holdings(connection: Connection, scope: Scope) -> dict[str, Holding]:
    """By reservation id, with `confirmed` as late as the latest complete look allows."""
    looked = connection.execute(select(SCOPE_LOOK.c.began).where(SCOPE_LOOK.c.scope == str(scope))).scalar() or 0
    steps = _steps_in(connection, str(scope))
    rows = connection.execute(select(RESERVATION).where(RESERVATION.c.scope == str(scope)))
    return {row.id: _holding(row, tuple(steps.get(row.id, ())), looked) for row in rows}


def _holding(row: Row[Any], steps: tuple[CountStep, ...], looked: int) -> Holding:
    return Holding(
        reservation=_RESERVATION.decode(row.body),
        steps=steps,
        confirmed=from_us(row.confirmed if row.gone else max(row.confirmed, looked)),
        changed=from_us(row.changed),
    )


def _steps_in(connection: Connection, scope: str) -> dict[str, list[CountStep]]:
    rows = connection.execute(
        select(COUNT_STEP.c.reservation_id, COUNT_STEP.c.body)
        .where(COUNT_STEP.c.scope == scope)
        .order_by(COUNT_STEP.c.reservation_id, COUNT_STEP.c.ordinal)
    )
    found: dict[str, list[CountStep]] = {}
    for row in rows:
        found.setdefault(row.reservation_id, []).append(_COUNT_STEP.decode(row.body))
    return found


def cooling(connection: Connection, now: datetime, cooldown: timedelta) -> tuple[Cooling, ...]:
    rows = connection.execute(
        select(INTENT.c.body)
        .where(INTENT.c.status.in_(COOLED), INTENT.c.ended > to_us(now - cooldown))
        .order_by(INTENT.c.ended)
    ).scalars()
    latest: dict[str, Cooling] = {}
    for intent in map(_INTENT.decode, rows):
        ended = intent.outcome
        if intent.offer_id and ended:
            latest[intent.offer_id] = Cooling(intent.offer_id, ended.at + cooldown, ended.code, ended.hints)
    return tuple(latest.values())


def idle(connection: Connection) -> tuple[Idle, ...]:
    """Levels of use of every living reservation, the lowest first."""
    back = func.row_number().over(
        partition_by=(USE_STEP.c.scope, USE_STEP.c.reservation_id), order_by=USE_STEP.c.seq.desc()
    )
    alive = and_(USE_STEP.c.scope == RESERVATION.c.scope, USE_STEP.c.reservation_id == RESERVATION.c.id)
    recent = (
        select(USE_STEP.c.body, RESERVATION.c.body.label("held"), USE_STEP.c.seq, back.label("back"))
        .join(RESERVATION, alive)
        .where(RESERVATION.c.gone == 0)
        .subquery()
    )
    rows = connection.execute(
        select(recent.c.body, recent.c.held).where(recent.c.back <= LOOK_BACK).order_by(recent.c.seq.desc())
    )
    steps: dict[str, list[UseStep]] = {}
    for row in rows:
        steps.setdefault(row.held, []).append(_USE_STEP.decode(row.body))
    return tuple(
        level
        for held, newest_first in sorted(steps.items())
        for level in levels(newest_first, _RESERVATION.decode(held).count)
    )


def count_steps(connection: Connection, since: datetime | None) -> tuple[CountStep, ...]:
    """Of every reservation that was not at zero for good before `since`; each with all of its steps."""
    rows = connection.execute(
        select(COUNT_STEP.c.body).order_by(COUNT_STEP.c.scope, COUNT_STEP.c.reservation_id, COUNT_STEP.c.ordinal)
    ).scalars()
    steps = [_COUNT_STEP.decode(body) for body in rows]
    if since is None:
        return tuple(steps)
    last = {(step.scope, step.reservation_id): step for step in steps}
    over = {which for which, step in last.items() if step.count == 0 and step.latest < since}
    return tuple(step for step in steps if (step.scope, step.reservation_id) not in over)


def use_steps(connection: Connection, since: datetime | None) -> tuple[UseStep, ...]:
    """All from `since` on, and for each reservation the one that held at `since`."""
    rows = connection.execute(
        select(USE_STEP.c.body).order_by(USE_STEP.c.scope, USE_STEP.c.reservation_id, USE_STEP.c.seq)
    ).scalars()
    steps = [_USE_STEP.decode(body) for body in rows]
    if since is None:
        return tuple(steps)
    holding = {(step.scope, step.reservation_id): step for step in steps if step.at <= since}
    return tuple(step for step in steps if step.at > since or holding[(step.scope, step.reservation_id)] is step)


def heartbeat(connection: Connection) -> Heartbeat | None:
    body = connection.execute(select(HEARTBEAT.c.body)).scalar()
    return None if body is None else _HEARTBEAT.decode(body)


def applied_at(connection: Connection, plan_id: str) -> datetime | None:
    at = connection.execute(select(APPLIED_PLAN.c.at).where(APPLIED_PLAN.c.plan_id == plan_id)).scalar()
    return None if at is None else from_us(at)


def entries(connection: Connection, where: Sequence[ColumnElement[bool]] = ()) -> Iterator[Entry]:
    for row in connection.execute(select(ENTRY).where(*where).order_by(ENTRY.c.seq)):
        yield Entry(
            seq=row.seq,
            at=from_us(row.at),
            kind=msgspec.convert(row.kind, Kind),
            body=_BODY.decode(row.body),
            run_id=row.run_id,
            key=row.key,
            scope=row.scope,
            reservation_id=row.reservation_id,
        )
