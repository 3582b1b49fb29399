"""The market's terms: how it refuses, what a script may set, and all of it as saved."""

from datetime import timedelta
from decimal import Decimal

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.holdings import Holding, Instance
from providers.sandbox.supply import PoolRule


class Refusal(Exception):
    """The market says no; the face says it in its cloud's words."""


class NotSold(Refusal):
    """There is no such machine type there, or it cannot be reserved."""


class OutOfCapacity(Refusal):
    """All of it is taken now."""


class OverQuota(Refusal):
    """The account's limit is reached: `quota` is its name, `limit` and `used` are in its units."""

    def __init__(self, quota: str, limit: int, used: int) -> None:
        super().__init__(f"{quota}: {used} of {limit} in use")
        self.quota, self.limit, self.used = quota, limit, used


class NoSuchHolding(Refusal):
    """There is none with that id in that account and region, or reads do not show it yet."""


class WrongState(Refusal):
    """It is gone, or something uses it."""


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault does to the effects of the call in hand: hidden from reads, failing later, or delivered in part."""

    hidden: timedelta | None = None
    fails_after: timedelta = timedelta(0)
    failure: tuple[str, str] | None = None
    delivers: int | None = None


class QuotaRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit that replaces the default; None matches any account or region."""

    provider: ProviderName
    quota: str
    limit: int
    account: str | None = None
    region: str | None = None


class PriceRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is billed from now on for steps that begin after it was set; bills already running keep their price."""

    provider: ProviderName
    region: str
    machine_type: str
    usd_per_hour: Decimal


class MarketState(msgspec.Struct, kw_only=True):
    """All of it, as saved."""

    seed: int = 0
    busy: float = 0.0
    made: int = 0
    capacity: list[PoolRule] = []
    quotas: list[QuotaRule] = []
    prices: list[PriceRule] = []
    provisioning_s: dict[ProviderName, float] = {}
    end_lag_s: dict[ProviderName, float] = {}
    holdings: list[Holding] = []
    instances: list[Instance] = []
