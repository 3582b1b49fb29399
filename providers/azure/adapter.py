"""Drives Azure's on-demand capacity reservations.

A purchase is one group and one reservation in it, both of the same name, which the request determines. Making the
group costs nothing and is safe to repeat; the reservation's PUT is the purchase and is sent once. A group that is
left without a reservation costs nothing either: the next refusal or release sweeps it up.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cached_property

import msgspec

from broker.clock import Clock
from broker.model.offer import Offer
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation, ReservationState
from providers.azure import groups, purchase, states
from providers.azure.calls import Calls, sleep
from providers.azure.consume import consumption
from providers.azure.identity import identity
from providers.azure.names import Spot, own_name, own_tags, owner_of
from providers.azure.offers import offers
from providers.azure.quotas import quotas
from providers.azure.wire import GroupBody, ReservationBody
from providers.base import (
    Ambiguous,
    Capabilities,
    Conflict,
    Identity,
    ProviderError,
    Quota,
    Seen,
    Sighting,
    Throttled,
    Unreachable,
    Unsupported,
)
from providers.settings import AzureSettings

CAPABILITIES = Capabilities(
    end_settable=False, tags=True, parks_at_zero=True, states_billing_start=False, states_billing_end=False
)


class Azure:
    """A `Provider`. `wait` takes seconds; tests that provoke retries pass one that returns at once."""

    name = ProviderName.AZURE

    def __init__(self, settings: AzureSettings, clock: Clock, *, wait: Callable[[float], None] = sleep) -> None:
        self._settings = settings
        self._clock = clock
        self._wait = wait
        self._marred: dict[Scope, tuple[Reservation, ...]] = {}

    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def scopes(self) -> tuple[Scope, ...]:
        subscriptions = self._settings.subscriptions
        return tuple(Scope(self.name, s.subscription, region) for s in subscriptions for region in s.regions)

    def identify(self, scope: Scope) -> Identity:
        return identity(self._of(scope), scope)

    def offers(self, scope: Scope, gpu_models: Collection[str] = ()) -> tuple[Offer, ...]:
        return offers(self._of(scope), scope, gpu_models)

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        found = groups.reservations(self._of(scope), scope, self._clock.now())
        self._marred[scope] = tuple(r for r in found if r.raw_state.lower() in states.ENDED_BADLY)
        return found

    def quotas(self, scope: Scope) -> tuple[Quota, ...]:
        return quotas(self._of(scope), scope)

    def reserve(self, request: ReserveRequest) -> Reservation:
        calls, scope, spot = self._of(request.place.scope), request.place.scope, self._own(request)
        self._tidy(calls, scope, request.lineage)
        there = purchase.find(calls, spot)
        if there is not None and not states.is_husk(there):
            return self._same(there, spot, request)
        tags = own_tags(request.lineage, request.key, request.tags)
        groups.make(calls, spot, scope.region, request.place.zone, tags)
        try:
            made = purchase.buy(calls, spot, request)
            bought = self._seen(purchase.with_view(calls, spot, made), spot, scope)
            if bought.state is ReservationState.FAILED:
                raise states.failure(purchase.PUT, purchase.find(calls, spot) or ReservationBody())
        except ProviderError as error:
            return self._after_refusal(error, spot, request)
        return bought

    def resize(self, request: ResizeRequest) -> Reservation:
        calls, scope = self._of(request.place.scope), request.place.scope
        spot = Spot.from_id(request.reservation_id)
        self._tidy(calls, scope, request.lineage)
        if not request.grows:
            return self._seen(purchase.shrink(calls, spot, request.to_count), spot, scope)
        try:
            return self._seen(purchase.set_count(calls, spot, request.to_count), spot, scope)
        except ProviderError as error:
            left = purchase.set_back(calls, spot, request.from_count) if _answered_no(error) else None
            if left is None or states.ended_badly(left) or states.held(left) != request.to_count:
                raise
            return self._seen(left, spot, scope)

    def set_end(self, request: EndRequest) -> Reservation:
        raise Unsupported(purchase.PATCH, message=f"Azure gives {request.reservation_id} no end")

    def release(self, request: ReleaseRequest) -> Reservation:
        calls, spot = self._of(request.place.scope), Spot.from_id(request.reservation_id)
        body = purchase.find(calls, spot)
        if body is not None:
            self._check_owner(body, spot, request.lineage)
            left = None if purchase.give_back(calls, spot, body) else purchase.find(calls, spot)
            if left is not None:
                return _with_state(self._seen(left, spot, request.place.scope), ReservationState.CANCELLING)
        if spot.alone:
            groups.drop(calls, spot)
        self._tidy(calls, request.place.scope, request.lineage)
        groups.sweep(calls, request.place.scope, request.lineage)
        return self._gone(body, spot, request.place)

    def look(self, request: Request) -> Sighting:
        if isinstance(request, ReserveRequest):
            return self._look_for_purchase(request)
        if isinstance(request, EndRequest):
            raise Unsupported(purchase.PATCH, message="Azure's reservations have no end")
        spot = Spot.from_id(request.reservation_id)
        body = purchase.find(self._of(request.place.scope), spot)
        if isinstance(request, ReleaseRequest):
            return self._look_for_release(body, spot, request)
        return self._look_for_count(body, spot, request)

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        return consumption(reservation)

    # -- the parts of buying

    def _same(self, body: ReservationBody, spot: Spot, request: ReserveRequest) -> Reservation:
        """The name is taken: by this very purchase, or a PUT would change what is there."""
        asked = (request.machine_type, request.count, request.place.zone)
        if (body.sku.name, body.sku.capacity, (body.zones or [""])[0]) != asked:
            raise Conflict(purchase.PUT, message=f"{spot.id} exists already with other properties")
        return self._seen(body, spot, request.place.scope)

    def _after_refusal(self, error: ProviderError, spot: Spot, request: ReserveRequest) -> Reservation:
        """Clear away what a refused creation leaves, once it is certain that it holds nothing."""
        if not _answered_no(error):
            raise error
        try:
            held = self._clear(self._of(request.place.scope), spot)
        except ProviderError as trouble:
            error.add_note(f"and what it left could not be cleared away: {trouble}")
            raise error from trouble
        if held is None:
            raise error
        return self._seen(held, spot, request.place.scope)

    def _clear(self, calls: Calls, spot: Spot) -> ReservationBody | None:
        """Delete a failed creation and its group; what holds something is left alone and returned."""
        left = purchase.find(calls, spot)
        if left is not None and not states.is_husk(left):
            return left
        if left is None or purchase.delete(calls, spot):
            groups.drop(calls, spot)
        return None

    # -- the parts of giving back

    def _check_owner(self, body: ReservationBody, spot: Spot, lineage: str) -> None:
        owner = owner_of(spot.name, body.tags or {})
        if owner is None or owner.lineage != lineage:
            raise Conflict(purchase.DELETE, message=f"{spot.id} is not this state's: it is left alone")

    def _tidy(self, calls: Calls, scope: Scope, lineage: str) -> None:
        """Put right what refusals left of this state's, as the last listing showed it: nothing is bought by that."""
        for left in self._marred.pop(scope, ()):
            if left.owner and left.owner.lineage == lineage:
                spot = Spot.from_id(left.id)
                with suppress(ProviderError):
                    if self._clear(calls, spot) is not None:
                        purchase.set_back(calls, spot, left.count)

    def _gone(self, body: ReservationBody | None, spot: Spot, place: Place) -> Reservation:
        last = self._seen(body or ReservationBody(), spot, place.scope)
        return _with_state(_at(last, place, count=0), ReservationState.RELEASED)

    # -- the parts of looking

    def _look_for_purchase(self, request: ReserveRequest) -> Sighting:
        calls, scope, spot = self._of(request.place.scope), request.place.scope, self._own(request)
        body = purchase.find(calls, spot)
        if body is None:
            spot = self._elsewhere(calls, scope, spot)
            body = purchase.find(calls, spot)
        if body is None:
            return Sighting(seen=Seen.NOT_YET)
        if states.is_husk(body):
            return Sighting(seen=Seen.REFUSED, error=states.failure(purchase.GET, body))
        return Sighting(seen=Seen.DONE, reservation=self._seen(body, spot, scope))

    def _elsewhere(self, calls: Calls, scope: Scope, spot: Spot) -> Spot:
        """The same purchase in another resource group: the configured one may have changed since."""
        named = (member.spot for member in groups.every(calls, scope) if member.spot.group.lower() == spot.group)
        return next(named, spot)

    def _look_for_release(self, body: ReservationBody | None, spot: Spot, request: ReleaseRequest) -> Sighting:
        if body is not None:
            return Sighting(seen=Seen.NOT_YET, reservation=self._seen(body, spot, request.place.scope))
        return Sighting(seen=Seen.DONE, reservation=self._gone(None, spot, request.place))

    def _look_for_count(self, body: ReservationBody | None, spot: Spot, request: ResizeRequest) -> Sighting:
        if body is None:
            return Sighting(seen=Seen.NOT_YET)
        if states.provisioning(body) == "updating":
            raise Ambiguous(purchase.GET, message=f"Azure is still changing {spot.id}")
        if states.held(body) == request.to_count:
            return Sighting(seen=Seen.DONE, reservation=self._seen(body, spot, request.place.scope))
        if states.ended_badly(body):
            held = self._seen(body, spot, request.place.scope)
            return Sighting(seen=Seen.REFUSED, error=states.failure(purchase.GET, body), reservation=held)
        return Sighting(seen=Seen.NOT_YET)

    # -- helpers

    @cached_property
    def _subscriptions(self) -> dict[str, Calls]:
        settings = self._settings
        return {s.subscription: Calls(settings, s.subscription, self._wait) for s in settings.subscriptions}

    def _of(self, scope: Scope) -> Calls:
        try:
            return self._subscriptions[scope.account]
        except KeyError:
            raise Unsupported("subscriptions", message=f"{scope.account} is not configured") from None

    def _own(self, request: ReserveRequest) -> Spot:
        account, name = request.place.scope.account, own_name(request.lineage, request.key)
        homes = {s.subscription: s.resource_group for s in self._settings.subscriptions}
        return Spot(homes[account], name, name)

    def _seen(self, body: ReservationBody, spot: Spot, scope: Scope) -> Reservation:
        return states.reservation(body, spot, scope, GroupBody(), self._clock.now())


def _answered_no(error: ProviderError) -> bool:
    """Whether the cloud read the request and refused it, so that it has left nothing or what can be cleared."""
    return not error.may_have_acted and not isinstance(error, Throttled | Unreachable)


def _with_state(reservation: Reservation, state: ReservationState) -> Reservation:
    return msgspec.structs.replace(reservation, state=state)


def _at(reservation: Reservation, place: Place, *, count: int) -> Reservation:
    return msgspec.structs.replace(reservation, place=place, count=count, used=0, over=0)
