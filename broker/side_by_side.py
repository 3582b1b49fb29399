"""Calls that wait for others, side by side: all of them take as long as the slowest."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def started(call: Callable[[], T]) -> "Future[T]":
    """Runs in a thread that does not outlive the process.

    A pool's threads are waited for at exit, so that Ctrl-C would hang until the slowest cloud has timed out. What is
    called here only reads: breaking off costs nothing.
    """
    future: Future[T] = Future()
    threading.Thread(target=_run, args=(call, future), daemon=True, name="side-by-side").start()
    return future


def side_by_side(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results in the order of the calls; the first call that raised, raises."""
    return [future.result() for future in [started(call) for call in calls]]


def _run(call: Callable[[], T], future: "Future[T]") -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
