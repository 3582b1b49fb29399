"""Inputs with something wrong in them: bytes changed, cut, doubled; and the same within the structure of the text."""

import json
import random
from collections.abc import Callable
from typing import Any

_WORDS = (
    b"", b"0", b"-1", b"1e999", b"99999999999999999999999", b"NaN", b"null", b"true", b"{}", b"[]", b'"', b"\\", b"\n",
    b"\r\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"|", b",", b";", b"=", b"[", b"]", b"{", b"}", b"Unknown",
    b"gres/gpu=", b"gpu:h100:8", b"1-999999999", b"9999-12-31T23:59:59", b"10000-01-01T00:00:00", b"<html>", b"...",
    b"UNLIMITED", "\u00b2".encode(), "\u0664".encode(), b"9" * 5000, b"(" * 500, b"1-2-3:4:5", b"n[0-9999][0-9999]",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 2**70, 10**400, 1e308, "", "x", "\0", "1e5", [], {}, [[]], {"set": True}, "9" * 30,
    [None], ["x"], {"set": True, "infinite": False, "number": "soon"}, {"set": False}, {"infinite": True}, "gres/gpu:",
    "1-5,", -0.0, "n[0-9999][0-9999]", "0-199999", "\u00b2",
)  # fmt: skip


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """One to four changes, of its structure where it has one."""
    for _ in range(dice.randint(1, 4)):
        raw = dice.choice(_CHANGES)(raw, dice)
    return raw


def _flip(raw: bytes, dice: random.Random) -> bytes:
    if not raw:
        return raw
    at = dice.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << dice.randrange(8))]) + raw[at + 1 :]


def _cut(raw: bytes, dice: random.Random) -> bytes:
    return raw[: dice.randint(0, len(raw))]


def _remove(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(raw))
    return raw[:at] + raw[at + dice.randint(1, 40) :]


def _double(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(raw))
    return raw[:at] + raw[at : at + dice.randint(1, 200)] + raw[at:]


def _insert(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(raw))
    return raw[:at] + dice.choice(_WORDS) + raw[at:]


def _replace_token(raw: bytes, dice: random.Random) -> bytes:
    """A cell, value or word between two marks becomes another."""
    mark = dice.choice((b"|", b",", b" ", b":", b"=", b"\n", b'"'))
    parts = raw.split(mark)
    parts[dice.randrange(len(parts))] = dice.choice(_WORDS)
    return mark.join(parts)


def _lines(raw: bytes, dice: random.Random) -> bytes:
    """Lines change places, come twice or go missing."""
    lines = raw.split(b"\n")
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    if dice.random() < 0.5:
        lines[first], lines[second] = lines[second], lines[first]
    elif dice.random() < 0.5:
        lines.insert(first, lines[second])
    else:
        del lines[first]
    return b"\n".join(lines)


def _tree(raw: bytes, dice: random.Random) -> bytes:
    """One place of a JSON document gets another value, another name, or is taken out."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return _flip(raw, dice)
    places = list(_places(document))
    if not places:
        return raw
    holder, key = dice.choice(places)
    chance = dice.random()
    if chance < 0.7:
        holder[key] = dice.choice(_VALUES)
    elif chance < 0.85 or isinstance(holder, list):
        del holder[key]
    else:
        holder[f"{key}_"] = holder.pop(key)
    return json.dumps(document, indent=dice.choice((None, 1))).encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    stack = [value] if isinstance(value, dict | list) else []
    while stack:
        holder = stack.pop()
        inner = list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
        found += [(holder, key) for key, _ in inner]
        stack += [each for _, each in inner if isinstance(each, dict | list)]
    return found


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _cut, _remove, _double, _insert, _insert, _replace_token, _replace_token, _lines, _tree, _tree, _tree,
)  # fmt: skip
