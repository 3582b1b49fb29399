"""Whether our clock agrees with the clouds'. With a wrong one, ends, ages and windows mean nothing: nothing is done."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from broker.clock import Clock
from broker.config import name_of
from broker.errors import GuardError
from broker.side_by_side import side_by_side
from providers.dates import cloud_time
from providers.settings import ProviderSettings

TOLERANCE = timedelta(minutes=5)
"""As long as a purchase may stay invisible by default: a clock further off could call one failed too soon."""


def clock_doubt(providers: Sequence[ProviderSettings], clock: Clock) -> str:
    """One line when the clock is off by more than the tolerance, "" when it is not or no cloud tells the time."""
    lines = side_by_side([partial(_against, settings, clock) for settings in providers])
    return next((line for line in lines if line), "")


def require_right_time(providers: Sequence[ProviderSettings], clock: Clock) -> None:
    """Before anything is settled: a wrong clock would take a purchase that is not visible yet for failed.

    Raises GuardError.
    """
    if doubt := clock_doubt(providers, clock):
        raise GuardError(f"nothing was done because of {doubt}")


def _against(settings: ProviderSettings, clock: Clock) -> str:
    before = clock.now()
    theirs = cloud_time(settings)
    return "" if theirs is None else compared(name_of(settings).value, theirs, before, clock.now())


def compared(cloud: str, theirs: datetime, before: datetime, after: datetime) -> str:
    """Their time lies between ours before and after the question, give or take the tolerance, or one is wrong."""
    ahead, behind = before - theirs, theirs - after
    if max(ahead, behind) <= TOLERANCE:
        return ""
    off, where = (ahead, "ahead of") if ahead > behind else (behind, "behind")
    return f"this machine's clock, which is {int(off.total_seconds() // 60)} min {where} {cloud}'s; set it (NTP)"
