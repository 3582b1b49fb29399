"""What the contract suite needs to know of a cloud, and a bench to try its adapter on."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from broker.clock import Clock
from broker.model.place import Place
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from providers.base import Provider
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.record import Call, Effect

LINEAGE = "0123456789ab"
TAGS = (("cost", "research"), ("team", "vision lab"))


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """One cloud's fixture. Operations are named as the sandbox's face names them in its record.

    `connect` makes the adapter for the sandbox with that clock; it waits by calling `wait` with seconds, never by
    itself. It has `place`'s scope and `other`'s, another region of the same account, and gives up a call after
    `timeout_s`. `buy`, `grow`, `release` are the one call that does it; `list` is what listing reservations calls.
    `denied` and `quota` are what the cloud says to those without permission or quota, `state` is the field of a
    listed reservation that holds its state. `foreign` makes a reservation as somebody else would, with the cloud's
    own SDK, and gives the id under which the adapter lists it. `cannot` lists what `Capabilities` denies it.
    """

    place: Place
    other: Place
    machine_type: str
    connect: Callable[[Sandbox, Clock, Callable[[float], None], float], Provider]
    buy: str
    grow: str
    release: str
    list: str
    state: str
    denied: tuple[int, str]
    quota: tuple[str, int]
    """Name of the quota that `machine_type` counts against, and how much of it one instance takes."""
    shared: tuple[tuple[str, int, Place, str], ...]
    """Quotas that other purchases draw on too: name, how much of it one `machine_type` takes, and the place and type
    of another that takes of it."""
    full: str
    """What the cloud says when there is no capacity."""
    foreign: Callable[[Sandbox], str]
    cannot: frozenset[str]


class Bench(msgspec.Struct, frozen=True):
    """A cloud, a sandbox, the adapter on it, and the seconds that it would have waited."""

    cloud: Cloud
    sandbox: Sandbox
    provider: Provider
    waits: list[float]

    def reserve_request(self, key: str = "k1", count: int = 2, **rest: Any) -> ReserveRequest:
        given: dict[str, Any] = {"place": self.cloud.place, "machine_type": self.cloud.machine_type, "tags": TAGS}
        return ReserveRequest(key=key, lineage=LINEAGE, count=count, **given | rest)

    def resize_request(self, id: str, before: int, after: int, key: str = "k2") -> ResizeRequest:
        return ResizeRequest(
            key=key, lineage=LINEAGE, place=self.cloud.place, reservation_id=id, from_count=before, to_count=after
        )

    def release_request(self, id: str, key: str = "k3") -> ReleaseRequest:
        return ReleaseRequest(key=key, lineage=LINEAGE, place=self.cloud.place, reservation_id=id)

    def end_request(self, id: str, end: datetime, key: str = "k4") -> EndRequest:
        return EndRequest(
            key=key, lineage=LINEAGE, place=self.cloud.place, reservation_id=id, from_end=None, to_end=end
        )

    def fault(self, kind: FaultKind, operation: str, **rest: object) -> None:
        self.sandbox.fault(kind, operation, self.cloud.place.scope.provider, **rest)

    def calls(self, operation: str) -> list[Call]:
        return [call for call in self.sandbox.record.calls if call.operation == operation]

    def purchases(self) -> list[Effect]:
        return self.sandbox.record.purchases(self.cloud.place.scope.provider)

    def held(self) -> int:
        """Instances held in truth, whatever reads show."""
        with self.sandbox.world.lock:
            self.sandbox.market.settle()
            return sum(h.count for h in self.sandbox.market.state.holdings if h.state.live)

    def advance(self, seconds: float) -> None:
        self.sandbox.advance(timedelta(seconds=seconds))

    def listed(self) -> dict[str, Any]:
        return {r.id: r for r in self.provider.reservations(self.cloud.place.scope)}
