"""The sandbox's time: stands still until it is set, or runs at a speed. It never goes back."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

DEFAULT_START = datetime(2026, 3, 2, 8, tzinfo=UTC)


class ClockState(msgspec.Struct, frozen=True, kw_only=True):
    """At the real second `real_s` it was `at` in the world; since then it runs `speed` world seconds a second."""

    at: datetime
    real_s: float
    speed: float


class WorldClock:
    """A `broker.clock.Clock`. Speed 0 stands still; 1 is real time; 1440 lets a day pass in a minute.

    `real` gives real seconds since the epoch; they go on while no process runs, so a saved world goes on too.
    """

    def __init__(
        self, at: datetime = DEFAULT_START, speed: float = 0.0, *, real: Callable[[], float] = time.time
    ) -> None:
        self._real = real
        self._state = ClockState(at=at, real_s=real(), speed=speed)

    def now(self) -> datetime:
        """Aware UTC."""
        passed = (self._real() - self._state.real_s) * self._state.speed
        return self._state.at + timedelta(seconds=max(passed, 0.0))

    def set(self, at: datetime) -> None:
        """Raises ValueError for a time before `now()`: what happened cannot be undone."""
        if at < self.now():
            raise ValueError(f"the world's clock is at {self.now().isoformat()} and does not go back")
        self._state = ClockState(at=at, real_s=self._real(), speed=self._state.speed)

    def advance(self, by: timedelta) -> datetime:
        self.set(self.now() + by)
        return self.now()

    def run(self, speed: float) -> None:
        """World seconds for each real second, from now on; 0 stops the clock."""
        self._state = ClockState(at=self.now(), real_s=self._real(), speed=speed)

    @property
    def state(self) -> ClockState:
        return self._state

    @state.setter
    def state(self, state: ClockState) -> None:
        self._state = state
