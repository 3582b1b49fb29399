"""Being told to stop: by Ctrl-C, and by what cron, systemd, `timeout` and a closing terminal send.

Told once, a command breaks off: calls under way end and are recorded, nothing more is sent. Told again, it ends at
once, as a kill would end it; the next run settles what was under way, as after a kill.
"""

import os
import signal
import sys
import threading
import time
from types import FrameType

from broker.errors import Exit

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SAME_WISH_S = 0.5
"""A terminal and a program in between (`timeout`, `make`) both pass one wish on: so soon it is not a second one."""

WORD = "broker: interrupted. The state is consistent; the next run settles what was under way"


class Interruption(KeyboardInterrupt):
    """Raised in the main thread, wherever it is, by the signal of that number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Stopping:
    """What signals do to this process from now on. A signal that is ignored (`nohup`) stays ignored."""

    def __init__(self) -> None:
        self._told_at: float | None = None
        self._code: int | None = None
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._swallowed
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._told)

    def ended(self, code: int) -> int:
        """The command has its exit code and has said everything: from now on a signal only hastens the exit."""
        self._code = code
        return code

    def _told(self, number: int, _frame: FrameType | None) -> None:
        if self._code is not None:
            os._exit(self._code)
        if self._told_at is None:
            self._told_at = time.monotonic()
            raise Interruption(number)
        if time.monotonic() - self._told_at > SAME_WISH_S:
            os.write(2, f"{WORD}\n".encode())
            os._exit(Exit.INTERRUPTED)

    def _swallowed(self, what: "sys.UnraisableHookArgs") -> None:
        """Where Python can raise nothing (a finalizer), the interruption would be lost: it comes again, right after."""
        if not isinstance(what.exc_value, KeyboardInterrupt):
            self._unraisable(what)
            return
        self._told_at = None
        number = what.exc_value.number if isinstance(what.exc_value, Interruption) else signal.SIGINT
        again = threading.Timer(0.01, _send_again, (number,))
        again.daemon = True
        again.start()


def _send_again(number: int) -> None:
    """A real signal, which also wakes a system call. Not where nobody handles it any more: that would be a kill."""
    if callable(signal.getsignal(number)):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
