import msgspec

from broker.model.offer import Allowance
from broker.model.place import Place, Scope
from broker.model.policy import PlaceRule
from broker.model.snapshot import Cooling
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AWS,
    BIG,
    CENTRAL,
    EAST_A,
    EAST_B,
    GCP,
    GCP_BIG,
    H100,
    MINUTE,
    NOW,
    ONE,
    bought,
    job,
    offer,
    policy,
    price,
    world,
)


def test_of_equal_offers_the_zone_that_the_cloud_named_when_another_was_full_is_tried_next() -> None:
    zones = [offer(Place(GCP, f"us-central1-{letter}"), GCP_BIG, "88") for letter in "abcf"]
    full = (Cooling(zones[0].id, NOW + 20 * MINUTE, "STOCKOUT", ("us-central1-a", "us-central1-f")),)
    plan = decide(world(job(), offers=tuple(zones), cooling=full), policy())
    assert bought(plan) == [("us-central1-f", 1)]
    assert "named this zone when another was full" in plan.actions[0].reasons[1].text


def test_a_hint_is_no_reason_to_pay_more_or_to_leave_the_pools_places_and_ends_with_the_cool_down() -> None:
    full, other, named = (offer(Place(GCP, f"us-central1-{zone}"), GCP_BIG, "88") for zone in "abf")
    dear = msgspec.structs.replace(named, price=price("89"))
    cooling = (Cooling(full.id, NOW + MINUTE, "STOCKOUT", ("us-central1-f",)),)
    assert bought(decide(world(job(), offers=(full, other, dear), cooling=cooling), policy())) == [("us-central1-b", 1)]
    rules = tuple(PlaceRule(provider=GCP.provider, zone=f"us-central1-{zone}") for zone in "ab")
    only = policy(msgspec.structs.replace(H100, places=rules))
    assert bought(decide(world(job(), offers=(full, other, named), cooling=cooling), only)) == [("us-central1-b", 1)]
    over = (msgspec.structs.replace(cooling[0], until=NOW),)
    assert bought(decide(world(job(), offers=(other, named), cooling=over), policy())) == [("us-central1-b", 1)]


def test_machine_types_of_one_family_draw_on_one_quota() -> None:
    """192 + 4 x 16 vCPUs would be one instance of each type; 200 are left."""
    large, small = (
        offer(place, shape, usd, allowances=(Allowance(f"{AWS}/L-417A185B", 200, shape.vcpus),))
        for place, shape, usd in ((EAST_A, BIG, "40"), (EAST_B, ONE, "6"))
    )
    jobs = (job("wide", gpus=8, nodes=1, gpus_per_node=8), job("small", gpus=1, nodes=1, gpus_per_node=1))
    plan = decide(world(*jobs, offers=(large, small)), policy())
    assert bought(plan) == [("us-east-1a", 1)]
    (short,) = plan.shortfalls
    assert short.jobs == ("small",) and "quota aws/main/us-east-1/L-417A185B leaves 0 instances" in short.reason.text


def test_a_quota_of_all_regions_is_drawn_on_in_each() -> None:
    europe = Place(Scope(GCP.provider, GCP.account, "europe-west4"), "europe-west4-a")
    everywhere = Allowance("gcp/proj/GPUS_ALL_REGIONS", 12, 8)
    offers = tuple(offer(place, GCP_BIG, "88", allowances=(everywhere,), max_count=1) for place in (CENTRAL, europe))
    plan = decide(world(job("a"), job("b"), offers=offers), policy())
    assert len(bought(plan)) == 1
    assert [short.gpus for short in plan.shortfalls] == [8]
