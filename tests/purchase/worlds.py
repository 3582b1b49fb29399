"""Small worlds to decide in: one pool of H100s on two clouds, prices that are easy to reckon with."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.job import Job, JobState
from broker.model.offer import Allowance, Offer, Price, Shape
from broker.model.place import Place, ProviderName, Scope
from broker.model.plan import Action, Plan, Release, Reserve, Resize
from broker.model.policy import PlaceRule, Policy, Pool
from broker.model.request import ReserveRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import Idle, ScopeView, Snapshot, SourceView, Trust

NOW = datetime(2026, 3, 4, 14, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LINEAGE = "0123456789ab"

AWS = Scope(ProviderName.AWS, "main", "us-east-1")
GCP = Scope(ProviderName.GCP, "proj", "us-central1")
AZURE = Scope(ProviderName.AZURE, "sub", "eastus")
EAST_A = Place(AWS, "us-east-1a", "use1-az1")
EAST_B = Place(AWS, "us-east-1b", "use1-az2")
CENTRAL = Place(GCP, "us-central1-a")
EASTUS = Place(AZURE, "")

BIG = Shape("p5.48xlarge", "h100", 8, 192, Decimal(2048))
ONE = Shape("p5.4xlarge", "h100", 1, 16, Decimal(256))
GCP_BIG = Shape("a3-highgpu-8g", "h100", 8, 208, Decimal(1872))


def price(usd: str, *, age_days: int = 10) -> Price:
    return Price(Decimal(usd), "a list", NOW - timedelta(days=age_days))


def offer(place: Place = EAST_A, shape: Shape = BIG, usd: str | None = "40", **given: Any) -> Offer:
    """`quota_left` instances by a quota of that machine type alone, unless `allowances` say more."""
    given.setdefault("end_settable", place.scope.provider is ProviderName.AWS)
    left = given.get("quota_left")
    own = () if left is None else (Allowance(f"{place.scope}/{shape.machine_type}", left, 1),)
    given.setdefault("allowances", own)
    return Offer(place=place, shape=shape, price=None if usd is None else price(usd), **given)


DEAR = offer(CENTRAL, GCP_BIG, "88")


def job(name: str = "j1", gpus: int = 8, **given: Any) -> Job:
    given.setdefault("tenant", "vision")
    given.setdefault("state", JobState.PENDING)
    given.setdefault("submit", NOW - HOUR)
    given.setdefault("gpu_model", "h100")
    return Job(id=name, gpus=gpus, **given)


def held(name: str = "cr-1", count: int = 1, place: Place = EAST_A, shape: Shape = BIG, **given: Any) -> Reservation:
    given.setdefault("state", ReservationState.ACTIVE)
    given.setdefault("raw_state", "active")
    given.setdefault("owner", Owner(LINEAGE, f"key{name}"))
    given.setdefault("usd_per_hour", Decimal(40))
    given.setdefault("billed_from", NOW - 48 * HOUR)
    return Reservation(
        id=name,
        place=place,
        machine_type=shape.machine_type,
        gpu_model=shape.gpu_model,
        gpus_per_instance=shape.gpus,
        count=count,
        **given,
    )


def intent(key: str = "k1", count: int = 1, place: Place = EAST_A, **given: Any) -> Intent:
    """A purchase whose outcome is `status` (open unless given)."""
    status = given.pop("status", IntentStatus.UNKNOWN)
    sent = given.pop("sent", NOW - 10 * MINUTE)
    reservation_id = given.pop("reservation_id", None)
    request = given.pop("request", None) or ReserveRequest(
        key=key, lineage=LINEAGE, place=place, machine_type=BIG.machine_type, count=count
    )
    outcome = None if status is IntentStatus.PLANNED else Outcome(status=status, at=sent, reservation_id=reservation_id)
    given.setdefault("usd_per_hour_micro", 40_000_000)
    return Intent(key=key, plan_id="p", run_id="r", request=request, sent=sent, outcome=outcome, **given)


def idle(name: str, since: timedelta, scope: Scope = AWS, used: int = 0) -> Idle:
    return Idle(name, scope, NOW - since, used)


def source(*jobs: Job, name: str = "slurm", trust: Trust = Trust.COMPLETE, **given: Any) -> SourceView:
    given.setdefault("as_of", NOW)
    return SourceView(source=name, trust=trust, jobs=jobs, rows=len(jobs), kept=len(jobs), **given)


def scope_view(scope: Scope = AWS, *, trust: Trust = Trust.COMPLETE, **given: Any) -> ScopeView:
    return ScopeView(scope=scope, trust=trust, reservations_at=NOW, **given)


def world(
    *jobs: Job, offers: tuple[Offer, ...] = (), reservations: tuple[Reservation, ...] = (), **given: Any
) -> Snapshot:
    """A snapshot whose scopes are those of its offers and reservations."""
    places = [one.place for one in offers] + [one.place for one in reservations]
    scopes = sorted({place.scope for place in places} | {AWS})
    trust: dict[Scope, Trust] = given.pop("trust", {})
    given.setdefault("sources", (source(*jobs),))
    given.setdefault(
        "scopes",
        tuple(
            scope_view(
                scope,
                trust=trust.get(scope, Trust.COMPLETE),
                offers=tuple(one for one in offers if one.place.scope == scope),
                reservations=tuple(one for one in reservations if one.place.scope == scope),
            )
            for scope in scopes
        ),
    )
    return Snapshot(now=NOW, lineage=LINEAGE, serial=7, **given)


H100 = Pool(name="h100", gpu_models=("h100",), places=tuple(PlaceRule(provider=name) for name in ProviderName))


def policy(*pools: Pool, purchase: dict[str, Any] | None = None, **given: Any) -> Policy:
    base = Policy(pools=pools or (H100,), **given)
    return msgspec.structs.replace(base, purchase=msgspec.structs.replace(base.purchase, **(purchase or {})))


def bought(plan: Plan) -> list[tuple[str, int]]:
    """(zone, instances) of every purchase."""
    return [
        (action.request.place.zone, added(action))
        for action in plan.actions
        if isinstance(action, Reserve | Resize) and added(action) > 0
    ]


def why_not(plan: Plan, offer_id: str) -> str:
    return next(entry.reason.text for entry in plan.not_taken if entry.offer_id == offer_id)


def added(action: Action) -> int:
    if isinstance(action, Reserve):
        return action.request.count
    return action.request.to_count - action.request.from_count if isinstance(action, Resize) else 0


def given_back(plan: Plan) -> list[tuple[str, int]]:
    """(reservation, instances left) of every release and shrink."""
    released = [(action.request.reservation_id, 0) for action in plan.actions if isinstance(action, Release)]
    shrunk = [
        (action.request.reservation_id, action.request.to_count)
        for action in plan.actions
        if isinstance(action, Resize) and not action.request.grows
    ]
    return sorted(released + shrunk)
