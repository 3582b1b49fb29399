"""What an entry makes of each table that is derived from the ledger, as values alone. Pure."""

import msgspec

from broker.model.intent import Intent, Outcome
from broker.model.request import ReserveRequest
from state.encode import to_text, to_us
from state.entries import Applied, Entry, Holding, Intended, Used

Row = dict[str, object]


def intended(seq: int, body: Intended) -> Row:
    intent, request = body.intent, body.intent.request
    return {
        "key": intent.key,
        "seq": seq,
        "status": intent.status,
        "ended": None,
        "scope": str(request.place.scope),
        "reservation_id": None if isinstance(request, ReserveRequest) else request.reservation_id,
        "body": to_text(intent),
    }


def concluded(intent: Intent, outcome: Outcome) -> Row:
    """What changes in the intent's row."""
    ended = msgspec.structs.replace(intent, outcome=outcome)
    row: Row = {"status": outcome.status, "ended": to_us(outcome.at), "body": to_text(ended)}
    return row if outcome.reservation_id is None else row | {"reservation_id": outcome.reservation_id}


def held(seq: int, holding: Holding) -> Row:
    reservation = holding.reservation
    return {
        "scope": str(reservation.place.scope),
        "id": reservation.id,
        "seq": seq,
        "gone": int(reservation.state.gone),
        "confirmed": to_us(holding.confirmed),
        "changed": to_us(holding.changed),
        "body": to_text(reservation),
    }


def counted(holding: Holding) -> list[Row]:
    """The reservation's whole count over time."""
    return [
        {
            "scope": str(holding.reservation.place.scope),
            "reservation_id": holding.reservation.id,
            "ordinal": ordinal,
            "earliest": to_us(step.earliest),
            "latest": to_us(step.latest),
            "body": to_text(step),
        }
        for ordinal, step in enumerate(holding.steps)
    ]


def used(seq: int, body: Used) -> Row:
    step = body.step
    return {
        "seq": seq,
        "scope": str(step.scope),
        "reservation_id": step.reservation_id,
        "at": to_us(step.at),
        "body": to_text(step),
    }


def applied(entry: Entry, body: Applied) -> Row:
    return {"plan_id": body.plan_id, "seq": entry.seq, "at": to_us(entry.at)}
