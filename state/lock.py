"""One writer: an operating system's lock on a file beside the state, with the name of who holds it.

The system drops the lock when its holder dies, so a dead holder on this host is simply taken over. Where the file
lies on a file system shared with other hosts, locks may not cross: a holder on another host is respected by name
until `broker state unlock --force`.
"""

import fcntl
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from broker import regular
from broker.errors import LockedError, StateError

POLL_S = 0.1


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    pid: int
    since: datetime
    command: str

    def __str__(self) -> str:
        return f"`{self.command}` (pid {self.pid} on {self.host}, since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class Lock:
    """A context manager. Raises LockedError naming the holder if it is not free within `timeout`."""

    def __init__(
        self,
        state: Path,
        *,
        command: str,
        now: datetime,
        timeout: timedelta = timedelta(0),
        host: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = lock_path(state)
        self.me = Holder(host=host or platform.node(), pid=os.getpid(), since=now, command=command)
        self._tries = 1 + int(timeout.total_seconds() / POLL_S)
        self._sleep = sleep
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = _opened(self.path)
        try:
            self._wait()
            _write(self._descriptor, msgspec.json.encode(self.me))
        except OSError as error:
            os.close(self._descriptor)
            raise _unusable(self.path, error) from error
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a full disk must not hide how the run ended
            _write(self._descriptor, b"")
        os.close(self._descriptor)

    def _wait(self) -> None:
        for attempt in range(self._tries):
            if attempt:
                self._sleep(POLL_S)
            if self._taken():
                return
        raise _locked(holder(self.path))

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        left = _read(self._descriptor)
        if left is None or left.host == self.me.host:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False


def lock_path(state: Path) -> Path:
    return state.with_name(f"{state.name}.lock")


def holder(path: Path) -> Holder | None:
    """Who the lock file names; None if nobody, or if it cannot be read."""
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        text = regular.content(path)
        return msgspec.json.decode(text, type=Holder) if text else None
    return None


def break_lock(state: Path) -> Holder | None:
    """Forget a holder on another host; returns who it was. Raises LockedError while a process here holds it."""
    descriptor = _opened(lock_path(state))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        was = _read(descriptor)
        _write(descriptor, b"")
        return was
    except BlockingIOError:
        raise _locked(holder(lock_path(state)), next_step="Wait for it to end, or stop it") from None
    except OSError as error:
        raise _unusable(lock_path(state), error) from error
    finally:
        os.close(descriptor)


def _locked(who: Holder | None, next_step: str = "") -> LockedError:
    name = str(who) if who else "another run"
    advice = "Wait, or give --lock-timeout; if that host is gone: broker state unlock --force"
    return LockedError(f"the state is locked by {name}", next_step=next_step or advice)


def _opened(path: Path) -> int:
    try:
        regular.require(path)
        return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> StateError:
    what = f"cannot take the lock {path}: {error.strerror}"
    return StateError(
        what, next_step="Make the state's folder writable and see that its disk has room; nothing was done"
    )


def _read(descriptor: int) -> Holder | None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    text = os.read(descriptor, 4096)
    with suppress(msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(text, type=Holder) if text else None
    return None


def _write(descriptor: int, text: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, text)
