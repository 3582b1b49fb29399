"""Gets the bytes of a queue: from a regular file, or from a command that is stopped when it takes too long."""

import atexit
import contextlib
import os
import selectors
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple

from broker.clock import Clock
from broker.queues.parsed import Unreadable

_CHUNK = 1 << 16
_MOST_COMPLAINT = 1 << 16
_START_S = 5.0


class Fetched(NamedTuple):
    """`as_of`: the content is no fresher than this."""

    raw: bytes
    as_of: datetime


def file(path: Path, max_bytes: int) -> Fetched:
    """Raises Unreadable."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path} is not a regular file")
        if found.st_size > max_bytes:
            raise Unreadable(f"{path} is larger than {max_bytes} bytes; raise max_size")
        raw = path.read_bytes()
        after = path.stat()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}; check the path and its mode") from None
    if (after.st_mtime_ns, after.st_size) != (found.st_mtime_ns, found.st_size) or len(raw) != found.st_size:
        raise Unreadable(f"{path} is being written just now; write to another name and rename it")
    return Fetched(raw, datetime.fromtimestamp(found.st_mtime, UTC))


def command(words: Sequence[str], timeout_s: float, max_bytes: int, clock: Clock) -> Fetched:
    """Runs it without a shell, in a process group of its own, which is killed as a whole. Raises Unreadable."""
    begun = clock.now()
    with _started(words) as process:
        try:
            out, complaint = _output(process, timeout_s, max_bytes, words[0])
        finally:
            _kill_group(process.pid)
    if process.returncode:
        raise Unreadable(f"{_shown(words)} failed ({_ending(process.returncode)}){_last_line(complaint)}")
    if not out.strip():
        raise Unreadable(f"{_shown(words)} printed nothing{_last_line(complaint)}")
    return Fetched(out, begun)


def _started(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    try:
        with _STARTING:
            process = subprocess.Popen(
                list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            _LEFT.add(process.pid)
    except OSError as error:
        raise Unreadable(f"{words[0]} cannot be started: {error.strerror}; is it installed here?") from None
    return process


def _output(process: "subprocess.Popen[bytes]", timeout_s: float, max_bytes: int, name: str) -> tuple[bytes, bytes]:
    """(stdout, the beginning of stderr), read side by side until both end."""
    assert process.stdout and process.stderr
    collected: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for pipe in collected:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                raise Unreadable(f"{name} did not end within {timeout_s:g} s and was stopped; raise timeout?")
            for key, _ in ready:
                if not _drain(key.fileobj, collected):  # type: ignore[arg-type]  # a pipe, as registered above
                    selector.unregister(key.fileobj)
            if len(collected[process.stdout]) > max_bytes:
                raise Unreadable(f"{name} printed more than {max_bytes} bytes; raise max_size")
    return _ended(process, deadline, name, timeout_s, collected)


def _ended(
    process: "subprocess.Popen[bytes]", deadline: float, name: str, timeout_s: float,
    collected: dict[IO[bytes], bytearray],
) -> tuple[bytes, bytes]:  # fmt: skip
    """A program may close its output and go on."""
    assert process.stdout and process.stderr
    try:
        process.wait(max(deadline - time.monotonic(), 0.01))
    except subprocess.TimeoutExpired:
        raise Unreadable(f"{name} did not end within {timeout_s:g} s and was stopped; raise timeout?") from None
    return bytes(collected[process.stdout]), bytes(collected[process.stderr])


def _drain(pipe: IO[bytes], collected: dict[IO[bytes], bytearray]) -> bool:
    """False at the pipe's end."""
    chunk = os.read(pipe.fileno(), _CHUNK)
    collected[pipe] += chunk
    if len(collected) == 2 and len(collected[pipe]) > _MOST_COMPLAINT and pipe is list(collected)[1]:
        del collected[pipe][:-_MOST_COMPLAINT]
    return bool(chunk)


_LEFT: set[int] = set()
"""Process groups that may still run: when the program is interrupted, its exit ends them too."""
_STARTING = threading.Lock()
"""Held from before a command starts until it is among those; once the program exits, for ever: none starts any more."""


def _kill_group(leader: int) -> None:
    """Also what the command left behind: children may hold on after their parent has ended."""
    _LEFT.discard(leader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


@atexit.register
def _kill_all() -> None:
    _STARTING.acquire(timeout=_START_S)
    for leader in tuple(_LEFT):
        _kill_group(leader)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _shown(words: Sequence[str]) -> str:
    return " ".join(words)[:80]


def _last_line(complaint: bytes) -> str:
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
    return f": {lines[-1][:160]}" if lines else "; run it by hand to see why"
