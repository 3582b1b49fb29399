"""Google Compute Engine: specific reservations, bought, resized, given back and found again."""

from collections.abc import Collection

from broker.model.gpu import satisfies
from broker.model.offer import Offer
from broker.model.place import ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Reservation
from providers.base import Capabilities, Identity, Quota, Sighting, Unsupported
from providers.gcp import changes, consumption, reading
from providers.gcp.listing import Listing, zones_of
from providers.gcp.look import Look
from providers.gcp.wire import Wire
from providers.settings import GcpSettings

MAX_COUNT = 1000


class Gcp:
    """`providers.base.Provider` for all configured projects and regions. Safe to use from several threads."""

    name = ProviderName.GCP

    def __init__(self, settings: GcpSettings, wire: Wire | None = None) -> None:
        self._settings = settings
        self._wire = wire or Wire(settings)
        self._listing = Listing(self._wire)
        self._changes = changes.Changes(self._wire, self._listing)
        self._look = Look(self._listing)

    def capabilities(self) -> Capabilities:
        """An end can be moved where the operator vouches for it; a count is 1 to 1000. Billing runs from creation to
        deletion; a reservation that is gone is not listed any more, so its end is not stated.
        """
        return Capabilities(
            end_settable=any(project.end_settable for project in self._settings.projects),
            tags=False,
            parks_at_zero=False,
            states_billing_start=True,
            states_billing_end=False,
            max_count=MAX_COUNT,
        )

    def scopes(self) -> tuple[Scope, ...]:
        return tuple(Scope(self.name, p.project, region) for p in self._settings.projects for region in p.regions)

    def identify(self, scope: Scope) -> Identity:
        return Identity(account=self._listing.project(scope).name, principal=self._wire.principal())

    def offers(self, scope: Scope, gpu_models: Collection[str] = ()) -> tuple[Offer, ...]:
        region = self._listing.region(scope)
        left = reading.gpus_left(self._listing.quotas(scope, region))
        settable = self._end_settable(scope)
        found = (
            reading.offer(place, raw, left, end_settable=settable)
            for place in zones_of(scope, region)
            for raw in self._listing.machine_types(place)
        )
        return tuple(offer for offer in found if _wanted(offer, gpu_models))

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        return self._listing.reservations(scope)

    def quotas(self, scope: Scope) -> tuple[Quota, ...]:
        """What this API has no quota for (H100 and later) is not among them."""
        return reading.quotas(scope, self._listing.quotas(scope, self._listing.region(scope)))

    def reserve(self, request: ReserveRequest) -> Reservation:
        """`pending` while the operation still runs, or while what it made is not visible yet."""
        _require_count(changes.INSERT, request.count)
        if not request.place.zone:
            raise Unsupported(changes.INSERT, code="zone", message="a reservation is made in a zone")
        if request.end is not None:
            self._require_ends(changes.INSERT, request.place.scope)
        return self._changes.reserve(request)

    def resize(self, request: ResizeRequest) -> Reservation:
        _require_count(changes.RESIZE, request.to_count)
        return self._changes.resize(request)

    def set_end(self, request: EndRequest) -> Reservation:
        self._require_ends(changes.UPDATE, request.place.scope)
        return self._changes.set_end(request)

    def release(self, request: ReleaseRequest) -> Reservation:
        return self._changes.release(request)

    def look(self, request: Request) -> Sighting:
        return self._look.for_effect(request)

    def consumption(self, reservation: Reservation) -> tuple[tuple[str, str], ...]:
        return consumption.consumption(reservation)

    def _end_settable(self, scope: Scope) -> bool:
        return any(project.end_settable for project in self._settings.projects if project.project == scope.account)

    def _require_ends(self, operation: str, scope: Scope) -> None:
        if not self._end_settable(scope):
            message = f"project {scope.account} is not declared to have ends that can be set (end_settable)"
            raise Unsupported(operation, code="end", message=message)


def _require_count(operation: str, count: int) -> None:
    if not 1 <= count <= MAX_COUNT:
        raise Unsupported(operation, code="count", message=f"a count is 1 to {MAX_COUNT}, not {count}")


def _wanted(offer: Offer, gpu_models: Collection[str]) -> bool:
    return not gpu_models or any(satisfies(wanted, offer.shape.gpu_model) for wanted in gpu_models)
