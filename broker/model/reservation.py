"""Supply that we hold or watch."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from broker.model.offer import OfferKind
from broker.model.place import Place


class ReservationState(StrEnum):
    PENDING = "pending"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    CANCELLING = "cancelling"
    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def gone(self) -> bool:
        """Whether the provider will neither supply nor bill any more."""
        return self in _GONE

    @property
    def supplies(self) -> bool:
        """Whether it counts as supply, now or later; an unrecognised state does, so that nothing is bought twice."""
        return self not in _GONE and self is not ReservationState.CANCELLING


_GONE = frozenset({ReservationState.RELEASED, ReservationState.EXPIRED, ReservationState.FAILED})


class Owner(msgspec.Struct, frozen=True):
    """Whose purchase a reservation is, as read from the reservation itself.

    `lineage` names the state that bought it, `key` the action that did. The adapters put both on the resource.
    """

    lineage: str
    key: str


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the provider's own and unique within its scope; `raw_state` is the provider's word for `state`.

    `count` is what is paid for; `assured` is how many of them are there to be used where the cloud says that it is not
    all of them. `used` counts instances that consume it, at most `count`; `over` what runs beyond it. `billed_from` and
    `billed_until` are what the cloud states, None where it does not. `ends` is when the cloud ends it by itself.
    `usable_from` and `usable_until` bound its use (None: no bound). `match` holds what a consumer must have equal
    (platform, tenancy, placement group, accelerators, local SSDs ...), as sorted pairs.
    """

    id: str
    place: Place
    machine_type: str
    count: int
    state: ReservationState
    raw_state: str
    gpu_model: str | None = None
    gpus_per_instance: int = 0
    kind: OfferKind = OfferKind.ON_DEMAND
    assured: int | None = None
    used: int = 0
    over: int = 0
    associated: int = 0
    billed_from: datetime | None = None
    billed_until: datetime | None = None
    usable_from: datetime | None = None
    usable_until: datetime | None = None
    ends: datetime | None = None
    committed_count: int = 0
    committed_until: datetime | None = None
    targeted: bool = True
    interruptible: bool = False
    match: tuple[tuple[str, str], ...] = ()
    owner: Owner | None = None
    tags: tuple[tuple[str, str], ...] = ()
    usd_per_hour: Decimal | None = None
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Instances that are paid for and that the cloud itself says are not there."""
        return 0 if self.assured is None else max(self.count - self.assured, 0)

    @property
    def usable_gpus(self) -> int:
        """Without those of instances that are not there."""
        return (self.count - self.missing) * self.gpus_per_instance

    @property
    def gpus(self) -> int:
        return self.count * self.gpus_per_instance
