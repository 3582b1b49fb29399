"""Whether our clock agrees with the clouds'. With a wrong one, ends, ages and windows mean nothing: nothing is done.

A clock that is off by less is set right for the run: two runs whose clocks disagree, each within bounds, would else
take a purchase that is not visible yet for one that failed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from broker.clock import Clock
from broker.config import name_of
from broker.errors import GuardError
from broker.side_by_side import side_by_side
from providers.dates import cloud_time
from providers.settings import ProviderSettings

TOLERANCE = timedelta(minutes=5)
"""Clouds themselves refuse what is signed at a time further off."""
UNHEARD = timedelta(seconds=30)
"""As much is within what answers take and what dates to the second hide: the clock is left as it is."""


class Difference(NamedTuple):
    """By how much a cloud's clock is ahead of ours (negative: behind), at least."""

    cloud: str
    ahead: timedelta


class SetRight:
    """Another clock, so much later."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by


def clock_doubt(providers: Sequence[ProviderSettings], clock: Clock) -> str:
    """One line when the clock is off by more than the tolerance, "" when it is not or no cloud tells the time."""
    return next((line for line in map(_line, _differences(providers, clock)) if line), "")


def right_clock(providers: Sequence[ProviderSettings], clock: Clock) -> Clock:
    """The same where a cloud agrees with it or none tells the time; else one that agrees with the nearest of them.

    Asked before anything is settled: a wrong clock would take a purchase that is not visible yet for failed.
    Raises GuardError beyond the tolerance.
    """
    found = _differences(providers, clock)
    if doubt := next((line for line in map(_line, found) if line), ""):
        raise GuardError(f"nothing was done because of {doubt}")
    nearest = min((abs(each.ahead), each.ahead) for each in found)[1] if found else timedelta(0)
    return clock if abs(nearest) <= UNHEARD else SetRight(clock, nearest)


def difference(theirs: datetime, before: datetime, after: datetime) -> timedelta:
    """Their time lies between ours before and after the question, or one of the clocks is wrong by so much."""
    if theirs < before:
        return theirs - before
    return max(theirs - after, timedelta(0))


def _differences(providers: Sequence[ProviderSettings], clock: Clock) -> list[Difference]:
    found = side_by_side([partial(_difference, settings, clock) for settings in providers])
    return [each for each in found if each is not None]


def _difference(settings: ProviderSettings, clock: Clock) -> Difference | None:
    before = clock.now()
    theirs = cloud_time(settings)
    return None if theirs is None else Difference(name_of(settings).value, difference(theirs, before, clock.now()))


def _line(found: Difference) -> str:
    if abs(found.ahead) <= TOLERANCE:
        return ""
    off, where = int(abs(found.ahead).total_seconds() // 60), "behind" if found.ahead > timedelta(0) else "ahead of"
    return f"this machine's clock, which is {off} min {where} {found.cloud}'s; set it (NTP)"
