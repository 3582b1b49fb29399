import fcntl
import os
import signal
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from broker.errors import Exit, LockedError, StateError
from state.lock import Holder, Lock, break_lock, holder, lock_path
from tests.state.worlds import T0


def hold_and_die(state: Path, how: int) -> None:
    """A process that takes the lock, and ends without giving it back."""
    pid = os.fork()
    if pid == 0:
        try:
            Lock(state, command="broker run", now=T0).__enter__()
            os.kill(os.getpid(), how)
        finally:
            os._exit(1)
    os.waitpid(pid, 0)


def test_the_holder_is_named_and_the_exit_code_is_that_of_a_lock(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with (
        Lock(state, command="broker apply", now=T0),
        pytest.raises(LockedError, match=rf"broker apply.*pid {os.getpid()}.*2026-03-04 14:00:00") as error,
        Lock(state, command="broker run", now=T0),
    ):
        pass
    assert error.value.exit is Exit.LOCKED
    with Lock(state, command="broker run", now=T0):
        pass


def test_a_dead_holder_on_this_host_is_taken_over(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    hold_and_die(state, signal.SIGKILL)
    assert holder(lock_path(state)) is not None
    with Lock(state, command="broker run", now=T0):
        pass
    assert holder(lock_path(state)) is None


def test_a_holder_on_another_host_is_named_until_it_is_told_to_be_gone(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    lock_path(state).write_bytes(msgspec.json.encode(Holder(host="elsewhere", pid=7, since=T0, command="broker run")))
    with pytest.raises(LockedError, match=r"elsewhere.*unlock --force"), Lock(state, command="broker run", now=T0):
        pass
    was = break_lock(state)
    assert was is not None and was.host == "elsewhere"
    with Lock(state, command="broker run", now=T0):
        pass


def test_a_held_lock_cannot_be_broken(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with Lock(state, command="broker run", now=T0), pytest.raises(LockedError):
        break_lock(state)


def test_waiting_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    state, waits = tmp_path / "state.db", list[float]()
    other = os.open(lock_path(state), os.O_CREAT | os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            os.close(other)

    with Lock(state, command="broker run", now=T0, timeout=timedelta(seconds=30), sleep=wait):
        assert len(waits) == 3


def test_waiting_has_an_end(tmp_path: Path) -> None:
    state, waits = tmp_path / "state.db", list[float]()
    with Lock(state, command="a", now=T0):
        late = Lock(state, command="b", now=T0, timeout=timedelta(seconds=2), sleep=waits.append)
        with pytest.raises(LockedError), late:
            pass
    assert sum(waits) == pytest.approx(2)


def test_a_lock_is_given_back_when_the_run_fails(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with pytest.raises(ZeroDivisionError), Lock(state, command="broker run", now=T0):
        _ = 1 / 0
    with Lock(state, command="broker run", now=T0):
        pass


def test_a_half_written_name_is_nobody(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    lock_path(state).write_text('{"host": "els')
    with Lock(state, command="broker run", now=T0):
        pass


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot take the lock"), Lock(tmp_path / "no" / "s", command="a", now=T0):
        pass
