"""A run in a process of its own, forked from this one with everything loaded, and killed where it is told to be."""

import contextlib
import os
import select
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable

import msgspec

from broker.apply.boundary import Boundary, Checkpoint

ORDER = tuple(Boundary)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How the process ended, and the boundaries that it passed, in order."""

    killed: bool
    exit: int
    passed: tuple[Boundary, ...]


def in_process(body: Callable[[Checkpoint], object], *, die_at: Boundary | None = None, nth: int = 1) -> Ended:
    """Run `body` in a fork; at the `nth` time that it reaches `die_at` it gets SIGKILL, as from the system."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(body, _deadly(writer, die_at, nth))
    os.close(writer)
    return _waited(pid, _read_all(reader))


def killed_after(body: Callable[[Checkpoint], object], *, first: Boundary, last: Boundary, wait_s: float) -> Ended:
    """SIGKILL from outside, `wait_s` after `first` was passed, unless it has passed `last` by then."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(body, _deadly(writer, None, 0))
    os.close(writer)
    seen = b""
    while (piece := os.read(reader, 1)) and ORDER[piece[0]] is not first:
        seen += piece
    if piece:
        seen += piece + _until(reader, last, wait_s)
        if ORDER[seen[-1]] is not last:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return _waited(pid, seen + _read_all(reader))


def _until(reader: int, last: Boundary, wait_s: float) -> bytes:
    """What is passed until `last` is, or until nothing has been for `wait_s`."""
    seen = b""
    while select.select([reader], [], [], wait_s)[0]:
        piece = os.read(reader, 1)
        seen += piece
        if not piece or ORDER[piece[0]] is last:
            break
    return seen


def _child(body: Callable[[Checkpoint], object], checkpoint: Checkpoint) -> None:
    code = 1
    try:
        body(checkpoint)
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def _deadly(writer: int, die_at: Boundary | None, nth: int) -> Checkpoint:
    passed: Counter[Boundary] = Counter()

    def checkpoint(boundary: Boundary) -> None:
        os.write(writer, bytes([ORDER.index(boundary)]))
        passed[boundary] += 1
        if boundary is die_at and passed[boundary] == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    return checkpoint


def _read_all(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


def _waited(pid: int, passed: bytes) -> Ended:
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    return Ended(killed=killed, exit=0 if killed else code, passed=tuple(ORDER[index] for index in passed))
