"""Records as JSON holds them: a list for each field, which says its name once and not for each of 10,000 jobs."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import starmap
from operator import attrgetter
from typing import Any

from broker.sia.columns import NEVER


def turned(kind: type, records: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """`kind` is a dataclass of more than one field."""
    names = [field.name for field in fields(kind)]
    rows = map(attrgetter(*names), records)
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if records else {}


def restored(kind: type, saved: Any) -> list[Any]:
    """JSON has no infinity: null stands for NEVER. Fields that an older broker did not know are as new ones.

    Raises TypeError, KeyError or ValueError for what is damaged. An older broker wrote a document for each record.
    """
    if isinstance(saved, list):
        saved = {name: [row[name] for row in saved] for name in saved[0]} if saved else {}
    if not isinstance(saved, dict) or not all(isinstance(values, list) for values in saved.values()):
        raise TypeError(f"no columns: {saved!r:.40}")
    if not saved:
        return []
    known, count = {field.name: field.default for field in fields(kind)}, len(next(iter(saved.values())))
    if not saved.keys() <= known.keys():
        raise KeyError(*sorted(saved.keys() - known.keys()))
    values = [_forever(saved[name]) if name in saved else [default] * count for name, default in known.items()]
    return list(starmap(kind, zip(*values, strict=True)))


def _forever(values: list[Any]) -> list[Any]:
    return [NEVER if value is None else value for value in values] if None in values else values
