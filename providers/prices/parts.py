"""Prices that are stated in parts: the host and its GPUs priced apart, so much for each vCPU, GiB and GPU. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import msgspec

from broker.errors import InputError
from broker.model.offer import Price
from broker.model.place import ProviderName

Key = tuple[ProviderName, str, str]
"""Provider, region, machine type."""


class Line(msgspec.Struct, frozen=True):
    """One line of a price file. `part` "" prices the whole instance; else `quantity` of the part at `price` each."""

    key: Key
    price: Price
    part: str = ""
    quantity: Decimal = Decimal(1)


def assembled(lines: Iterable[Line], path: Path) -> dict[Key, Price]:
    """One price for each key. Raises InputError where lines of one key contradict each other."""
    by_key: dict[Key, list[Line]] = defaultdict(list)
    for line in lines:
        by_key[line.key].append(line)
    return {key: _one(key, found, path) for key, found in by_key.items()}


def _one(key: Key, lines: list[Line], path: Path) -> Price:
    parts = {line.part: line for line in lines}
    if any(line != parts[line.part] for line in lines):
        raise _unusable(path, f"prices {' '.join(key)}{_of(lines, parts)} twice, differently")
    if "" not in parts:
        return _sum(key, tuple(parts.values()), path)
    if len(parts) > 1:
        raise _unusable(path, f"prices {' '.join(key)} both whole and in parts")
    return parts[""].price


def _of(lines: list[Line], parts: dict[str, Line]) -> str:
    """The part that is in question, where it is one."""
    part = next(line.part for line in lines if line != parts[line.part])
    return f" ({part})" if part else ""


def _sum(key: Key, parts: tuple[Line, ...], path: Path) -> Price:
    """As old as its oldest part. One part alone is taken for a mistake: the host without its GPUs looks like a gift."""
    if len(parts) < 2:
        raise _unusable(path, f"prices only a part of {' '.join(key)}: {parts[0].part}")
    costs = tuple((line.part, line.price.usd_per_hour * line.quantity) for line in parts)
    return Price(
        usd_per_hour=sum((usd for _, usd in costs), Decimal(0)),
        source=", ".join(dict.fromkeys(line.price.source for line in parts)),
        as_of=min(line.price.as_of for line in parts),
        parts=costs,
    )


def _unusable(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}", next_step="Price it whole in one line, or in two or more parts")
