"""How spending went over time: what was held and used an hour, and what that had cost until then. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import msgspec

from broker.pieces import Ledger, Piece, pieces
from broker.report import Bounds

_US = timedelta(microseconds=1)
_MICRO = 1_000_000
_MICRO_US_PER_USD_H = 1_000_000 * 3_600_000_000


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """From `at` until the next one, `held` and `used` US dollars an hour; `spent` US dollars since the first one."""

    at: datetime
    held: Bounds
    used: Bounds
    spent: Bounds


def course(ledger: Ledger, since: datetime, until: datetime) -> tuple[Moment, ...]:
    """A moment wherever a rate changes, and at both ends; what has no price is in no figure."""
    changes = _changes(pieces(ledger, since, until))
    return tuple(_summed([since, *sorted(set(changes) - {since, until}), until], changes))


def _changes(found: Sequence[Piece]) -> dict[datetime, list[int]]:
    """By how much held (low, high) and used (low, high) change at each instant, in micro-dollars an hour."""
    changes: dict[datetime, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for piece in found:
        for at, sign in ((piece.start, 1), (piece.end, -1)):
            for index, rate in enumerate((*piece.spent, *piece.used)):
                changes[at][index] += sign * rate
    return changes


def _summed(instants: Sequence[datetime], changes: dict[datetime, list[int]]) -> Iterator[Moment]:
    rates, spent, before = [0, 0, 0, 0], [0, 0], instants[0]
    for at in instants:
        passed = (at - before) // _US
        spent = [total + rate * passed for total, rate in zip(spent, rates[:2], strict=True)]
        rates = [rate + change for rate, change in zip(rates, changes.get(at, (0, 0, 0, 0)), strict=True)]
        yield Moment(
            at=at,
            held=Bounds(_usd(rates[0], _MICRO), _usd(rates[1], _MICRO)),
            used=Bounds(_usd(rates[2], _MICRO), _usd(rates[3], _MICRO)),
            spent=Bounds(_usd(spent[0], _MICRO_US_PER_USD_H), _usd(spent[1], _MICRO_US_PER_USD_H)),
        )
        before = at


def _usd(amount: int, in_one: int) -> Decimal:
    """To a millionth of a dollar."""
    return Decimal(round(Fraction(amount * _MICRO, in_one))) / _MICRO
