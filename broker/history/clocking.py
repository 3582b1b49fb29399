"""Times of a million rows -> microseconds since 1970 UTC: the hour is looked up, minutes and seconds are added."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from broker.queues.parsed import Unfit
from broker.queues.times import moment
from state.encode import to_us
from state.history.words import Memo

SECOND_US = 1_000_000
_IN_HOUR = {f":{second // 60:02d}:{second % 60:02d}": second * SECOND_US for second in range(3600)}
_HOUR = timedelta(hours=1)


class Clocking:
    """The same as `broker.queues.times.moment`, faster. `zone` is for times without one; None refuses them."""

    def __init__(self, zone: ZoneInfo | None) -> None:
        self._zone = zone
        self._hours: Memo[str, int | None] = Memo(self._hour)
        self._others: Memo[str, int | None] = Memo(self._other)

    def us(self, text: str) -> int | None:
        """None where the source does not know. Raises Unfit."""
        if len(text) == 19:
            hour, rest = self._hours[text[:13]], _IN_HOUR.get(text[13:])
            if hour is not None and rest is not None:
                return hour + rest
        elif text.isdecimal() and len(text) < 11:
            return int(text) * SECOND_US or None
        return self._others[text]

    def after(self, text: str, earlier: int) -> int | None:
        """As `us`; in an hour that the clocks repeat, the second time where the first would lie before `earlier`."""
        found = self.us(text)
        if found is None or found >= earlier or self._zone is None:
            return found
        try:
            naive = datetime.fromisoformat(text)
        except ValueError:
            return found
        return to_us(naive.replace(tzinfo=self._zone, fold=1).astimezone(UTC)) if naive.tzinfo is None else found

    def _hour(self, text: str) -> int | None:
        """When that local hour begins; None where its seconds do not simply follow, or it is no hour."""
        try:
            first, last = self._at(f"{text}:00:00"), self._at(f"{text}:59:59")
        except (ValueError, Unfit):
            return None
        return to_us(first) if first and last and last - first == _HOUR - timedelta(seconds=1) else None

    def _at(self, text: str) -> datetime | None:
        """Only plain ASCII: other digits are for the slow way to refuse."""
        return moment(text, self._zone) if text.isascii() and text[10] in "T " else None

    def _other(self, text: str) -> int | None:
        try:
            found = moment(text, self._zone)
        except Unfit as unfit:
            raise Unfit(_holds(unfit.reason), unfit.value) from None
        return None if found is None else to_us(found)


def _holds(reason: str) -> str:
    """Of a row, where which of its times it is cannot be said without slowing down all others."""
    return f"holds {reason.removeprefix('is ')}" if reason.startswith("is a ") else f"holds something that {reason}"
