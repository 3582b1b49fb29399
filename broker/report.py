"""What was spent, committed, used and left idle, and what a static fleet would have cost. Pure.

The ledger states when a count changed either exactly or between two instants; every figure is therefore a pair of
bounds that contains the truth, and one figure where all its edges are exact. Sums are integers of micro-dollars times
microseconds until the very end, so that nothing is lost to rounding.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import msgspec

from broker.model.intent import Intent
from broker.model.ledger import CountStep
from broker.model.money import to_micro
from broker.model.reservation import Reservation
from broker.pieces import Held, Ledger, Piece, pieces

NOBODY = "(unassigned)"
_US = timedelta(microseconds=1)
_MICRO_USD_US_PER_USD = 1_000_000 * 3_600_000_000


class By(StrEnum):
    TENANT = "tenant"
    POOL = "pool"
    PROVIDER = "provider"
    RESERVATION = "reservation"


class Bounds(msgspec.Struct, frozen=True):
    """US dollars: the truth lies between `low` and `high`."""

    low: Decimal = Decimal(0)
    high: Decimal = Decimal(0)

    @property
    def exact(self) -> bool:
        return self.low == self.high


class Share(msgspec.Struct, frozen=True):
    """A part of one: the truth lies between `low` and `high`."""

    low: Decimal
    high: Decimal


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars within the window, each rounded by itself to a millionth: by so much may a total differ from its
    lines, and it is the same total however they are grouped. `committed` is still to be paid after it, whatever is
    decided next.

    `unpriced_instance_hours` were held at a price that nobody knew: they are in no other figure, so these are only the
    least. So is what is committed where `unpriced_reservations` are held now. `used_share` is the part of all use that
    is this line's, in money; None where nothing was used, or not all of it has a price.
    """

    name: str
    spent: Bounds
    used: Bounds
    idle: Bounds
    committed: Decimal
    unpriced_instance_hours: Decimal
    unpriced_reservations: int = 0
    used_share: Share | None = None


class Static(msgspec.Struct, frozen=True, kw_only=True):
    """Each pool's highest rate (micro-dollars an hour), held from the first purchase to the end of the window."""

    cost: Bounds
    hours: Decimal


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`complete` is false where a price was missing. Use is what runs saw, the last of them at `use_as_of`."""

    since: datetime
    until: datetime
    by: By
    lines: tuple[Line, ...]
    total: Line
    static: Static
    complete: bool
    use_as_of: datetime | None


def report(ledger: Ledger, *, since: datetime, until: datetime, by: By, minimum_hold: timedelta) -> Report:
    """Figures for [since, until), grouped `by`; what is committed follows from `minimum_hold` and the cloud's terms."""
    found = pieces(ledger, since, until)
    shares = _Shares(ledger.intents, by)
    groups: dict[str, _Sums] = defaultdict(_Sums)
    total = _Sums()
    for piece in found:
        total.add(piece, Fraction(1))
        for name, share in shares.of(piece):
            groups[name].add(piece, share)
    _commit(ledger, until, minimum_hold, shares, groups, total)
    return Report(
        since=since,
        until=until,
        by=by,
        lines=_with_shares([groups[name].line(name) for name in sorted(groups)], known=not total.unpriced),
        total=total.line("total"),
        static=_static(found, _Shares(ledger.intents, By.POOL), until),
        complete=not (total.unpriced or total.committed_unpriced),
        use_as_of=max((step.at for step in ledger.uses if step.at <= until), default=None),
    )


_TEN_THOUSANDTH = Decimal("0.0001")


def _with_shares(lines: Sequence[Line], *, known: bool) -> tuple[Line, ...]:
    """A line's share is least where it used as little, and all others as much, as may be; and the other way round."""
    if not known:
        return tuple(lines)
    low, high = (sum((ends[bound] for ends in map(_used, lines)), Decimal(0)) for bound in (0, 1))
    return tuple(msgspec.structs.replace(line, used_share=_share(line.used, low, high)) for line in lines)


def _used(line: Line) -> tuple[Decimal, Decimal]:
    return (line.used.low, line.used.high)


def _share(used: Bounds, low: Decimal, high: Decimal) -> Share | None:
    if not high:
        return None
    least, most = used.low + high - used.high, used.high + low - used.low
    return Share(_part(used.low, least), _part(used.high, most))


def _part(some: Decimal, whole: Decimal) -> Decimal:
    return (some / whole).quantize(_TEN_THOUSANDTH) if whole else Decimal(0)


class _Shares:
    """Whose money a piece is, by the intent that caused it; a resize without one falls to the first purchase."""

    def __init__(self, intents: Iterable[Intent], by: By) -> None:
        self._intents: Mapping[str, Intent] = {intent.key: intent for intent in intents}
        self._by = by

    def of(self, piece: Piece) -> list[tuple[str, Fraction]]:
        return self.of_key(piece.key, piece.held)

    def of_key(self, key: str, held: Held) -> list[tuple[str, Fraction]]:
        intent = self._intents.get(key)
        match self._by:
            case By.PROVIDER:
                return [(held[1].provider.value, Fraction(1))]
            case By.RESERVATION:
                return [(held[0], Fraction(1))]
            case By.POOL:
                return [(intent.pool if intent and intent.pool else NOBODY, Fraction(1))]
            case By.TENANT:
                return normal(intent.tenants if intent else ())


