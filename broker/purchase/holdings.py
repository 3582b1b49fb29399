"""What is held: reservations that the clouds list, and purchases that they may not list yet.

An intent whose effect is not known, and a purchase that is too young or too badly seen to be missed, count as held.
So nothing is bought again for as long as it may exist.
"""

from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from broker.model.intent import Intent, IntentStatus
from broker.model.money import from_micro
from broker.model.offer import Offer
from broker.model.place import Place, Scope
from broker.model.policy import Policy
from broker.model.request import ReserveRequest, ResizeRequest, buys
from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import ScopeView, Snapshot, Trust
from providers.prices.shapes import shape_of

_NOT_YET = timedelta(minutes=1)
"""Less than any job is planned ahead."""

ReservationKey = tuple[Scope, str]


class Part(msgspec.Struct, frozen=True):
    """So many instances of a lot were bought at one time for these jobs."""

    instances: int
    jobs: tuple[str, ...]


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """Instances of one type in one place that were bought together, or that we must assume so.

    `reservation` is None while no cloud shows it. `used` instances are in use. `bought` is when the newest purchase
    for it was sent, None where we did not make it. `settled` is false while a request about it has an unknown end.
    `missing` instances of `count` are paid for and cannot be used, as the cloud itself says: they are no supply.
    `gpus_per_instance` 0 is a type that nothing describes. `pool` is what it was bought for, "" where that is lost.
    """

    id: str
    place: Place
    machine_type: str
    gpu_model: str
    gpus_per_instance: int
    count: int
    used: int
    ours: bool
    settled: bool
    match: tuple[tuple[str, str], ...]
    missing: int = 0
    interruptible: bool = False
    opens: datetime | None = None
    closes: datetime | None = None
    bought: datetime | None = None
    usd_per_hour: Decimal | None = None
    reservation: Reservation | None = None
    pool: str = ""
    tenants: tuple[tuple[str, float], ...] = ()
    jobs: tuple[str, ...] = ()
    parts: tuple["Part", ...] = ()

    @property
    def key(self) -> str:
        """Unique: two clouds may use one id."""
        return f"{self.place.scope}/{self.id}"

    @property
    def usable(self) -> int:
        """Instances that a job can start on."""
        return self.count - self.missing

    @property
    def gpus(self) -> int:
        return self.usable * self.gpus_per_instance


def holdings(snapshot: Snapshot, policy: Policy) -> tuple[Lot, ...]:
    """All supply, now or later, in a fixed order."""
    return _Holdings(snapshot, policy).lots()


