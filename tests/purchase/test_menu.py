import msgspec

from broker.model.place import Place
from broker.model.policy import PlaceRule
from broker.model.snapshot import Cooling
from broker.purchase.decide import decide
from tests.purchase.worlds import GCP, GCP_BIG, H100, MINUTE, NOW, bought, job, offer, policy, price, world


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
