"""The ledger as stretches of time in which nothing changes: what every figure of money is summed from. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from broker.model.intent import Intent
from broker.model.ledger import CountStep, UseStep
from broker.model.place import Scope
from broker.model.reservation import Reservation

Held = tuple[str, Scope]
"""A reservation's id and the scope in which that id is unique."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What the report is made from: a reservation's count steps in their order; `reservations` are those held now."""

    counts: Sequence[CountStep]
    uses: Sequence[UseStep]
    intents: Sequence[Intent]
    reservations: Sequence[Reservation] = ()


class Piece(msgspec.Struct, frozen=True):
    """A stretch of time in which all bounds of one reservation stand still. Rates are micro-dollars an hour."""

    held: Held
    start: datetime
    end: datetime
    key: str
    spent: tuple[int, int]
    used: tuple[int, int]
    idle: tuple[int, int]
    unpriced: int


def pieces(ledger: Ledger, since: datetime, until: datetime) -> list[Piece]:
    """Those within [since, until), cut at its ends."""
    return [piece for whole in _pieces(ledger) for piece in _clip(whole, since, until)]


def _pieces(ledger: Ledger) -> Iterator[Piece]:
    uses: dict[Held, list[UseStep]] = defaultdict(list)
    for use in sorted(ledger.uses, key=lambda step: step.at):
        uses[use.reservation_id, use.scope].append(use)
    counts: dict[Held, list[CountStep]] = defaultdict(list)
    for step in ledger.counts:
        counts[step.reservation_id, step.scope].append(step)
    for held, steps in counts.items():
        yield from _pieces_of(held, steps, uses[held])


_FOREVER = datetime.max.replace(tzinfo=UTC)
_ANY_NUMBER = 10**9


def _pieces_of(held: Held, steps: list[CountStep], uses: list[UseStep]) -> Iterator[Piece]:
    """One piece between any two instants at which a bound can change; the last one never ends."""
    edges = sorted({edge for step in steps for edge in (step.earliest, step.latest)} | {use.at for use in uses})
    for start, end in zip(edges, [*edges[1:], _FOREVER], strict=True):
        possible = list(_possible(steps, start))
        if any(step.count for step in possible):
            may_be_none = start < steps[0].latest
            yield _piece(held, start, end, possible, _seen(uses, start), may_be_none)


def _possible(steps: list[CountStep], at: datetime) -> Iterator[CountStep]:
    """The steps of which one was in force at that instant: begun at the earliest, not surely followed by another."""
    over: datetime = _FOREVER
    found = []
    for step in reversed(steps):
        if step.earliest <= at < over:
            found.append(step)
        over = min(over, step.latest)
    return reversed(found)


def _seen(uses: list[UseStep], at: datetime) -> int | None:
    seen = [use.used for use in uses if use.at <= at]
    return seen[-1] if seen else None


def _piece(
    held: Held, start: datetime, end: datetime, possible: list[CountStep], seen: int | None, may_be_none: bool
) -> Piece:
    nothing = [0] if may_be_none else []
    priced = [(step.count, step.usd_per_hour_micro) for step in possible if step.usd_per_hour_micro is not None]
    unpriced = [step.count for step in possible if step.usd_per_hour_micro is None]
    at_least, at_most = (0, _ANY_NUMBER) if seen is None else (seen, seen)
    return Piece(
        held,
        start,
        end,
        next((step.key for step in reversed(possible) if step.key), ""),
        _span([count * price for count, price in priced] + nothing),
        (
            min([min(at_least, count) * price for count, price in priced] + nothing, default=0),
            max([min(at_most, count) * price for count, price in priced] + nothing, default=0),
        ),
        (
            min([max(0, count - at_most) * price for count, price in priced] + nothing, default=0),
            max([max(0, count - at_least) * price for count, price in priced] + nothing, default=0),
        ),
        max(unpriced, default=0),
    )


def _span(rates: list[int]) -> tuple[int, int]:
    return (min(rates, default=0), max(rates, default=0))


def _clip(piece: Piece, since: datetime, until: datetime) -> Iterator[Piece]:
    start, end = max(piece.start, since), min(piece.end, until)
    if start < end:
        yield msgspec.structs.replace(piece, start=start, end=end)
