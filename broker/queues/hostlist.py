"""Slurm's shorthand for node names: `gpu[01-03,7],login1`."""

import re
from math import prod

_MOST = 10_000
_PIECE = re.compile(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_BRACKET = re.compile(r"\[([^\]]*)\]")


def names(text: str | None) -> tuple[str, ...]:
    """In order; a text that holds more than some thousand names or cannot be expanded gives the pieces as they are."""
    found: list[str] = []
    for piece in _PIECE.findall(text or ""):
        found.extend(_expanded(piece.strip()))
        if len(found) > _MOST:
            return tuple(_PIECE.findall(text or ""))
    return tuple(name for name in found if name)


def _expanded(piece: str) -> list[str]:
    match = _BRACKET.search(piece)
    if not match or _size(piece) > _MOST:
        return [piece]
    head, tail = piece[: match.start()], piece[match.end() :]
    numbers = [number for part in match[1].split(",") for number in _numbers(part)]
    return [name for number in numbers for name in _expanded(f"{head}{number}{tail}")]


def _size(piece: str) -> int:
    """How many names it stands for: brackets multiply."""
    return prod(sum(_count(part) for part in inner.split(",")) for inner in _BRACKET.findall(piece))


def _count(part: str) -> int:
    match = _RANGE.fullmatch(part)
    return max(int(match[2]) - int(match[1]) + 1, 1) if match else 1


def _numbers(part: str) -> list[str]:
    match = _RANGE.fullmatch(part)
    if not match:
        return [part]
    first, last = match[1], match[2]
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
