"""A value as `broker.toml` would have it: what is shown of a configuration can be put into the file as it stands."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

from broker.config import values
from broker.config.values import Parser

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SIZES = (("GiB", 2**30), ("GB", 10**9), ("MiB", 2**20), ("MB", 10**6), ("KiB", 2**10), ("KB", 10**3))


def toml(value: Any, parse: Parser) -> str:
    """Behind `KEY =`, such that `parse` gives the value again; "" for none, which is the key left out."""
    if value is None or value in ((), ""):
        return ""
    return _quoted(size(value)) if parse is values.size else _toml(value)


def plain(value: Any, parse: Parser) -> str:
    """The same without quotes, brackets and braces, for the eye."""
    if value is None:
        return ""
    return size(value) if parse is values.size else _plain(value)


def size(of_bytes: int) -> str:
    """`256MiB`: in the largest unit of which it is a whole number."""
    whole = (f"{of_bytes // length}{unit}" for unit, length in _SIZES if of_bytes and of_bytes % length == 0)
    return next(whole, f"{of_bytes}B")


def _toml(value: Any) -> str:
    match value:
        case bool() | int() | float() | Decimal():
            return _plain(value)
        case tuple() if isinstance(value[0], tuple):
            return f"{{ {', '.join(f'{_name(name)} = {_toml(each)}' for name, each in value)} }}"
        case tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return _quoted(_plain(value))


def _plain(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case timedelta():
            return _duration(value)
        case tuple():
            return ", ".join("=".join(map(_plain, item)) if isinstance(item, tuple) else _plain(item) for item in value)
        case _:
            return str(value)


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _duration(length: timedelta) -> str:
    if length.microseconds:
        return f"{Decimal(length // timedelta(microseconds=1)) / 1_000_000:f}s"
    seconds = length // timedelta(seconds=1)
    for unit, of in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= of and seconds % of == 0 and (unit != "d" or seconds > of):
            return f"{seconds // of}{unit}"
    return f"{seconds}s"
