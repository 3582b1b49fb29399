"""One value of `broker.toml` at a time: raw TOML in, a typed value out, or `Wrong` with a sentence that says why."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Parser = Callable[[Any], Any]

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNIT_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[a-z]+)+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Wrong(Exception):
    """The value cannot be used; the message completes "KEY: ..."."""


class Empty(Wrong):
    """There is a value, and nothing in it."""


def nearest(name: str, known: tuple[str, ...] | list[str]) -> str:
    """`; did you mean X?`, or "" when nothing is near."""
    lowered = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return f'; did you mean "{lowered[found[0]]}"?' if found else ""


def text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise Wrong(f"expected text in quotes, got {raw!r}")
    if not raw.strip():
        raise Empty("is empty")
    return raw.strip()


def texts(raw: Any) -> tuple[str, ...]:
    """A list of texts; one text stands for a list of one."""
    items = raw if isinstance(raw, list) else [raw]
    if not all(isinstance(item, str) for item in items):
        raise Wrong(f"expected a text or a list of texts, got {_shown(raw)}")
    if not all(item.strip() for item in items):
        raise Empty("holds an empty text" if isinstance(raw, list) else "is empty")
    return tuple(item.strip() for item in items)


def some_texts(raw: Any) -> tuple[str, ...]:
    found = texts(raw)
    if not found:
        raise Empty("is an empty list; name at least one")
    return found


def command(raw: Any) -> tuple[str, ...]:
    """A program and its arguments as a list: no shell stands between, so nothing needs quoting."""
    if isinstance(raw, str):
        raise Wrong(f"expected a list such as {raw.split() or ['squeue', '--json']}, not one text".replace("'", '"'))
    return some_texts(raw)


def url(raw: Any) -> str:
    """An http or https address, without a password: tokens come from the environment."""
    written = text(raw)
    parts = urlsplit(written)
    if parts.scheme not in ("http", "https") or not parts.hostname or not written.isprintable() or " " in written:
        raise Wrong(f"expected an address such as https://slurm.example:6820/slurm/v0.0.41/jobs, got {written!r}")
    if parts.username or parts.password:
        raise Wrong("holds a user or password; leave it out, the token comes from the environment")
    return written


def flag(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise Wrong(f"expected true or false, got {raw!r}")
    return raw


def count(raw: Any) -> int:
    """A whole number, 0 or more."""
    if isinstance(raw, str) and re.fullmatch(r"-?\d+", raw):
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise Wrong(f"expected a whole number, got {_shown(raw)}")
    if raw < 0:
        raise Wrong(f"is negative ({raw})")
    return raw


def positive(raw: Any) -> int:
    found = count(raw)
    if not found:
        raise Wrong("is 0; expected 1 or more")
    return found


def number(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal):
        raise Wrong(f"expected a number, got {_shown(raw)}")
    if not isfinite(raw) or raw < 0:
        raise Wrong(f"expected a number of 0 or more, got {_shown(raw)}")
    return float(raw)


def part(raw: Any) -> float:
    """A part of one, from 0 to 1."""
    found = number(raw)
    if found > 1:
        raise Wrong(f"expected a part of one such as 0.95, got {_shown(raw)}")
    return found


def usd(raw: Any) -> Decimal:
    """US dollars: a number, or a text such as "1200.50"."""
    if isinstance(raw, bool) or not isinstance(raw, int | Decimal | str):
        raise Wrong(f"expected an amount in US dollars, got {_shown(raw)}")
    try:
        amount = (
            Decimal(raw.strip().removeprefix("$").removesuffix("USD").strip()) if isinstance(raw, str) else Decimal(raw)
        )
    except InvalidOperation:
        raise Wrong(f'expected an amount in US dollars such as 1200.50, got "{raw}"') from None
    if not amount.is_finite():
        raise Wrong(f"is not an amount ({_shown(raw)}); leave the key out for no limit")
    if amount < 0:
        raise Wrong(f"is negative ({amount})")
    return amount


def duration(raw: Any) -> timedelta:
    """A text with units: "45s", "30m", "24h", "90d", "2w", or several of them ("1h30m")."""
    if isinstance(raw, int | float | Decimal) and not isinstance(raw, bool):
        raise Wrong(f'has no unit ({_shown(raw)}); write "{raw}s", "{raw}m", "{raw}h" or "{raw}d"')
    if not isinstance(raw, str):
        raise Wrong(f'expected a duration such as "30m", got {raw!r}')
    written = raw.replace(" ", "").lower()
    if written.startswith("-"):
        raise Wrong(f'is negative ("{raw}")')
    if not _DURATION.fullmatch(written):
        raise Wrong(f'expected a duration such as "30m", "24h" or "90d", got "{raw}"')
    return _sum_of_parts(written, raw)


def _sum_of_parts(written: str, raw: str) -> timedelta:
    total = timedelta()
    for amount, unit in _DURATION_PART.findall(written):
        if unit not in _UNIT_S:
            raise Wrong(f'does not know the unit "{unit}" in "{raw}"; use s, m, h, d or w')
        try:
            total += timedelta(seconds=float(amount) * _UNIT_S[unit])
        except OverflowError:
            raise Wrong(f'is too long ("{raw}")') from None
    return total


def some_time(raw: Any) -> timedelta:
    found = duration(raw)
    if not found:
        raise Wrong("is 0; expected more")
    return found


def size(raw: Any) -> int:
    """Bytes: a text such as "256MiB"."""
    found = re.fullmatch(r"(\d+) ?([A-Za-z]+)", raw.strip()) if isinstance(raw, str) else None
    if not found or found[2].upper() not in _UNIT_BYTES:
        raise Wrong(f'expected a size such as "256MiB", got {_shown(raw)}')
    return int(found[1]) * _UNIT_BYTES[found[2].upper()]


def timezone(raw: Any) -> str:
    name = text(raw)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Wrong(f'does not know the time zone "{name}"; use a name such as "UTC" or "Europe/Zurich"') from None
    return name


def instant(raw: Any) -> datetime:
    """In UTC: seconds since 1970, or ISO 8601 with a zone."""
    written = str(raw).strip()
    try:
        found = datetime.fromtimestamp(int(written), UTC) if written.isdecimal() else datetime.fromisoformat(written)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None or found.tzinfo is None:
        raise Wrong(
            f'expected seconds since 1970, or a time with its zone such as "2026-03-01T00:00Z", got {_shown(raw)}'
        )
    return found.astimezone(UTC)


def loopback(raw: Any) -> str:
    """The address of a sandbox: made-up credentials are sent there, so it must be this machine."""
    address = urlsplit(text(raw))
    if address.scheme != "http" or address.hostname not in _LOOPBACK:
        raise Wrong(f'expected an address of this machine such as "http://127.0.0.1:8080", got "{raw}"')
    return text(raw).rstrip("/")


def choice(options: type[StrEnum] | tuple[str, ...]) -> Parser:
    names = tuple(str(option) for option in options)

    def parse(raw: Any) -> Any:
        name = text(raw)
        if name not in names:
            raise Wrong(f'does not know "{name}"; use one of {", ".join(names)}{nearest(name, names)}')
        return name if isinstance(options, tuple) else options(name)

    parse.__doc__ = "one of " + ", ".join(f"`{name}`" for name in names)
    return parse


def pairs(parser: Parser) -> Parser:
    """A table of names and values, as sorted pairs."""

    def parse(raw: Any) -> tuple[tuple[str, Any], ...]:
        if not isinstance(raw, dict):
            raise Wrong(f'expected a table such as {{ name = "value" }}, got {_shown(raw)}')
        return tuple(sorted((str(name), _within(name, parser, value)) for name, value in raw.items()))

    parse.__doc__ = f"table of names and {_kind(parser)}"
    return parse


def _within(name: str, parser: Parser, value: Any) -> Any:
    try:
        return parser(value)
    except Wrong as wrong:
        raise Wrong(f'"{name}" {wrong}') from None


def _kind(parser: Parser) -> str:
    return "whole numbers" if parser is count else "texts"


def _shown(raw: Any) -> str:
    return str(raw) if isinstance(raw, Decimal) else repr(raw)
