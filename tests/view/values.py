"""Values to render: the same every time."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec

from broker.commands.history import Imports
from broker.history.importing import Imported
from broker.history.summary import Counts, Gap, Summary, TenantCounts
from broker.model.intent import Intent, IntentStatus, Outcome
from broker.model.ledger import CountStep, Heartbeat, UseStep
from broker.model.offer import Offer, Price, Shape
from broker.model.place import Place, ProviderName, Scope
from broker.model.plan import Extend, Keep, NotTaken, Plan, Reason, Refusal, Release, Reserve, Resize, Shortfall
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import Idle
from broker.outlook import PlanReport, outlook
from broker.pieces import Ledger
from broker.report import By, Report, report
from broker.standing import Known, Standing, standing
from broker.view.plan import Observed

NOW = datetime(2026, 3, 4, 14, tzinfo=UTC)
LINEAGE = "0123456789ab"
AWS = Place(Scope(ProviderName.AWS, "main", "us-east-1"), "us-east-1b", "use1-az2")
GCP = Place(Scope(ProviderName.GCP, "research", "europe-west4"), "europe-west4-b")
KEY = "9f86d081884c7d659a2feaa0"


def reservation(
    place: Place, machine_type: str, count: int, *, ends: datetime | None = None, used: int = 0
) -> Reservation:
    gcp = place.scope.provider is ProviderName.GCP
    return Reservation(
        id=f"europe-west4-b/broker-{LINEAGE}-{KEY}" if gcp else "cr-0123456789abcdef0",
        place=place,
        machine_type=machine_type,
        count=count,
        used=used,
        state=ReservationState.ACTIVE,
        raw_state="READY" if gcp else "active",
        gpu_model="h100",
        gpus_per_instance=8,
        ends=ends,
        owner=Owner(LINEAGE, KEY if gcp else "k2"),
    )


ON_AWS = reservation(AWS, "p5.48xlarge", 4, ends=NOW + timedelta(hours=3), used=4)
ON_GCP = reservation(GCP, "a3-highgpu-8g", 1)
PRICE = Price(Decimal("55.04"), "list", NOW)
OFFER = Offer(place=AWS, shape=Shape("p5.48xlarge", "h100", 8), price=PRICE, end_settable=True)


def plan() -> Plan:
    """One of each kind of action, a refusal and a shortfall."""
    reserve = ReserveRequest(key=KEY, lineage=LINEAGE, place=AWS, machine_type="p5.48xlarge", count=3)
    resize = ResizeRequest(key="k3", lineage=LINEAGE, place=AWS, reservation_id=ON_AWS.id, from_count=4, to_count=3)
    end = EndRequest(
        key="k4", lineage=LINEAGE, place=AWS, reservation_id=ON_AWS.id, from_end=None, to_end=NOW + timedelta(days=1)
    )
    release = ReleaseRequest(key="k5", lineage=LINEAGE, place=GCP, reservation_id=ON_GCP.id)
    short = Reason("pool h100 is 22 GPUs short of demand: needs 54, holds 32")
    actions = (
        Reserve(
            pool="h100",
            reasons=(short, Reason("$6.88 per GPU-hour, cheapest of 5 offers")),
            usd_per_hour=Decimal("165.12"),
            usd_idle_at_worst=Decimal("11888.64"),
            hours=Decimal(72),
            request=reserve,
            offer=OFFER,
        ),
        Resize(
            pool="h100",
            reasons=(Reason("one node is idle"),),
            usd_per_hour=Decimal("-55.04"),
            request=resize,
            reservation=ON_AWS,
        ),
        Extend(pool="h100", reasons=(Reason("renewed"),), usd_per_hour=Decimal(0), request=end, reservation=ON_AWS),
        Release(
            pool="h100",
            reasons=(Reason("idle 26h, minimum hold over"),),
            usd_per_hour=Decimal("-112.54"),
            request=release,
            reservation=ON_GCP,
        ),
        Keep(pool="h100", reasons=(), usd_per_hour=None, reservation=ON_AWS),
    )
    return Plan(
        id="p" * 32,
        lineage=LINEAGE,
        serial=7,
        made=NOW,
        expires=NOW + timedelta(minutes=30),
        snapshot_digest="s",
        policy_digest="d",
        actions=actions,
        not_taken=(NotTaken(pool="a100", offer_id="gcp/research/x/y/z", reason=Reason("no price known")),),
        refusals=(
            Refusal(
                guard="max_new_instances", key="k9", reason=Reason("5 are more than 4"), forceable=True, request=reserve
            ),
        ),
        shortfalls=(Shortfall(pool="a100", gpus=8, jobs=("1",), reason=Reason("no offer fits")),),
        notes=("supply of another team is not touched",),
    )


def to_come(by: By) -> PlanReport:
    """A plan that was applied; its purchase is for two tenants, and the price of one change is not known."""
    reserve, resize, *others = plan().actions
    actions = (
        msgspec.structs.replace(reserve, tenants=(("vision", 2.0), ("nlp", 1.0))),
        msgspec.structs.replace(resize, usd_per_hour=None),
        *others,
    )
    applied = "already applied at 2026-03-04 14:05 UTC: applying it again does nothing"
    return outlook(msgspec.structs.replace(plan(), actions=actions), by, [applied])


SEEN = Observed(
    at=NOW,
    queued_jobs=41,
    pools=3,
    offers=212,
    reservations=2,
    month_spent_usd=Decimal("41200"),
    month_spent_usd_at_least=Decimal("41200"),
    month_unpriced=0,
    month_budget_usd=Decimal("80000"),
    problems=("azure/sub/eastus: reservations are not known: list: AuthorizationFailed: no (request r-1)",),
)


def intents() -> tuple[Intent, ...]:
    bought = ReserveRequest(key=KEY, lineage=LINEAGE, place=GCP, machine_type="a3-highgpu-8g", count=1)
    lost = ReserveRequest(key="k7", lineage=LINEAGE, place=AWS, machine_type="p5.48xlarge", count=2)
    done = Outcome(status=IntentStatus.DONE, at=NOW, reservation_id=ON_GCP.id)
    unknown = Outcome(status=IntentStatus.UNKNOWN, at=NOW, code="ReadTimeout", message="no answer")
    common = {"plan_id": "p", "run_id": "r", "sent": NOW - timedelta(hours=30)}
    return (
        Intent(
            key=KEY, request=bought, outcome=done, usd_per_hour_micro=112_540_000, pool="h100",
            tenants=(("vision", 0.75), ("nlp", 0.25)), jobs=("1001", "1002"), **common,  # type: ignore[arg-type]
        ),
        Intent(key="k7", request=lost, outcome=unknown, usd_per_hour_micro=55_040_000, **common),  # type: ignore[arg-type]
    )  # fmt: skip


def where_we_stand() -> Standing:
    other = reservation(AWS, "p4d.24xlarge", 2)
    return standing(
        Known(
            now=NOW,
            lineage=LINEAGE,
            serial=7,
            heartbeat=Heartbeat(at=NOW - timedelta(minutes=10), run_id="r", command="broker run"),
            reservations=(ON_AWS, ON_GCP),
            others=(other,),
            intents=intents(),
            idle=(Idle(reservation_id=ON_GCP.id, scope=GCP.scope, since=NOW - timedelta(hours=26)),),
        )
    )


def cost() -> Report:
    """One reservation whose end is known to the hour only, and one that nobody has a price for."""

    def step(count: int, earliest: datetime, latest: datetime, price: int | None = 112_540_000) -> CountStep:
        return CountStep(
            reservation_id=ON_GCP.id if price else ON_AWS.id,
            scope=GCP.scope,
            count=count,
            earliest=earliest,
            latest=latest,
            usd_per_hour_micro=price,
            key=KEY,
        )

    hour = timedelta(hours=1)
    steps = (step(1, NOW - 10 * hour, NOW - 10 * hour), step(0, NOW - 3 * hour, NOW - 2 * hour))
    unpriced = (step(1, NOW - 2 * hour, NOW - 2 * hour, None),)
    use = UseStep(reservation_id=ON_GCP.id, scope=GCP.scope, at=NOW - 10 * hour, used=1)
    ledger = Ledger(counts=[*steps, *unpriced], uses=[use], intents=intents())
    return report(ledger, since=NOW - timedelta(days=1), until=NOW, by=By.TENANT, minimum_hold=hour)


def imports() -> Imports:
    """A good file, one that is in already, and one that is none."""
    good = Imported(
        file="sacct.txt", format="sacct", rows=1200, kept=1000, changed=990, forgotten=4, merged=0, dropped=150,
        quarantined=50, problems=("sacct.txt: 50 rows set aside: has no Submit time (row 7: '17')",),
    )  # fmt: skip
    bad = Imported(file="x.bin", failed=True, problems=("x.bin holds NUL bytes: it is not text",))
    return Imports(path="state.history.db", files=(good, Imported(file="old.csv", known=True), bad))


def remembered() -> Summary:
    tenant = TenantCounts(
        cluster="alps", tenant="vision", jobs=1000, attempts=1010, requeued=9, live=3, gone=2, runaway=1,
        gpu_hours=12345.6,
    )  # fmt: skip
    total = Counts(jobs=1000, attempts=1010, requeued=9, live=3, gone=2, runaway=1, gpu_hours=12345.6)
    first = NOW - timedelta(days=90)
    return Summary(
        path="state.history.db", files=2, hashed=True, kept_since=first, first=first, last=NOW, total=total,
        tenants=(tenant,), gaps=(Gap(begin=NOW - timedelta(days=20), end=NOW - timedelta(days=18)),),
    )  # fmt: skip
