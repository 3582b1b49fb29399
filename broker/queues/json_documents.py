"""One JSON document, or several one behind the other, as a command that was run for each of them prints."""

import json
import re
from typing import Any, NamedTuple

import msgspec

_BLANK = re.compile(r"\s*")


class Documents(NamedTuple):
    """`broken_at`: the character from which on the text is no whole document; None where all of it was read."""

    found: list[Any]
    broken_at: int | None = None


def documents(text: str) -> Documents:
    """Never raises: what is cut off or too deep ends it."""
    try:
        return Documents([msgspec.json.decode(text)])
    except (msgspec.DecodeError, RecursionError):
        return _several(text)


def _several(text: str) -> Documents:
    decoder, found, at = json.JSONDecoder(), list[Any](), _past_blank(text, 0)
    while at < len(text):
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return Documents(found, at)
        found.append(document)
        at = _past_blank(text, end)
    return Documents(found)


def _past_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
