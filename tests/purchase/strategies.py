"""Random small worlds for the promises of deciding."""

from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import strategies as st

from broker.model.job import Job, JobState
from broker.model.offer import Allowance, Offer, Shape, instances_left
from broker.model.place import Place
from broker.model.policy import Guards, OwnNodes, Policy, Pool, Tenant
from broker.model.reservation import Owner, Reservation, ReservationState
from broker.model.snapshot import Idle, Snapshot, Trust
from tests.purchase.worlds import (
    CENTRAL,
    EAST_A,
    EAST_B,
    EASTUS,
    H100,
    HOUR,
    LINEAGE,
    MINUTE,
    NOW,
    held,
    job,
    offer,
    policy,
    scope_view,
    source,
)  # fmt: skip

PLACES = (EAST_A, EAST_B, CENTRAL, EASTUS)
SHAPES = tuple(Shape(f"t{gpus}", "h100", gpus) for gpus in (1, 2, 4, 8))
GEOMETRIES = st.sampled_from([(1, 1), (1, 2), (1, 3), (1, 8), (2, 4), (2, 8), (3, 2), (4, 8), (1, 16), (None, None)])

STATES = st.sampled_from(
    [JobState.PENDING, JobState.PENDING, JobState.PENDING, JobState.RUNNING, JobState.UNKNOWN, JobState.HELD]
)
AGES = st.sampled_from([HOUR, 9 * HOUR, MINUTE])

places = st.sampled_from(PLACES)
shapes = st.sampled_from(SHAPES)


@st.composite
def jobs(draw: st.DrawFn, number: int = 0) -> Job:
    nodes, per_node = draw(GEOMETRIES)
    state = draw(
        st.sampled_from([JobState.PENDING, JobState.PENDING, JobState.RUNNING, JobState.UNKNOWN, JobState.HELD])
    )
    return job(
        f"j{number}",
        nodes * per_node if nodes and per_node else draw(st.integers(1, 20)),
        nodes=nodes,
        gpus_per_node=per_node,
        state=state,
        start=NOW - HOUR if state is JobState.RUNNING else None,
        tenant=draw(st.sampled_from(["vision", "nlp"])),
        queue=draw(st.sampled_from(["a", "b"])),
        priority=draw(st.integers(0, 3)),
        preemptible=draw(st.booleans()),
        time_limit_s=draw(st.sampled_from([None, 600, 3600, 200_000])),
        not_before=draw(st.sampled_from([None, NOW + 20 * MINUTE, NOW + 5 * HOUR])),
    )


@st.composite
def reservations(draw: st.DrawFn, number: int = 0) -> Reservation:
    count = draw(st.integers(1, 4))
    assured = draw(st.sampled_from([None, None, None, *range(count)]))
    mine = Owner(LINEAGE, f"keyr{number}")
    return held(
        f"r{number}",
        count,
        draw(places),
        draw(shapes),
        used=draw(st.integers(0, count if assured is None else assured)),
        assured=assured,
        owner=draw(st.sampled_from([mine, mine, None, Owner("x", "y")])),
        state=draw(st.sampled_from([ReservationState.ACTIVE, ReservationState.ACTIVE, *ReservationState])),
        interruptible=draw(st.booleans()) and draw(st.booleans()),
        ends=draw(st.sampled_from([None, NOW + 2 * HOUR, NOW + 20 * HOUR])),
        usd_per_hour=Decimal(draw(st.integers(1, 90))),
        match=draw(st.sampled_from([(), (), (("tenancy", "default"),), (("tenancy", "dedicated"),)])),
    )


@st.composite
def quotas(draw: st.DrawFn, place: Place, shape: Shape) -> dict[str, Any]:
    """None, or a family's that its types share, or that and one of all regions, as read at instants of their own."""
    family = Allowance(f"{place.scope}/family", draw(st.sampled_from([0, 7, 8, 24])), shape.gpus)
    everywhere = Allowance(f"{place.scope.provider}/everywhere", draw(st.sampled_from([4, 16, 20])), shape.gpus)
    allowances = draw(st.sampled_from([(), (), (family,), (family, everywhere)]))
    return {"allowances": allowances, "quota_left": instances_left(allowances)}


@st.composite
def offers(draw: st.DrawFn) -> tuple[Offer, ...]:
    wanted = draw(st.lists(st.tuples(places, shapes), unique=True, max_size=8))
    return tuple(
        offer(
            place,
            shape,
            draw(st.sampled_from(["1", "7.5", "40", "88", None])),
            **draw(quotas(place, shape)),
            max_count=draw(st.sampled_from([1000, 1000, 2])),
        )
        for place, shape in wanted
    )


@st.composite
def snapshots(draw: st.DrawFn, *, complete: bool = False, unlimited: bool = False) -> Snapshot:
    """Of up to 8 jobs from two sources, 5 reservations and 8 offers on three clouds."""
    some = [draw(jobs(number)) for number in range(draw(st.integers(0, 8)))]
    held_ones = [draw(reservations(number)) for number in range(draw(st.integers(0, 5)))]
    sold = draw(offers())
    if unlimited:
        sold = tuple(msgspec.structs.replace(one, quota_left=None, allowances=(), max_count=1000) for one in sold)
    trusts = st.just(Trust.COMPLETE) if complete else st.sampled_from([Trust.COMPLETE, Trust.COMPLETE, *Trust])
    return Snapshot(
        now=NOW,
        lineage=LINEAGE,
        serial=1,
        sources=(source(*some[:4], trust=draw(trusts)), source(*some[4:], name="two", trust=draw(trusts))),
        scopes=tuple(
            scope_view(
                scope,
                trust=draw(trusts),
                offers=tuple(one for one in sold if one.place.scope == scope),
                reservations=tuple(one for one in held_ones if one.place.scope == scope),
            )
            for scope in sorted({place.scope for place in PLACES})
        ),
        idle=tuple(Idle(one.id, one.place.scope, NOW - draw(AGES), draw(st.integers(0, 1))) for one in held_ones),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    limits = st.sampled_from([None, None, 0, 10, 45, 130, 1000])

    def usd() -> Decimal | None:
        limit = draw(limits)
        return None if limit is None else Decimal(limit)

    guards = Guards(
        max_usd_per_run=usd(),
        max_usd_per_hour=usd(),
        max_usd_per_month=usd(),
        max_new_instances=draw(st.sampled_from([None, 0, 1, 3])),
        max_released_instances=draw(st.sampled_from([None, 0, 1, 3])),
    )
    tenants = (Tenant(name="nlp", budget_usd_per_month=usd()),)
    return policy(
        *draw(pools()), guards=guards, tenants=tenants, protect=draw(st.sampled_from([frozenset(), frozenset({"r0"})]))
    )


@st.composite
def pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    """One pool, or two that share all supply and split the jobs by queue."""
    bounds = {"min_gpus": draw(st.sampled_from([0, 0, 5])), "max_gpus": draw(st.sampled_from([None, None, 24]))}
    own = draw(st.sampled_from([(), (OwnNodes(nodes=2, gpus_per_node=8),)]))
    one = msgspec.structs.replace(H100, own=own, **bounds)
    if draw(st.booleans()):
        return (one,)
    return tuple(msgspec.structs.replace(one, name=name, queues=(name,)) for name in ("a", "b"))
