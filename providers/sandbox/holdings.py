"""What accounts hold in the sandbox's world, in words that no cloud owns. The truth that a ledger is compared to."""

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import Any

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool

MICROSECONDS_PER_HOUR = 3_600_000_000


class HoldingState(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"

    @property
    def live(self) -> bool:
        """Whether it takes capacity and quota."""
        return self in (HoldingState.PENDING, HoldingState.ACTIVE)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """From `at` on, `count` instances are billed at `usd_per_hour` each."""

    at: datetime
    count: int
    usd_per_hour: Decimal


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What reads show of a holding."""

    count: int
    state: HoldingState
    ends: datetime | None
    ended: datetime | None
    tags: dict[str, str]


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    """Until `until`, reads show `view`, or nothing at all where it is None."""

    until: datetime
    view: View | None


class Holding(msgspec.Struct, kw_only=True):
    """A reservation. `id` is unique within (provider, account, region); `name` is the user's where the cloud has one.

    `count` is what it is now, of which `missing` instances were never delivered; `steps` is its bill, to the instant.
    `ready` is when a pending one becomes active, or fails with `failure` (code, message) if that is set. `ends` is when
    it ends by itself, `ended` when it did end. `details` belongs to the face (JSON values).
    """

    id: str
    provider: ProviderName
    account: str
    region: str
    zone: str
    machine_type: str
    count: int
    created: datetime
    ready: datetime
    missing: int = 0
    name: str = ""
    state: HoldingState = HoldingState.PENDING
    failure: tuple[str, str] | None = None
    started: datetime | None = None
    ends: datetime | None = None
    ended: datetime | None = None
    tags: dict[str, str] = {}
    details: dict[str, Any] = {}
    steps: list[Step] = []
    stale: Stale | None = None

    @property
    def pool(self) -> Pool:
        return Pool(self.provider, self.region, self.zone, self.machine_type)

    @property
    def there(self) -> int:
        """Instances that can be started in it."""
        return self.count - self.missing

    @property
    def billed(self) -> int:
        """AWS and Azure bill what they state as reserved; Google states the count that was asked for."""
        return self.count if self.provider is ProviderName.GCP else self.there

    @property
    def view(self) -> View:
        return View(count=self.count, state=self.state, ends=self.ends, ended=self.ended, tags=dict(self.tags))


class Instance(msgspec.Struct, kw_only=True):
    """A running machine. `holding` is the id of the reservation that it consumes, None for plain on-demand."""

    id: str
    provider: ProviderName
    account: str
    region: str
    zone: str
    machine_type: str
    launched: datetime
    holding: str | None = None
    ended: datetime | None = None
    name: str = ""
    tags: dict[str, str] = {}
    details: dict[str, Any] = {}

    @property
    def pool(self) -> Pool:
        return Pool(self.provider, self.region, self.zone, self.machine_type)


class BillLine(msgspec.Struct, frozen=True, kw_only=True):
    """`account` held `count` instances from `start` to `end` (None: still does) at `usd_per_hour` each."""

    provider: ProviderName
    account: str
    region: str
    zone: str
    holding: str
    machine_type: str
    count: int
    start: datetime
    end: datetime | None
    usd_per_hour: Decimal

    def usd(self, until: datetime) -> Decimal:
        """What it came to by `until`, billed per microsecond, not rounded."""
        end = min(self.end or until, until)
        microseconds = max((end - self.start) // timedelta(microseconds=1), 0)
        return self.usd_per_hour * self.count * microseconds / MICROSECONDS_PER_HOUR


def bill_lines(holding: Holding) -> list[BillLine]:
    """The holding's bill, one line for each time during which its count was not 0."""
    return [
        BillLine(
            provider=holding.provider,
            account=holding.account,
            region=holding.region,
            zone=holding.zone,
            holding=holding.id,
            machine_type=holding.machine_type,
            count=step.count,
            start=step.at,
            end=following.at if following else None,
            usd_per_hour=step.usd_per_hour,
        )
        for step, following in pairwise((*holding.steps, None))
        if step is not None and step.count
    ]
