"""Slurm's shorthand for the tasks of a job array."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from broker.queues.parsed import Parsed, Unfit

MOST_TASKS = 4_000_001
"""Of all arrays that wait in one answer: the largest MaxArraySize that Slurm takes for one of them. Slurm keeps each
task as a job in memory, and its manual advises against more than some hundred thousand."""

_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?", re.ASCII)


class Tasks(NamedTuple):
    """`at_once`: how many may run at one time (0: no such limit). `cut`: the text did not hold all of them."""

    ids: Sequence[int]
    at_once: int = 0
    cut: bool = False


def waiting(text: str, parsed: Parsed) -> Tasks:
    """The tasks of an array that waits, as long as one answer may hold them all. Raises Unfit."""
    found = tasks(text)
    if parsed.tasks + len(found.ids) > MOST_TASKS:
        raise Unfit(f"is an array beyond the {MOST_TASKS:,} tasks that one answer may hold", text)
    parsed.tasks += len(found.ids)
    return found


def tasks(text: str) -> Tasks:
    """`1-10`, `1,3,5-7`, `0-15:4`, `...%8` and the trailing `...` of a text that Slurm cut. Raises Unfit."""
    body, _, throttle = text.strip().strip("[]").partition("%")
    cut = body.endswith("...")
    ranges = [_range(piece, text) for piece in body.removesuffix("...").split(",") if piece]
    if not any(ranges):
        raise Unfit("is an array without tasks", text)
    return Tasks(_each_once(ranges, text), int(throttle) if throttle.isdecimal() and len(throttle) < 10 else 0, cut)


def _each_once(ranges: Sequence[range], text: str) -> Sequence[int]:
    """One range stays one: a million tasks take no room until they are jobs."""
    if sum(map(len, ranges)) > MOST_TASKS:
        raise Unfit(f"is an array of more than {MOST_TASKS:,} tasks", text)
    return ranges[0] if len(ranges) == 1 else tuple(dict.fromkeys(chain.from_iterable(ranges)))


def _range(piece: str, text: str) -> range:
    match = _RANGE.fullmatch(piece.strip())
    if not match:
        raise Unfit("has array tasks that cannot be understood", text)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last >= MOST_TASKS:
        raise Unfit(f"has array tasks beyond {MOST_TASKS - 1:,}, where Slurm's end", text)
    return range(first, last + 1, max(step, 1))
