"""A large site, always the same: 10,000 queued jobs, 12 pools, 500 reservations and 240 offers on three clouds."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from broker.model.job import Job, JobState
from broker.model.offer import Offer, Price, Shape
from broker.model.place import Place, ProviderName, Scope
from broker.model.policy import PlaceRule, Policy, Pool
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import Idle, ScopeView, Snapshot, SourceView, Trust

NOW = datetime(2026, 3, 4, 14, 0, tzinfo=UTC)
LINEAGE = "0123456789ab"
MODELS = ("a100-40gb", "a100-80gb", "h100", "h200", "b200", "b300", "l4", "l40s", "a10g", "t4", "v100-16gb", "gb200")
REGIONS = {
    ProviderName.AWS: ("us-east-1", "us-west-2"),
    ProviderName.GCP: ("us-central1", "europe-west4"),
    ProviderName.AZURE: ("eastus",),
}
_HOUR = timedelta(hours=1)


def policy() -> Policy:
    places = tuple(PlaceRule(provider=name) for name in ProviderName)
    return Policy(pools=tuple(Pool(name=f"pool-{model}", gpu_models=(model,), places=places) for model in MODELS))


def snapshot(queued: int = 10_000, running: int = 1_000, reservations: int = 500) -> Snapshot:
    chance = Random(7)
    held = [_reservation(chance, number) for number in range(reservations)]
    jobs = [_job(chance, number, JobState.PENDING) for number in range(queued)]
    jobs += [_job(chance, queued + number, JobState.RUNNING) for number in range(running)]
    source = SourceView(source="slurm", trust=Trust.COMPLETE, as_of=NOW, jobs=tuple(jobs))
    idle = tuple(Idle(one.id, one.place.scope, NOW - 2 * _HOUR) for one in held if not one.used)
    views = tuple(_view(scope, held) for scope in _scopes())
    return Snapshot(now=NOW, lineage=LINEAGE, serial=1, sources=(source,), scopes=views, idle=idle)


def _scopes() -> list[Scope]:
    return [Scope(provider, "main", region) for provider, regions in REGIONS.items() for region in regions]


def _zones(scope: Scope) -> list[Place]:
    return [Place(scope, f"{scope.region}-{letter}") for letter in "ab"]


def _shape(model: str, gpus: int) -> Shape:
    return Shape(f"{model}.x{gpus}", model, gpus)


def _view(scope: Scope, held: list[Reservation]) -> ScopeView:
    offers = [
        Offer(
            place=place,
            shape=_shape(model, gpus),
            price=Price(Decimal(gpus) * (3 + MODELS.index(model)) + index, "list", NOW - 10 * 24 * _HOUR),
        )
        for index, place in enumerate(_zones(scope))
        for model in MODELS
        for gpus in (1, 8)
    ]
    mine = tuple(one for one in held if one.place.scope == scope)
    return ScopeView(scope=scope, trust=Trust.COMPLETE, reservations_at=NOW, reservations=mine, offers=tuple(offers))


def _reservation(chance: Random, number: int) -> Reservation:
    shape = _shape(chance.choice(MODELS), chance.choice((1, 8, 8)))
    count = chance.randint(1, 8)
    return Reservation(
        id=f"r-{number}",
        place=chance.choice(_zones(chance.choice(_scopes()))),
        machine_type=shape.machine_type,
        gpu_model=shape.gpu_model,
        gpus_per_instance=shape.gpus,
        count=count,
        used=chance.randint(0, count),
        state=ReservationState.ACTIVE,
        raw_state="active",
        owner=Owner(LINEAGE, f"k{number}"),
        usd_per_hour=Decimal(10),
        billed_from=NOW - 48 * _HOUR,
        ends=NOW + chance.randint(2, 24) * _HOUR,
    )


def _job(chance: Random, number: int, state: JobState) -> Job:
    nodes, per_node = chance.choice(((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (None, None)))
    gpus = nodes * per_node if nodes and per_node else chance.randint(1, 16)
    return Job(
        id=str(number),
        tenant=f"team-{chance.randint(1, 20)}",
        state=state,
        submit=NOW - timedelta(seconds=chance.randint(1, 500_000)),
        start=NOW - timedelta(seconds=chance.randint(1, 50_000)) if state is JobState.RUNNING else None,
        gpus=gpus,
        gpus_per_node=per_node,
        nodes=nodes,
        gpu_model=chance.choice(MODELS),
        time_limit_s=chance.randint(600, 250_000),
        priority=chance.randint(0, 1_000_000),
        not_before=NOW + timedelta(seconds=chance.randint(0, 7200)) if chance.random() < 0.1 else None,
    )
