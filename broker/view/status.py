"""Where we stand, and one reservation with how a job consumes it, as text and JSON."""

from collections.abc import Sequence

from broker.counted import number
from broker.model.reservation import Reservation
from broker.standing import Held, Standing, Unsettled, rate_of
from broker.view.document import document
from broker.view.text import Paint, least, money, plain, rate, span, table, when

_RIGHT = frozenset({3, 6})
_HEADER = ["id", "where", "what", "used", "state", "ends", "rate", "pool", "idle"]


def status_text(standing: Standing, *, paint: Paint = plain, verbose: bool = False) -> str:
    """`standing` may have been narrowed to what is unused."""
    blocks = [_heading(standing), _held(standing), _unsettled(standing.unsettled), _others(standing, verbose)]
    blocks.append("\n".join(f"{paint('!', 'yellow')} {warning}" for warning in standing.warnings))
    return "\n\n".join(block for block in blocks if block)


def _heading(standing: Standing) -> str:
    beat = standing.heartbeat
    last = f"last run {when(beat.at)} ({beat.command})" if beat else "no run yet"
    total = rate_of(standing.held)
    figure = least(f"{money(total.usd_per_hour_at_least)}/h", unpriced=total.unpriced > 0)
    missing = f", {total.unpriced} without a price" if total.unpriced else ""
    held = f"{number(len(standing.held), 'reservation')} held, {figure}{missing}"
    return f"{held}; {last}; state {standing.lineage}, serial {standing.serial}"


def _held(standing: Standing) -> str:
    if not standing.held:
        return "Nothing is held."
    return table(_HEADER, [_row(held, standing) for held in standing.held], right=_RIGHT)


def _row(held: Held, standing: Standing) -> list[str]:
    reservation = held.reservation
    return [
        reservation.id,
        str(reservation.place),
        f"{reservation.count} x {reservation.machine_type}",
        f"{reservation.used}/{reservation.count}",
        reservation.state.value,
        when(reservation.ends) if reservation.ends else "never",
        rate(held.usd_per_hour, signed=False),
        held.pool or "-",
        span(standing.now - held.idle_since) if held.idle_since else "",
    ]


def _unsettled(unsettled: Sequence[Unsettled]) -> str:
    if not unsettled:
        return ""
    rows = [[each.key, each.what, each.where, when(each.sent), each.status] for each in unsettled]
    return "Not settled:\n" + table(["key", "what", "where", "sent", "status"], rows)


def _others(standing: Standing, verbose: bool) -> str:
    if not standing.others:
        return ""
    if not verbose:
        return f"Not ours, never touched: {number(len(standing.others), 'reservation')} (-v to list)"
    rows = [_other(each) for each in standing.others]
    return "Not ours, never touched:\n" + table(["id", "where", "what", "used", "state"], rows)


def _other(each: Reservation) -> list[str]:
    what = f"{each.count} x {each.machine_type}"
    return [each.id, str(each.place), what, f"{each.used}/{each.count}", each.state.value]


def status_json(standing: Standing) -> str:
    return document("status", {"status": standing, "rate": rate_of(standing.held)})


Pairs = Sequence[tuple[str, str]]


def reservation_text(held: Held, consumption: Pairs) -> str:
    """One reservation, and exactly what a job's instance must set to consume it."""
    reservation = held.reservation
    facts = [
        ("id", reservation.id),
        ("where", f"{reservation.place} ({reservation.place.scope})"),
        ("what", f"{reservation.count} x {reservation.machine_type}, {number(reservation.gpus, 'GPU')}"),
        ("used", f"{reservation.used} of {reservation.count}, {reservation.over} beyond"),
        ("room", f"for {number(held.room, 'more instance')} now" if not held.no_room else f"NONE NOW: {held.no_room}"),
        ("state", f"{reservation.state} (the cloud says {reservation.raw_state})"),
        ("usable", f"from {when(reservation.usable_from)} until {when(reservation.usable_until)}"),
        ("ends", when(reservation.ends) if reservation.ends else "never: nothing but a release of ours ends it"),
        ("rate", rate(held.usd_per_hour, signed=False)),
        ("pool", held.pool or "-"),
        ("for", ", ".join(f"{name} {share:.0%}" for name, share in held.tenants) or "-"),
        ("caused by", ", ".join(held.jobs) or "-"),
    ]
    return f"{_facts(facts)}\n\nA job's instances consume it with exactly these settings:\n{_facts(consumption)}"


def _facts(pairs: Pairs) -> str:
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"  {name.ljust(width)}  {value}" for name, value in pairs)


def reservation_json(held: Held, consumption: Pairs) -> str:
    return document("reservation", {"held": held, "consume_with": dict(consumption)})
