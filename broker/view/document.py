"""JSON for programs: one document with `format_version` and `kind`; money as strings, times RFC 3339 in UTC.

Within a version fields are only ever added.
"""

from collections.abc import Mapping

import msgspec

FORMAT_VERSION = 1


def document(kind: str, fields: Mapping[str, object]) -> str:
    """One document, indented for people who look at it after all."""
    return msgspec.json.format(_encode(kind, fields), indent=2).decode()


def event(kind: str, fields: Mapping[str, object]) -> str:
    """One event on one line."""
    return _encode(kind, fields).decode()


def _encode(kind: str, fields: Mapping[str, object]) -> bytes:
    return _ENCODER.encode({"format_version": FORMAT_VERSION, "kind": kind, **fields})


_ENCODER = msgspec.json.Encoder(decimal_format="string")
