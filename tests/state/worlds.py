"""Small values that the tests of the state share."""

from datetime import UTC, datetime, timedelta
from typing import Any

from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReserveRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import ScopeView, Trust

T0 = datetime(2026, 3, 4, 14, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SCOPE = Scope(ProviderName.GCP, "proj", "us-central1")
PLACE = Place(SCOPE, "us-central1-a")
LINEAGE = "0123456789ab"
USD_10 = 10_000_000


def reserve(key: str = "k1", lineage: str = LINEAGE, count: int = 2) -> ReserveRequest:
    return ReserveRequest(key=key, lineage=lineage, place=PLACE, machine_type="a3-highgpu-8g", count=count)


def intent(key: str = "k1", *, sent: datetime = T0, **given: Any) -> Intent:
    given.setdefault("request", reserve(key))
    given.setdefault("usd_per_hour_micro", USD_10)
    return Intent(key=key, plan_id="p1", run_id="r1", sent=sent, price_source="test", offer_id="offer-1", **given)


def held(which: str = "res-1", *, key: str = "k1", lineage: str = LINEAGE, **given: Any) -> Reservation:
    given.setdefault("state", ReservationState.ACTIVE)
    given.setdefault("count", 2)
    given.setdefault("owner", Owner(lineage, key))
    return Reservation(id=which, place=PLACE, machine_type="a3-highgpu-8g", raw_state="READY", **given)


def done(at: datetime, which: str = "res-1") -> Outcome:
    return Outcome(status=IntentStatus.DONE, at=at, reservation_id=which)


def view(*reservations: Reservation, at: datetime, trust: Trust = Trust.COMPLETE) -> ScopeView:
    return ScopeView(scope=SCOPE, trust=trust, reservations_at=at, reservations=reservations)
