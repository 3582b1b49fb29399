"""A bound on how long a run goes on: when time is up, calls under way end and are recorded, nothing new is sent."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from broker.errors import BrokerError, Exit
from broker.interruption import Interruption


class OutOfTimeError(BrokerError):
    """The run was stopped by its own bound; rerun is safe."""

    exit = Exit.PARTLY_DONE


class _TimeIsUp(Interruption):
    """Stops the run at the same places as Ctrl-C does."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raises OutOfTimeError when the block takes longer. In the main thread only."""
    if seconds is None:
        yield
        return

    def up(number: int, _frame: FrameType | None) -> None:
        raise _TimeIsUp(number)

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeIsUp:
        what = f"stopped after {seconds:g} s: what was under way is recorded, the rest was not sent"
        raise OutOfTimeError(what, next_step="Running again is safe") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
