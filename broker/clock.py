"""The one place where the time of day is read. Deciding never does: it is handed `now`."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware UTC."""
        ...


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - this is the place


class FixedClock:
    """Stands still; for tests and for `--at TIME`."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
