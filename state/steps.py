"""A reservation's count over time, with honest edges. Pure.

Where the cloud states when billing began or ended, that edge is exact. Elsewhere a change lies between the last
instant at which the old count was still confirmed and the first at which the new one was seen.
"""

from datetime import UTC, datetime

import msgspec

from broker.model.ledger import CountStep
from broker.model.reservation import Reservation, ReservationState
from state.encode import EPOCH

NOT_YET_SEEN = datetime(9999, 1, 1, tzinfo=UTC)
"""The latest edge of a purchase that has not been seen delivered: billing may begin at any later time."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance-hour costs as decided, frozen with its source; None is unknown, never zero."""

    usd_per_hour_micro: int | None = None
    source: str = ""
    key: str = ""


def opened(reservation: Reservation, *, earliest: datetime | None, latest: datetime, price: Price) -> CountStep:
    """The first step. `earliest` None: bought before anything that this ledger knows."""
    delivered = reservation.state is not ReservationState.PENDING
    stated = reservation.billed_from
    return CountStep(
        reservation_id=reservation.id,
        scope=reservation.place.scope,
        count=reservation.count,
        earliest=stated or earliest or EPOCH,
        latest=stated or (latest if delivered else NOT_YET_SEEN),
        usd_per_hour_micro=price.usd_per_hour_micro,
        price_source=price.source,
        key=price.key,
    )


def moved(
    steps: tuple[CountStep, ...], now: Reservation, *, earliest: datetime, latest: datetime, price: Price | None = None
) -> tuple[CountStep, ...]:
    """`steps` brought up to `now`: the start made exact, a changed count added, an end set."""
    steps = _with_start(steps, now, latest)
    if now.state.gone:
        return _ended(steps, now, earliest, latest)
    last = steps[-1]
    if now.count == last.count:
        return steps
    frozen = price or Price(usd_per_hour_micro=last.usd_per_hour_micro, source=last.price_source, key=last.key)
    step = opened(now, earliest=earliest, latest=latest, price=frozen)
    return (*steps, _after(last, step, earliest, latest))


def vanished(steps: tuple[CountStep, ...], *, earliest: datetime, latest: datetime) -> tuple[CountStep, ...]:
    """It is not listed any more: it ended at some time between."""
    return (*steps, _zero(steps[-1], earliest, latest))


def widened(steps: tuple[CountStep, ...], sent: datetime) -> tuple[CountStep, ...]:
    """Of two requests for the same change either may have made it: the last edge reaches back to the earlier one."""
    last = steps[-1]
    if len(steps) == 1 or last.earliest <= sent:
        return steps
    return (*steps[:-1], msgspec.structs.replace(last, earliest=max(sent, steps[-2].earliest)))


def _with_start(steps: tuple[CountStep, ...], now: Reservation, latest: datetime) -> tuple[CountStep, ...]:
    first = steps[0]
    if now.billed_from is not None:
        first = msgspec.structs.replace(first, earliest=now.billed_from, latest=now.billed_from)
    elif first.latest == NOT_YET_SEEN and now.state is ReservationState.ACTIVE:
        first = msgspec.structs.replace(first, latest=latest)
    return (first, *steps[1:])


def _ended(
    steps: tuple[CountStep, ...], now: Reservation, earliest: datetime, latest: datetime
) -> tuple[CountStep, ...]:
    last = steps[-1]
    open_steps = steps[:-1] if last.count == 0 and len(steps) > 1 else steps
    if now.billed_until is not None:
        return (*open_steps, _zero(open_steps[-1], now.billed_until, now.billed_until))
    if last.count == 0:
        return steps
    return (*steps, _zero(last, earliest, latest))


def _zero(last: CountStep, earliest: datetime, latest: datetime) -> CountStep:
    return _after(last, msgspec.structs.replace(last, count=0), earliest, latest)


def _after(last: CountStep, step: CountStep, earliest: datetime, latest: datetime) -> CountStep:
    """No change comes before the one that it follows, though a clock that was set back in between may say so."""
    earliest = max(earliest, last.earliest)
    return msgspec.structs.replace(step, earliest=earliest, latest=max(earliest, latest))
