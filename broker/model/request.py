"""What is asked of a cloud: exact, serialisable, and enough to find the effect again.

A request is written to the ledger before it is sent. Whoever reads it back, in another process and another month,
can look for its effect without knowing anything else.
"""

from datetime import datetime

import msgspec

from broker.model.offer import OfferKind
from broker.model.place import Place


class ReserveRequest(msgspec.Struct, frozen=True, kw_only=True, tag="reserve"):
    """Buy `count` instances. `key` is deterministic for the decision, at most 24 characters of [a-z0-9].

    `end` is given only where the provider can end a reservation and move that end. `tags` are the user's own.
    """

    key: str
    lineage: str
    place: Place
    machine_type: str
    count: int
    kind: OfferKind = OfferKind.ON_DEMAND
    end: datetime | None = None
    targeted: bool = True
    match: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


class ResizeRequest(msgspec.Struct, frozen=True, kw_only=True, tag="resize"):
    """Set the count of a reservation that is ours from `from_count` to `to_count`. Growth is a purchase."""

    key: str
    lineage: str
    place: Place
    reservation_id: str
    from_count: int
    to_count: int

    @property
    def grows(self) -> bool:
        return self.to_count > self.from_count


class EndRequest(msgspec.Struct, frozen=True, kw_only=True, tag="set-end"):
    """Move the end of a reservation that is ours."""

    key: str
    lineage: str
    place: Place
    reservation_id: str
    from_end: datetime | None
    to_end: datetime


class ReleaseRequest(msgspec.Struct, frozen=True, kw_only=True, tag="release"):
    """Give back a reservation that is ours."""

    key: str
    lineage: str
    place: Place
    reservation_id: str


Request = ReserveRequest | ResizeRequest | EndRequest | ReleaseRequest


def buys(request: Request) -> bool:
    """Whether the request can cost money that was not spent before: sent once per decision, never blindly again."""
    return isinstance(request, ReserveRequest) or (isinstance(request, ResizeRequest) and request.grows)