def normal(tenants: Sequence[tuple[str, float]]) -> list[tuple[str, Fraction]]:
    """Shares that sum to one exactly."""
    whole = sum((Fraction(share) for _, share in tenants), Fraction(0))
    return [(name, Fraction(share) / whole) for name, share in tenants] if whole > 0 else [(NOBODY, Fraction(1))]


class _Sums:
    """Running totals in micro-dollars times microseconds per hour."""

    def __init__(self) -> None:
        self.spent = [Fraction(0), Fraction(0)]
        self.used = [Fraction(0), Fraction(0)]
        self.idle = [Fraction(0), Fraction(0)]
        self.committed = Fraction(0)
        self.unpriced = Fraction(0)
        self.committed_unpriced = 0

    def add(self, piece: Piece, share: Fraction) -> None:
        weight = share * ((piece.end - piece.start) // _US)
        for sums, rates in ((self.spent, piece.spent), (self.used, piece.used), (self.idle, piece.idle)):
            sums[0] += rates[0] * weight
            sums[1] += rates[1] * weight
        self.unpriced += piece.unpriced * weight

    def line(self, name: str) -> Line:
        return Line(
            name=name,
            spent=_bounds(self.spent),
            used=_bounds(self.used),
            idle=_bounds(self.idle),
            committed=_usd(self.committed),
            unpriced_instance_hours=_usd(self.unpriced * 1_000_000),
            unpriced_reservations=self.committed_unpriced,
        )


def _bounds(pair: Sequence[Fraction]) -> Bounds:
    return Bounds(_usd(pair[0]), _usd(pair[1]))


def _usd(micro_us: Fraction) -> Decimal:
    """To a millionth of a dollar."""
    usd = micro_us / _MICRO_USD_US_PER_USD
    return Decimal(round(usd * 1_000_000)) / 1_000_000


def _commit(
    ledger: Ledger,
    until: datetime,
    minimum_hold: timedelta,
    shares: _Shares,
    groups: dict[str, _Sums],
    total: _Sums,
) -> None:
    """Add what is still to be paid for what is held, up to the first instant at which it may be given back."""
    firsts = _first_steps(ledger.counts)
    for reservation in ledger.reservations:
        held = (reservation.id, reservation.place.scope)
        first = firsts.get(held)
        if first is None or reservation.state.gone:
            continue
        names = shares.of_key(first.key, held)
        micro = _micro_per_hour(reservation, first)
        if micro is None:
            for sums in (total, *(groups[name] for name, _ in names)):
                sums.committed_unpriced += 1
            continue
        owed = Fraction(micro) * (max(_free_from(reservation, first, minimum_hold) - until, timedelta(0)) // _US)
        total.committed += owed
        for name, share in names:
            groups[name].committed += owed * share


def _first_steps(counts: Sequence[CountStep]) -> dict[Held, CountStep]:
    firsts: dict[Held, CountStep] = {}
    for step in sorted(counts, key=lambda step: step.earliest):
        firsts.setdefault((step.reservation_id, step.scope), step)
    return firsts


def _micro_per_hour(reservation: Reservation, first: CountStep) -> int | None:
    """The whole reservation's rate; the price that it was bought at, else what is known of it now, else None."""
    if first.usd_per_hour_micro is not None:
        return first.usd_per_hour_micro * reservation.count
    return None if reservation.usd_per_hour is None else to_micro(reservation.usd_per_hour) * reservation.count


def _free_from(reservation: Reservation, first: CountStep, minimum_hold: timedelta) -> datetime:
    held_until = first.latest + minimum_hold
    return max(held_until, reservation.committed_until) if reservation.committed_until else held_until


def _static(found: Sequence[Piece], pools: _Shares, until: datetime) -> Static:
    """A fleet as large as each pool ever was at once, held all the time: what buying ahead for the peak costs."""
    if not found:
        return Static(cost=Bounds(), hours=Decimal(0))
    length = (until - min(piece.start for piece in found)) // _US
    by_pool: dict[str, list[Piece]] = defaultdict(list)
    for piece in found:
        by_pool[pools.of(piece)[0][0]].append(piece)
    low = sum(_peak(each, 0) for each in by_pool.values())
    high = sum(_peak(each, 1) for each in by_pool.values())
    return Static(
        cost=_bounds([Fraction(low) * length, Fraction(high) * length]),
        hours=Decimal(length) / Decimal(3_600_000_000),
    )


def _peak(found: Sequence[Piece], bound: int) -> int:
    """Highest sum of rates at one instant; at equal instants what ends is taken off first."""
    changes = [(piece.start, piece.spent[bound]) for piece in found]
    changes += [(piece.end, -piece.spent[bound]) for piece in found]
    rate = highest = 0
    for _, change in sorted(changes):
        rate += change
        highest = max(highest, rate)
    return highest
