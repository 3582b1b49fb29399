"""A small cloud that really holds what it sold, and can be told to fail before or after it acts."""

from collections.abc import Collection
from datetime import datetime, timedelta
from decimal import Decimal
from threading import Lock
from typing import Any

import msgspec

from broker.clock import FixedClock
from broker.model.offer import Offer, Price, Shape
from broker.model.place import Place, ProviderName, Scope
from broker.model.plan import Action, Plan, Reason, Release, Reserve, Resize
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.base import (
    Capabilities,
    Identity,
    NotFound,
    ProviderError,
    Quota,
    Seen,
    Sighting,
    Unsupported,
)
from tests.state.worlds import LINEAGE, PLACE, SCOPE, T0

WHY = (Reason("demand"),)


class Cloud:
    """`before` and `after` hold one error a key; `hidden_for` delays when a purchase is listed; `takes` is how long
    each call and each look goes on.
    """

    name = ProviderName.GCP

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.held: dict[str, Reservation] = {}
        self.shown_from: dict[str, datetime] = {}
        self.before: dict[str, BaseException] = {}
        self.after: dict[str, BaseException] = {}
        self.looks_fail = False
        self.hidden_for = timedelta(0)
        self.takes = timedelta(0)
        self.hinders = 0
        self.calls: list[str] = []
        self._turn = Lock()

    def reserve(self, request: ReserveRequest) -> Reservation:
        return self._act("reserve", request, lambda: self._bought(request))

    def resize(self, request: ResizeRequest) -> Reservation:
        return self._act("resize", request, lambda: self._change(request.reservation_id, count=request.to_count))

    def set_end(self, request: EndRequest) -> Reservation:
        raise Unsupported("set_end", code="no-end")

    def release(self, request: ReleaseRequest) -> Reservation:
        return self._act("release", request, lambda: self._released(request))

    def look(self, request: Request) -> Sighting:
        self.clock.at += self.takes
        if self.looks_fail:
            raise ProviderError("list", code="500")
        if isinstance(request, ReserveRequest):
            found = [r for r in self.visible() if r.owner and r.owner.key == request.key]
            return Sighting(seen=Seen.DONE, reservation=found[0]) if found else Sighting(seen=Seen.NOT_YET)
        held = self.held[request.reservation_id]
        asked = held.state.gone if isinstance(request, ReleaseRequest) else held.count == _wanted(request)
        return Sighting(seen=Seen.DONE, reservation=held) if asked else Sighting(seen=Seen.NOT_YET)

    def visible(self) -> tuple[Reservation, ...]:
        return tuple(r for r in self.held.values() if self.shown_from.get(r.id, T0) <= self.clock.at)

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        return self.visible()

    def capabilities(self) -> Capabilities:
        return Capabilities(
            end_settable=False, tags=False, parks_at_zero=False, states_billing_start=True, states_billing_end=False
        )

    def scopes(self) -> tuple[Scope, ...]:
        return (SCOPE,)

    def identify(self, scope: Scope) -> Identity:
        return Identity("proj", "someone")

    def offers(self, scope: Scope, gpu_models: Collection[str] = ()) -> tuple[Offer, ...]:
        return ()

    def quotas(self, scope: Scope) -> tuple[Quota, ...]:
        return ()

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        return ()

    @property
    def purchases(self) -> int:
        return sum(call.startswith("reserve") for call in self.calls)

    def _act(self, what: str, request: Request, effect: Any) -> Reservation:
        with self._turn:
            self.clock.at += self.takes
            if request.key in self.before:
                raise self.before[request.key]
            self.calls.append(f"{what} {request.key}")
            done: Reservation = effect()
            if request.key in self.after:
                raise self.after[request.key]
            return done

    def _bought(self, request: ReserveRequest) -> Reservation:
        which = f"res-{request.key}"
        assert which not in self.held, "bought twice"
        self.shown_from[which] = self.clock.at + self.hidden_for
        self.held[which] = Reservation(
            id=which,
            place=request.place,
            machine_type=request.machine_type,
            count=request.count,
            state=ReservationState.ACTIVE,
            raw_state="READY",
            owner=Owner(request.lineage, request.key),
            billed_from=self.clock.at,
        )
        return self.held[which]

    def _released(self, request: ReleaseRequest) -> Reservation:
        state = ReservationState.CANCELLING if self.hinders else ReservationState.RELEASED
        self.hinders = max(self.hinders - 1, 0)
        return self._change(request.reservation_id, state=state, raw_state=state.value)

    def _change(self, which: str, **change: Any) -> Reservation:
        if which not in self.held:
            raise NotFound("get", code="404")
        self.held[which] = msgspec.structs.replace(self.held[which], **change)
        return self.held[which]


def _wanted(request: Request) -> int:
    return request.to_count if isinstance(request, ResizeRequest) else -1


def offer(place: Place = PLACE) -> Offer:
    price = Price(Decimal(10), "table", T0)
    return Offer(place=place, shape=Shape("a3-highgpu-8g", "H100", 8), price=price)


def buy(key: str, *, count: int = 1, lineage: str = LINEAGE) -> Reserve:
    request = ReserveRequest(key=key, lineage=lineage, place=PLACE, machine_type="a3-highgpu-8g", count=count)
    return Reserve(pool="h100", reasons=WHY, usd_per_hour=Decimal(10 * count), request=request, offer=offer())


def give_back(key: str, held: Reservation) -> Release:
    request = ReleaseRequest(key=key, lineage=LINEAGE, place=held.place, reservation_id=held.id)
    return Release(pool="h100", reasons=WHY, usd_per_hour=Decimal(-10), request=request, reservation=held)


def resize(key: str, held: Reservation, to_count: int) -> Resize:
    request = ResizeRequest(
        key=key,
        lineage=LINEAGE,
        place=held.place,
        reservation_id=held.id,
        from_count=held.count,
        to_count=to_count,
    )
    change = Decimal(10) * (to_count - held.count)
    return Resize(pool="h100", reasons=WHY, usd_per_hour=change, request=request, reservation=held)


def plan(*actions: Action, serial: int = 0, **given: Any) -> Plan:
    given.setdefault("id", "plan-" + "-".join(a.request.key for a in actions if hasattr(a, "request")))
    given.setdefault("lineage", LINEAGE)
    given.setdefault("expires", T0 + timedelta(days=2))
    return Plan(serial=serial, made=T0, snapshot_digest="s", policy_digest="p", actions=actions, **given)
