"""How values lie in the database: times as integer microseconds since 1970 UTC, the rest as JSON text."""

from datetime import UTC, datetime, timedelta

import msgspec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    return (at - EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    return EPOCH + us * _MICROSECOND


def to_text(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
