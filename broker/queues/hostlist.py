"""Slurm's shorthand for node names: `gpu[01-03,7],login1`."""

import re

_MOST = 10_000
_PIECE = re.compile(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*")
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
    if not match:
        return [piece]
    head, tail = piece[: match.start()], piece[match.end() :]
    numbers = [number for part in match[1].split(",") for number in _numbers(part)]
    if len(numbers) > _MOST:
        return [piece]
    return [name for number in numbers for name in _expanded(f"{head}{number}{tail}")]


def _numbers(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    if not dash or not (first.isdigit() and last.isdigit()) or int(last) - int(first) > _MOST:
        return [part]
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
