"""Waiting for a long-running operation, but not for ever."""

import time
from collections.abc import Callable

from azure.mgmt.core.polling.arm_polling import ARMPolling

INTERVAL_S = 5.0
"""Between two looks at an operation, where the cloud does not say."""


class StillRunning(Exception):
    """Patience is over and the operation is not: it goes on without us."""


class PatientPolling(ARMPolling):  # type: ignore[misc]  # the SDK is not checked
    """The SDK's polling, with an end: it looks at least once, and not after `patience_s` seconds.

    `read` makes one look, repeating it where that is safe: looking changes nothing.
    """

    def __init__(self, patience_s: float, read: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(timeout=min(INTERVAL_S, patience_s))
        self._until = time.monotonic() + patience_s
        self._read = read

    def update_status(self) -> None:
        self._read(super().update_status)
        if not self.finished() and time.monotonic() + self._extract_delay() >= self._until:
            raise StillRunning
