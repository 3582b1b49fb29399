"""One way to get capacity."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.model.place import Place


class OfferKind(StrEnum):
    """How capacity is bought. Other kinds (prepaid blocks, future-dated) join here, each with its own commitment."""

    ON_DEMAND = "on-demand"


class Shape(msgspec.Struct, frozen=True):
    """A machine type: what one instance of it holds. `gpu_model` is a name of `broker.model.gpu`."""

    machine_type: str
    gpu_model: str
    gpus: int
    vcpus: int = 0
    memory_gib: Decimal = Decimal(0)


class Price(msgspec.Struct, frozen=True):
    """US dollars per instance-hour, with where the figure comes from and the day on which it held.

    `parts` are what it is the sum of (name, US dollars per instance-hour), where host and GPUs are priced apart.
    """

    usd_per_hour: Decimal
    source: str
    as_of: datetime
    parts: tuple[tuple[str, Decimal], ...] = ()


class Allowance(msgspec.Struct, frozen=True):
    """What one quota still allows, in its own unit, and how much of that an instance takes.

    `quota` is the quota's name with its extent: whatever has it in common shares what is left, across machine types,
    zones and, for a quota of a whole account, regions.
    """

    quota: str
    left: int
    per_instance: int


def instances_left(allowances: Iterable[Allowance]) -> int | None:
    """By the tightest; None where no quota is known."""
    return min((max(one.left, 0) // one.per_instance for one in allowances), default=None)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """`price` None means unknown: such an offer is shown and never bought.

    `excluded` holds the rule that removed the offer, empty when it may be bought. `quota_left` is in instances of this
    offer alone, None where unknown; `allowances` are the quotas that it follows from. `end_settable` says whether a
    reservation made from it can be given an end that moves.
    """

    place: Place
    shape: Shape
    kind: OfferKind = OfferKind.ON_DEMAND
    price: Price | None = None
    max_count: int = 1000
    quota_left: int | None = None
    allowances: tuple[Allowance, ...] = ()
    end_settable: bool = False
    excluded: str = ""

    @property
    def id(self) -> str:
        return offer_id(self.place, self.shape.machine_type, self.kind)


def offer_id(place: Place, machine_type: str, kind: OfferKind) -> str:
    """What an offer is known by: the same for what is bought new there and what grows there."""
    return f"{place.scope}/{place.zone or 'regional'}/{machine_type}/{kind}"
