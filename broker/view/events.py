"""The events of a run: a line of text each, or a line of JSON each."""

from broker.apply.apply import Result
from broker.commands.events import Acted, Decided, Ended, Event, FoundOut, Looked, News, Proposed, Refused, Short
from broker.counted import number
from broker.model.intent import IntentStatus, Outcome
from broker.model.plan import Action, Keep
from broker.view import document
from broker.view.ledger import refused_text, request_text
from broker.view.text import Paint, plain, pool_text

_COLOURS = {"done": "green", "unfilled": "yellow", "unknown": "yellow", "refused": "red", "failed": "red"}


def event_json(event: Event) -> str:
    tag = str(event.__struct_config__.tag)
    return document.event(tag, {name: getattr(event, name) for name in event.__struct_fields__})


def event_text(event: Event, paint: Paint = plain) -> str:
    """May be several lines (an observation and its problems), or none ("")."""
    match event:
        case Looked():
            return _looked(event, paint)
        case FoundOut():
            asked = request_text(event.settled.intent.request)
            why = f" ({event.settled.problem})" if event.settled.problem else ""
            return f"settled   {asked}: {outcome_text(event.settled.outcome)}{why}"
        case News():
            return f"news      {event.text}"
        case Decided():
            return "" if event.plan.changes or event.plan.refusals else "nothing to do"
        case Proposed():
            return _proposed(event.action)
        case Refused():
            return f"refused   {refused_text(event.refusal)}"
        case Short():
            short = event.shortfall
            return f"short     {pool_text(short.pool)}, {number(short.gpus, 'GPU')}: {short.reason.text}"
        case Acted():
            return _acted(event.result, paint)
        case Ended():
            return _ended(event)


def reason(event: Event) -> str:
    """Why something was not done, where the event tells that: in one line, "" for any other event."""
    match event:
        case Refused():
            return f"refused {refused_text(event.refusal)}"
        case Acted() if not (event.result.sent and event.result.outcome.status is IntentStatus.DONE):
            return _acted(event.result, plain)
        case Ended() if event.exit_code and event.note:
            return event.note
    return ""


def _looked(event: Looked, paint: Paint) -> str:
    counts = [number(event.queued_jobs, "queued job"), number(event.reservations, "reservation")]
    lines = [f"observed  {', '.join([*counts, number(event.offers, 'offer')])}"]
    return "\n".join(lines + [f"{paint('!', 'yellow')} {problem}" for problem in event.problems])


def _proposed(action: Action) -> str:
    assert not isinstance(action, Keep)
    why = f": {action.reasons[0].text}" if action.reasons else ""
    return f"would     {request_text(action.request)}{why}"


def _acted(result: Result, paint: Paint) -> str:
    """Provider, place and type, and the provider's own code and request id: of each attempt, a line."""
    status = result.outcome.status.value if result.sent else "not sent"
    word = paint(status.ljust(8), _COLOURS.get(status, ""))
    request = getattr(result.action, "request", None)
    asked = request_text(request) if request else "keep"
    return f"{word}  {asked}: {outcome_text(result.outcome)}"


def outcome_text(outcome: Outcome) -> str:
    made = outcome.reservation_id or ""
    why = ": ".join(part for part in (outcome.code, outcome.message) if part)
    request = f"(request {outcome.request_id})" if outcome.request_id else ""
    said = " ".join(part for part in (made, why, request) if part)
    return f"{outcome.status} {said}".rstrip()


def _ended(event: Ended) -> str:
    counts = {
        "done": event.done,
        "unfilled": event.unfilled,
        "failed": event.failed,
        "unknown": event.unknown,
        "not sent": event.not_sent,
        "refused by a guard": event.refused,
    }
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    rerun = " Running again is safe." if event.unfilled or event.failed or event.unknown or event.not_sent else ""
    return f"{(said or 'nothing done').capitalize()}.{rerun}{' ' + event.note if event.note else ''}"
