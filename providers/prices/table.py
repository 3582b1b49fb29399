"""The price of an instance-hour on demand: the user's own file first, then the built-in list prices.

A price has an age. From `warn_age` on it is used with a warning; beyond `max_age`, or dated in the future, it counts
as missing. A missing price is never zero: the offer keeps `price=None`, is shown, and is not bought.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path

import msgspec

from broker.model.offer import Offer, Price
from broker.model.place import ProviderName
from providers.prices.parts import Key, Line, assembled
from providers.prices.rows import Row, read_rows

ANY_REGION = "*"
"""In the user's own file: this price holds in every region that has no line of its own."""

_FILE = Path(__file__).with_name("prices.csv")
_COLUMNS = ("provider", "region", "machine_type", "usd_per_hour", "as_of")
_CLOCK_TOLERANCE = timedelta(days=1)
_DAY = timedelta(days=1)

Prices = dict[Key, Price]


class Quoted(msgspec.Struct, frozen=True):
    """`warning` is one line, "" when the price is fresh and undisputed."""

    price: Price
    warning: str = ""


class Missing(msgspec.Struct, frozen=True):
    """Why there is no price, in one line."""

    reason: str


class PriceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Prices by (provider, region, machine type). `own` wins over `listed` as long as it is not too old."""

    own: Prices = {}
    listed: Prices
    max_age: timedelta = timedelta(days=365)
    warn_age: timedelta = timedelta(days=90)

    def quote(self, provider: ProviderName, region: str, machine_type: str, now: datetime) -> Quoted | Missing:
        """The price that holds at `now`, or why none does."""
        reasons: list[str] = []
        for price in self._candidates(provider, region, machine_type):
            refusal = _refusal(price, self.max_age, now)
            if not refusal:
                return Quoted(price, "; ".join([*reasons, *_warning(price, self.warn_age, now)]))
            reasons.append(refusal)
        return Missing("; ".join(reasons) or f"no price known for {machine_type} in {provider} {region}")

    def _candidates(self, provider: ProviderName, region: str, machine_type: str) -> list[Price]:
        found = (
            self.own.get((provider, region, machine_type)),
            self.own.get((provider, ANY_REGION, machine_type)),
            self.listed.get((provider, region, machine_type)),
        )
        return [price for price in found if price is not None]


class PricedOffers(msgspec.Struct, frozen=True):
    """Offers with their prices filled in, and one line for each price that is old or missing."""

    offers: tuple[Offer, ...]
    problems: tuple[str, ...]


def load_prices(
    own_file: Path | None, *, max_age: timedelta = timedelta(days=365), warn_age: timedelta = timedelta(days=90)
) -> PriceTable:
    """The built-in table with the user's own file before it. Raises InputError for a file that cannot be used."""
    own = _read(own_file) if own_file else {}
    return PriceTable(own=own, listed=_listed(), max_age=max_age, warn_age=warn_age)


def price_offers(offers: Iterable[Offer], table: PriceTable, now: datetime) -> PricedOffers:
    """Every offer with the price that holds at `now`, None where there is none. Equal warnings are one line."""
    priced: list[Offer] = []
    problems: set[str] = set()
    warned: dict[tuple[str, str], set[str]] = defaultdict(set)
    for offer in offers:
        scope = offer.place.scope
        answer = table.quote(scope.provider, scope.region, offer.shape.machine_type, now)
        if isinstance(answer, Quoted):
            priced.append(msgspec.structs.replace(offer, price=answer.price))
            if answer.warning:
                warned[scope.region, answer.warning].add(offer.shape.machine_type)
        else:
            priced.append(msgspec.structs.replace(offer, price=None))
            problems.add(answer.reason)
    problems.update(f"{line} ({_types(types)} in {region})" for (region, line), types in warned.items())
    return PricedOffers(tuple(priced), tuple(sorted(problems)))


def _types(names: set[str]) -> str:
    """One by its name, several by their number."""
    return f"{len(names)} machine types" if len(names) > 1 else next(iter(names))


@cache
def _listed() -> Prices:
    return _read(_FILE)


def _read(path: Path) -> Prices:
    return assembled(read_rows(path, _COLUMNS, lambda row: _line(row, path)), path)


def _line(row: Row, path: Path) -> Line:
    key = (_provider(row["provider"]), _stated(row, "region"), _stated(row, "machine_type"))
    price = Price(_usd(row["usd_per_hour"]), row.get("source") or path.name, _day(row["as_of"]))
    part, quantity = row.get("part", ""), row.get("quantity", "")
    if quantity and not part:
        raise ValueError("quantity is given, and no part that it is the quantity of")
    return Line(key, price, part, _above_zero("quantity", quantity) if quantity else Decimal(1))


def _provider(text: str) -> ProviderName:
    try:
        return ProviderName(text.lower())
    except ValueError:
        raise ValueError(f"provider is {text!r}, not one of {', '.join(ProviderName)}") from None


def _stated(row: Row, column: str) -> str:
    if not row[column]:
        raise ValueError(f"{column} is empty")
    return row[column]


def _usd(text: str) -> Decimal:
    """More than nothing: a price of 0 would make every offer look like a gift."""
    return _above_zero("usd_per_hour", text)


def _above_zero(column: str, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0:
        raise ValueError(f"{column} is {text!r}, not a number above 0 such as 12.29")
    return number


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"as_of is {text!r}, not a day such as 2026-03-04") from None


def _refusal(price: Price, max_age: timedelta, now: datetime) -> str:
    age = now - price.as_of
    if age > max_age:
        return f"the price from {price.source} is {age.days} days old, more than {max_age // _DAY} (max_price_age)"
    if age < -_CLOCK_TOLERANCE:
        return f"the price from {price.source} is dated {price.as_of:%Y-%m-%d}, in the future"
    return ""


def _warning(price: Price, warn_age: timedelta, now: datetime) -> list[str]:
    age = now - price.as_of
    return [f"the price from {price.source} is {age.days} days old"] if age > warn_age else []
