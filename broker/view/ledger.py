"""Entries of the ledger as text and JSON."""

from collections.abc import Sequence

from broker.counted import number
from broker.model.intent import Intent, Outcome
from broker.model.money import from_micro
from broker.model.plan import Refusal
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation
from broker.view.document import document
from broker.view.text import money, table, when
from state.entries import Applied, Body, Concluded, Entry, Gap, Intended, Used, Witnessed


def entries_text(entries: Sequence[Entry]) -> str:
    if not entries:
        return "The ledger has no such entry."
    rows = [[str(each.seq), when(each.at), each.kind.value, each.scope or "-", _says(each.body)] for each in entries]
    return table(["entry", "at", "kind", "scope", "what"], rows, right=frozenset({0}))


def entries_json(entries: Sequence[Entry]) -> str:
    return document("entries", {"entries": entries})


def _says(body: Body) -> str:
    match body:
        case Intended():
            return _intent(body.intent)
        case Concluded():
            return f"{body.key}: {_outcome(body.outcome)}"
        case Witnessed():
            return _reservation(body.holding.reservation)
        case Used():
            return f"{body.step.reservation_id}: {body.step.used} in use"
        case Gap():
            return body.text
        case Applied():
            return f"plan {body.plan_id} ran to its end, {number(body.actions, 'action')}"


def _intent(intent: Intent) -> str:
    price = "" if intent.usd_per_hour_micro is None else f" at {money(from_micro(intent.usd_per_hour_micro))}/h each"
    return f"{intent.key}: {request_text(intent.request)}{price}"


def request_text(request: ReserveRequest | ResizeRequest | EndRequest | ReleaseRequest) -> str:
    match request:
        case ReserveRequest():
            return f"reserve {request.count} x {request.machine_type} in {request.place}"
        case ResizeRequest():
            return f"resize {request.reservation_id} from {request.from_count} to {request.to_count}"
        case EndRequest():
            return f"end {request.reservation_id} at {when(request.to_end)}"
        case ReleaseRequest():
            return f"release {request.reservation_id}"


def refused_text(refusal: Refusal) -> str:
    """What was not to be done, by which guard, and why."""
    what = f"{request_text(refusal.request)}: " if refusal.request else ""
    return f"by {refusal.guard}: {what}{refusal.reason.text}"


def _outcome(outcome: Outcome) -> str:
    made = f" {outcome.reservation_id}" if outcome.reservation_id else ""
    request = f" (request {outcome.request_id})" if outcome.request_id else ""
    why = ": ".join(part for part in (outcome.code, outcome.message) if part)
    return f"{outcome.status}{made}{' ' + why if why else ''}{request}"


def _reservation(reservation: Reservation) -> str:
    return f"{reservation.id}: {reservation.count} x {reservation.machine_type}, {reservation.state}"
