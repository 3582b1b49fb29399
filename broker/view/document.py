"""JSON for programs: one document with `format_version` and `kind`; money as strings, times RFC 3339 in UTC.

Within a version fields are only ever added.
"""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

FORMAT_VERSION = 1


def document(kind: str, fields: Mapping[str, object]) -> str:
    """One document, indented for the person who looks at it after all."""
    return msgspec.json.format(event(kind, fields), indent=2)


def event(kind: str, fields: Mapping[str, object]) -> str:
    """One event on one line."""
    whole = {"format_version": FORMAT_VERSION, "kind": kind, **fields}
    return msgspec.json.encode(_decimals_as_text(msgspec.to_builtins(whole, builtin_types=(Decimal,)))).decode()


def _decimals_as_text(value: object) -> object:
    """`100.00`, never `1E+2`: a reader should not need a decimal parser that knows exponents."""
    match value:
        case Decimal():
            return f"{value:f}"
        case dict():
            return {key: _decimals_as_text(each) for key, each in value.items()}
        case list() | tuple():
            return [_decimals_as_text(each) for each in value]
        case _:
            return value
