"""Slurm's shorthand for the tasks of a job array."""

import re
from typing import NamedTuple

from broker.queues.parsed import Unfit

MOST_TASKS = 200_000
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?", re.ASCII)


class Tasks(NamedTuple):
    """`at_once`: how many may run at one time (0: no such limit). `cut`: the text did not hold all of them."""

    ids: tuple[int, ...]
    at_once: int = 0
    cut: bool = False


def tasks(text: str) -> Tasks:
    """`1-10`, `1,3,5-7`, `0-15:4`, `...%8` and the trailing `...` of a text that Slurm cut. Raises Unfit."""
    body, _, throttle = text.strip().strip("[]").partition("%")
    cut = body.endswith("...")
    pieces = [piece for piece in body.removesuffix("...").split(",") if piece]
    ids: dict[int, None] = {}
    for piece in pieces:
        ids.update(dict.fromkeys(_range(piece, text)))
        if len(ids) > MOST_TASKS:
            raise Unfit(f"is an array of more than {MOST_TASKS} tasks", text)
    if not ids:
        raise Unfit("is an array without tasks", text)
    return Tasks(tuple(ids), int(throttle) if throttle.isdecimal() and len(throttle) < 10 else 0, cut)


def _range(piece: str, text: str) -> range:
    match = _RANGE.fullmatch(piece.strip())
    if not match:
        raise Unfit("has array tasks that cannot be understood", text)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last - first > MOST_TASKS * max(step, 1):
        raise Unfit(f"is an array of more than {MOST_TASKS} tasks", text)
    return range(first, last + 1, max(step, 1))
