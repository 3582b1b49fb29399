"""Times and spans as queues write them -> aware UTC, seconds, or None where the source does not know."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from broker.queues.parsed import Unfit

NOT_KNOWN = frozenset({"", "unknown", "none", "n/a", "na", "nan", "nat", "null", "not_set", "invalid", "-"})
NO_LIMIT = NOT_KNOWN | {"unlimited", "infinite", "partition_limit"}
_EPOCH = re.compile(r"-?\d+(?:\.\d*)?(?:e\+?\d+)?", re.IGNORECASE)
_OFFSET = re.compile(r"([+-]\d{2})(\d{2})$")
_SPAN = re.compile(r"(?:(?P<days>\d{1,9})-)?(?P<parts>\d{1,12}(?::\d{1,12}){0,2})(?:\.\d+)?", re.ASCII)
_DOTTED = re.compile(
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?:,?[ T](?P<hour>\d{1,2}):(?P<rest>\d{2}(?::\d{2})?))?",
    re.ASCII,
)
"""As spreadsheets write it where dots are used: the day always comes first. With slashes it does not, so not those."""
_UNITS_S = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_WITH_UNITS = re.compile(r"(?:\d{1,9} ?(?:d|h|min|m|s) ?)+", re.ASCII | re.IGNORECASE)
_FULL_SPAN = re.compile(r"(?:\d{1,9}-)?\d{1,9}:\d{2}:\d{2}|\d{1,9}-\d{1,2}(?::\d{2})?", re.ASCII)
_MOST_DIGITS = 12
_SCALES = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From this magnitude on, an epoch is in nanoseconds, microseconds, milliseconds; seconds below (until year 5138)."""

_BEYOND = 2**63
"""No clock counts further, not even in nanoseconds (year 2262)."""


def moment(written: object, zone: ZoneInfo | None) -> datetime | None:
    """An epoch (s, ms, us or ns, by its size) or an ISO time; naive ones are in `zone`. Raises Unfit."""
    if isinstance(written, bool):
        raise Unfit("is not a time", written)
    if isinstance(written, int | float):
        return _epoch(written)
    if written is None:
        return None
    if not isinstance(written, str):
        raise Unfit("is not a time", written)
    text = written.strip()
    if text.lower() in NOT_KNOWN:
        return None
    return _epoch(float(text)) if _EPOCH.fullmatch(text) else _iso(text, zone)


def _epoch(value: float) -> datetime | None:
    """0 and below mean "not known" in every queue that writes epochs. Whole numbers may be of any size."""
    if not value > 0:
        return None
    if value >= _BEYOND:
        raise Unfit("is not a time", value)
    scale = next((scale for least, scale in _SCALES if value >= least), 1)
    try:
        return datetime.fromtimestamp(value / scale, UTC)
    except (OverflowError, ValueError, OSError):
        raise Unfit("is not a time", value) from None


def _iso(text: str, zone: ZoneInfo | None) -> datetime:
    try:
        found = datetime.fromisoformat(_OFFSET.sub(r"\1:\2", _dashed(text)))
    except ValueError:
        raise Unfit(
            "is not a time; write 2026-03-04 08:00, 04.03.2026 08:00 or epoch seconds (Slurm: SLURM_TIME_FORMAT=%s)",
            text,
        ) from None
    if found.tzinfo is None:
        found = _placed(found, zone)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise Unfit("is not a time", text) from None


def _dashed(text: str) -> str:
    """`4.3.2026 8:05` -> `2026-03-04T08:05`; anything else as it is."""
    match = _DOTTED.fullmatch(text)
    if not match:
        return text
    day = f"{match['year']}-{int(match['month']):02}-{int(match['day']):02}"
    return f"{day}T{int(match['hour']):02}:{match['rest']}" if match["hour"] else day


def _placed(naive: datetime, zone: ZoneInfo | None) -> datetime:
    """Of an hour that happens twice the earlier one; an hour that is skipped moves forward."""
    if zone is None:
        raise Unfit(
            'is a time without a zone; give --tz or set timezone of the [[queue]], or write "Z" or an offset',
            naive.isoformat(),
        )
    return naive.replace(tzinfo=zone, fold=0)


def limit_minutes(written: object) -> int | None:
    """A limit in whole minutes, or one of the words for none -> seconds. Raises Unfit."""
    text = str(written or "").strip()
    if text.lower() in NO_LIMIT:
        return None
    if not (text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS):
        return span(text)
    return int(text) * 60


def written_span(written: str) -> int | None:
    """`12h`, `1d 12h`, `12:00:00`, `1-12:00:00`, or one of the words for none -> seconds.

    Raises Unfit for what has no unit: `720`, and `12:00`, which is minutes to Slurm and hours to a spreadsheet.
    """
    text = written.strip()
    if _WITH_UNITS.fullmatch(text):
        parts = re.findall(r"(\d+) ?(d|h|min|m|s)", text.lower())
        return sum(int(count) * _UNITS_S[unit] for count, unit in parts) or None
    if text.lower() in NO_LIMIT or _FULL_SPAN.fullmatch(text):
        return span(text) or None
    raise Unfit("is a span without a unit", written)


def span(written: str) -> int | None:
    """`[DD-[HH:]]MM:SS`, `DD-HH`, `MM`, or one of the words for no limit -> seconds. Raises Unfit."""
    text = written.strip()
    if text.lower() in NO_LIMIT:
        return None
    match = _SPAN.fullmatch(text)
    if not match:
        raise Unfit("is not a time limit such as 1-12:00:00", written)
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"]:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    else:
        hours, minutes, seconds = ([0, *parts, 0] if len(parts) == 1 else [0] * (3 - len(parts)) + parts)[:3]
    try:
        whole = timedelta(int(match["days"] or 0), hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise Unfit("is not a time limit such as 1-12:00:00", written) from None
    return int(whole.total_seconds())
