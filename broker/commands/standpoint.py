"""What the state file alone can tell: where we stand, one reservation, the cost report. No cloud is asked."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from broker.commands.workplace import clock_of
from broker.config import Config, load, name_of
from broker.errors import UsageError
from broker.model.reservation import Reservation
from broker.standing import Held, Known, Standing, standing

if TYPE_CHECKING:
    from broker.course import Moment
    from broker.pieces import Ledger
    from broker.report import Report
    from state.entries import Entry
    from state.store import Store

_AGO = re.compile(r"(\d+)([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class Standpoint:
    """A state that is only read, at one instant."""

    def __init__(self, config: Config, store: "Store", now: datetime) -> None:
        self._config = config
        self._store = store
        self._now = now

    def standing(self, *, only_unused: bool = False) -> Standing:
        found = standing(self._known())
        if not only_unused:
            return found
        return msgspec.structs.replace(found, held=tuple(each for each in found.held if not each.reservation.used))

    def held(self, reservation_id: str) -> Held:
        """Raises UsageError for an id that is not ours."""
        found = self.standing()
        for each in found.held:
            if each.reservation.id == reservation_id:
                return each
        raise UsageError(_unknown(reservation_id, found), next_step=_ids(found))

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        """What a job's instance must set, in the cloud's own words."""
        from providers.connect import connect

        clock = clock_of(self._config)
        cloud = next(each for each in self._config.providers if name_of(each) is reservation.place.scope.provider)
        return connect(cloud, clock).consumption(reservation)

    def report(self, *, since: str, by: str) -> "Report":
        """Raises UsageError for a time that cannot be read, or has not come."""
        from broker.report import By, report

        start = self._past(since)
        hold = self._config.policy.purchase.minimum_hold
        return report(self._ledger(start), since=start, until=self._now, by=By(by), minimum_hold=hold)

    def course(self, *, since: str) -> "tuple[Moment, ...]":
        """How the report's figures came about over time."""
        from broker.course import course

        start = self._past(since)
        return course(self._ledger(start), start, self._now)

    def _past(self, since: str) -> datetime:
        start = moment(since, self._now)
        if start > self._now:
            raise UsageError(f"--since {since} has not come yet", next_step="Give a time that is over, or 7d")
        return start

    def _ledger(self, start: datetime) -> "Ledger":
        from broker.pieces import Ledger

        return Ledger(
            counts=self._store.count_steps(start),
            uses=self._store.use_steps(start),
            intents=self._store.intents(),
            reservations=[each for each in self._store.reservations() if self._ours(each)],
        )

    def entries(self, since: str | None) -> "tuple[Entry, ...]":
        return self._store.entries(since=moment(since, self._now) if since else None)

    def entries_about(self, which: str) -> "tuple[Entry, ...]":
        """By reservation id or by action key. Raises UsageError where the ledger has neither."""
        found = self._store.entries(reservation_id=which) or self._store.entries(key=which)
        if not found:
            raise UsageError(f"the ledger has no reservation or action {which}", next_step="See: broker state history")
        return found

    def _known(self) -> Known:
        store = self._store
        reservations = store.reservations()
        return Known(
            now=self._now,
            lineage=store.lineage,
            serial=store.serial,
            heartbeat=store.heartbeat(),
            reservations=[each for each in reservations if self._ours(each)],
            others=[each for each in reservations if not self._ours(each)],
            intents=store.live_intents(),
            idle=store.idle(),
            quiet_until=store.quiet_until,
        )

    def _ours(self, reservation: Reservation) -> bool:
        return reservation.owner is not None and reservation.owner.lineage == self._store.lineage


@contextmanager
def opened(path: Path, *, flags: Mapping[str, str]) -> Iterator[Standpoint]:
    from state.store import Store

    config = load(path, flags=flags, env=os.environ)
    with Store.open(config.state, read_only=True) as store:
        yield Standpoint(config, store, clock_of(config).now())


def moment(text: str, now: datetime) -> datetime:
    """`7d`, `24h`: so long before `now`; else an RFC 3339 time with its zone. Raises UsageError."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise UsageError(f'cannot read the time "{text}"', next_step="Write 7d, 24h, or 2026-03-01T00:00:00Z")
    return at.astimezone(UTC)


def _ids(found: Standing) -> str:
    listed = bool(found.held or found.others)
    return "See the ids: broker status" if listed else "Nothing is held; what was held: broker state history"


def _unknown(reservation_id: str, found: Standing) -> str:
    if any(each.id == reservation_id for each in found.others):
        return f"{reservation_id} is not this state's: another buyer owns it, and it is never touched"
    return f"this state holds no reservation {reservation_id}"
