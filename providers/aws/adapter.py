"""AWS: on-demand capacity reservations, bought, resized, renewed, given back and found again."""

from collections.abc import Collection
from typing import Any

from broker.clock import Clock
from broker.model.gpu import satisfies
from broker.model.offer import Offer
from broker.model.place import ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation
from providers.aws import quotas, reading
from providers.aws.changes import MODIFY, Changes
from providers.aws.consumption import consumption
from providers.aws.listing import Listing
from providers.aws.look import Look
from providers.aws.quotas import Left
from providers.aws.wire import Wire
from providers.base import Capabilities, Identity, ProviderError, Quota, Sighting, Unsupported
from providers.settings import AwsSettings

MAX_COUNT = 1000


class Aws:
    """`providers.base.Provider` for all configured accounts and regions. Safe to use from several threads."""

    name = ProviderName.AWS

    def __init__(self, settings: AwsSettings, clock: Clock, wire: Wire | None = None) -> None:
        self._settings = settings
        self._wire = wire or Wire(settings, clock)
        self._listing = Listing(self._wire)
        self._changes = Changes(self._wire, self._listing)
        self._look = Look(self._listing)
        self._quotas = quotas.Quotas(self._wire)

    def capabilities(self) -> Capabilities:
        """A count is 1 to 1000. AWS states when it began to bill; after a cancel it does not state when it stopped,
        and an end that comes by itself comes within the hour after the date.
        """
        return Capabilities(
            end_settable=True,
            tags=True,
            parks_at_zero=False,
            states_billing_start=True,
            states_billing_end=False,
            max_count=MAX_COUNT,
        )

    def scopes(self) -> tuple[Scope, ...]:
        return tuple(Scope(self.name, a.name, region) for a in self._settings.accounts for region in a.regions)

    def identify(self, scope: Scope) -> Identity:
        reply = self._wire.repeat(scope, "GetCallerIdentity", "sts")
        return Identity(account=str(reply.get("Account", "")), principal=str(reply.get("Arn", "")))

    def offers(self, scope: Scope, gpu_models: Collection[str] = ()) -> tuple[Offer, ...]:
        types = self._listing.instance_types(scope)
        left = self._left(scope, types)
        found = reading.offers(self._listing.places(scope), self._listing.sold(scope), types, left)
        return tuple(offer for offer in found if _wanted(offer, gpu_models))

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        return self._listing.reservations(scope)

    def quotas(self, scope: Scope) -> tuple[Quota, ...]:
        return self._quotas.read(scope, self._listing.reservations(scope), {})

    def reserve(self, request: ReserveRequest) -> Reservation:
        return self._changes.reserve(request)

    def resize(self, request: ResizeRequest) -> Reservation:
        if not request.to_count >= 1:
            raise Unsupported(MODIFY, code="count", message="a reservation holds at least 1 instance: release it")
        return self._changes.resize(request)

    def set_end(self, request: EndRequest) -> Reservation:
        return self._changes.set_end(request)

    def release(self, request: ReleaseRequest) -> Reservation:
        return self._changes.release(request)

    def look(self, request: Request) -> Sighting:
        return self._look.for_effect(request)

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        return consumption(reservation)

    def _left(self, scope: Scope, types: list[dict[str, Any]]) -> Left:
        """Where quotas cannot be read, offers are still offers: the quota is felt when it is reached."""
        vcpus = {str(raw.get("InstanceType", "")): int(raw.get("VCpuInfo", {}).get("DefaultVCpus", 0)) for raw in types}
        try:
            found = self._quotas.read(scope, self._listing.reservations(scope), vcpus)
        except ProviderError:
            return {}
        return quotas.left(found, vcpus)


def _wanted(offer: Offer, gpu_models: Collection[str]) -> bool:
    return not gpu_models or any(satisfies(wanted, offer.shape.gpu_model) for wanted in gpu_models)