class _Holdings:
    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._scopes = {view.scope: view for view in snapshot.scopes}
        self._offers = _offers(snapshot.scopes)
        self._intents = _by_reservation(snapshot)
        self._listed_keys = {
            listed.owner.key
            for view in snapshot.scopes
            for listed in view.reservations
            if listed.owner is not None and listed.owner.lineage == snapshot.lineage
        }
        self._listed_ids = {(view.scope, listed.id) for view in snapshot.scopes for listed in view.reservations}

    def lots(self) -> tuple[Lot, ...]:
        listed = [
            self._listed(view, reservation)
            for view in self._snapshot.scopes
            for reservation in view.reservations
            if reservation.state.supplies
        ]
        unseen = [self._unseen(intent) for intent in self._snapshot.intents if self._may_exist(intent)]
        return tuple(sorted([*listed, *unseen], key=lambda lot: (str(lot.place), lot.id)))

    def _listed(self, view: ScopeView, reservation: Reservation) -> Lot:
        """A growth whose outcome is not known may have happened: the larger count is supply."""
        intents = self._intents_of(view.scope, reservation)
        growing = [_may_still_grow(intent, self._visible_from(view)) for intent in intents]
        ours = reservation.owner is not None and reservation.owner.lineage == self._snapshot.lineage
        model, gpus, listed_usd = self._shape(reservation.place, reservation.machine_type)
        bought = max((intent.sent for intent in intents if _purchase(intent)), default=reservation.billed_from)
        return Lot(
            id=reservation.id,
            place=reservation.place,
            machine_type=reservation.machine_type,
            gpu_model=reservation.gpu_model or model,
            gpus_per_instance=reservation.gpus_per_instance or gpus,
            count=max([reservation.count, *growing]),
            used=min(reservation.used, reservation.count),
            ours=ours,
            settled=not any(intent.status.open for intent in intents),
            match=reservation.match,
            missing=reservation.missing if bought is None or bought < self._visible_from(view) else 0,
            interruptible=reservation.interruptible,
            opens=self._opens(reservation),
            closes=None if ours and reservation.ends else self._closes(reservation),
            bought=bought,
            usd_per_hour=reservation.usd_per_hour or _paid(intents) or listed_usd,
            reservation=reservation,
            tenants=next((intent.tenants for intent in intents if intent.tenants), ()),
            jobs=tuple(sorted({job for intent in intents for job in intent.jobs})),
            parts=tuple(_part(intent) for intent in intents if _purchase(intent)),
        )

    def _opens(self, reservation: Reservation) -> datetime | None:
        """What is scheduled and has not begun although it was to (delayed, being assessed) begins nobody knows when:
        no job can start on it now.
        """
        if reservation.state is not ReservationState.SCHEDULED:
            return reservation.usable_from
        not_yet = self._snapshot.now + _NOT_YET
        return max(reservation.usable_from or not_yet, not_yet)

    def _closes(self, reservation: Reservation) -> datetime | None:
        """Usable no longer than until here. Where an end is ours to move, it is no bound."""
        bounds = [end for end in (reservation.usable_until, reservation.ends) if end is not None]
        return min(bounds) - self._policy.purchase.drain_margin if bounds else None

    def _may_exist(self, intent: Intent) -> bool:
        """Whether a purchase that no cloud lists counts as held."""
        request = intent.request
        if not isinstance(request, ReserveRequest) or request.key in self._listed_keys:
            return False
        if intent.status.open:
            return True
        outcome = intent.outcome
        if intent.status is not IntentStatus.DONE or outcome is None:
            return False
        if (request.place.scope, outcome.reservation_id or "") in self._listed_ids:
            return False
        view = self._scopes.get(request.place.scope)
        return view is None or view.trust is not Trust.COMPLETE or outcome.at >= self._visible_from(view)

    def _visible_from(self, view: ScopeView) -> datetime:
        """What ended later than this may be missing from the listing although it happened."""
        return (view.reservations_at or self._snapshot.now) - self._policy.purchase.visibility_window

    def _unseen(self, intent: Intent) -> Lot:
        request = intent.request
        assert isinstance(request, ReserveRequest)
        model, gpus, listed_usd = self._shape(request.place, request.machine_type)
        return Lot(
            id=f"intent:{request.key}",
            place=request.place,
            machine_type=request.machine_type,
            gpu_model=model,
            gpus_per_instance=gpus,
            count=max([request.count, *self._resized(intent)]),
            used=0,
            ours=True,
            settled=False,
            match=request.match,
            bought=intent.sent,
            usd_per_hour=_paid([intent]) or listed_usd,
            pool=intent.pool,
            tenants=intent.tenants,
            jobs=intent.jobs,
            parts=(_part(intent),),
        )

    def _resized(self, intent: Intent) -> list[int]:
        """The counts that this purchase was set to later."""
        known = intent.outcome.reservation_id if intent.outcome else None
        scope = intent.request.place.scope
        return [
            other.request.to_count
            for other in self._intents.get((scope, known or ""), [])
            if isinstance(other.request, ResizeRequest)
        ]

    def _intents_of(self, scope: Scope, reservation: Reservation) -> list[Intent]:
        by_id = self._intents.get((scope, reservation.id), [])
        key = reservation.owner.key if reservation.owner else ""
        return [*by_id, *(one for one in self._intents.get((scope, f"key:{key}"), []) if one not in by_id)]

    def _shape(self, place: Place, machine_type: str) -> tuple[str, int, Decimal | None]:
        """GPU model, GPUs and price of one instance; "" and 0 for a type that nothing describes."""
        offer = self._offers.get((place.scope, machine_type))
        shape = offer.shape if offer else shape_of(place.scope.provider, machine_type)
        price = offer.price if offer else None
        return (shape.gpu_model, shape.gpus, price.usd_per_hour if price else None) if shape else ("", 0, None)


def _offers(scopes: tuple[ScopeView, ...]) -> dict[tuple[Scope, str], Offer]:
    return {(view.scope, offer.shape.machine_type): offer for view in scopes for offer in view.offers}


def _by_reservation(snapshot: Snapshot) -> dict[ReservationKey, list[Intent]]:
    """Intents by the reservation that they are about: its id, and `key:...` for a purchase."""
    found: dict[ReservationKey, list[Intent]] = {}
    for intent in snapshot.intents:
        scope = intent.request.place.scope
        for name in _names(intent):
            found.setdefault((scope, name), []).append(intent)
    return found


def _names(intent: Intent) -> set[str]:
    request = intent.request
    if not isinstance(request, ReserveRequest):
        return {request.reservation_id}
    known = intent.outcome.reservation_id if intent.outcome else None
    return {f"key:{request.key}", *([known] if known else [])}


def _purchase(intent: Intent) -> bool:
    return buys(intent.request) and (intent.status.open or intent.status is IntentStatus.DONE)


def _part(intent: Intent) -> Part:
    request = intent.request
    if isinstance(request, ResizeRequest):
        return Part(request.to_count - request.from_count, intent.jobs)
    return Part(request.count if isinstance(request, ReserveRequest) else 0, intent.jobs)


def _may_still_grow(intent: Intent, visible_from: datetime) -> int:
    """The count that a growth may have set, or set too recently to be seen; else 0."""
    request = intent.request
    if not isinstance(request, ResizeRequest) or not request.grows:
        return 0
    done = intent.status is IntentStatus.DONE and intent.outcome is not None and intent.outcome.at >= visible_from
    return request.to_count if intent.status.open or done else 0


def _paid(intents: list[Intent]) -> Decimal | None:
    """The price that was decided on, per instance, newest first."""
    known = [intent for intent in intents if intent.usd_per_hour_micro is not None and buys(intent.request)]
    newest = max(known, key=lambda intent: intent.sent, default=None)
    return from_micro(newest.usd_per_hour_micro or 0) if newest else None
