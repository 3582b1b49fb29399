"""What a cloud cannot change in place is bought anew beside it, both costs shown; what is not managed is left alone."""

import msgspec

from broker.model.plan import Release, Reserve
from broker.purchase.decide import decide
from tests.purchase.worlds import H100, HOUR, ONE, bought, given_back, held, idle, job, offer, policy, world

SMALL = msgspec.structs.replace(H100, machine_types=("p5.4xlarge",))


def test_another_machine_type_is_a_purchase_and_a_release_never_a_resize() -> None:
    seen = world(
        job("j", gpus=1, nodes=1, gpus_per_node=1),
        offers=(offer(), offer(shape=ONE, usd="6")),
        reservations=(held(),),
        idle=(idle("cr-1", 40 * HOUR),),
    )
    plan = decide(seen, policy(SMALL))
    assert {type(action) for action in plan.changes} == {Reserve, Release}
    assert sorted(int(action.usd_per_hour or 0) for action in plan.changes) == [-40, 6]


def test_what_is_in_use_stays_when_its_type_is_no_longer_wanted() -> None:
    seen = world(job("j", gpus=1), offers=(offer(shape=ONE, usd="6"),), reservations=(held(used=1),))
    plan = decide(seen, policy(SMALL))
    assert (bought(plan), given_back(plan)) == ([("us-east-1a", 1)], [])


def test_tags_and_notes_that_others_put_on_it_change_nothing() -> None:
    ours = held(used=1, tags=(("team", "vision"),))
    theirs = msgspec.structs.replace(ours, tags=(("cost", "x"), ("team", "other")), notes=("shared",))
    assert decide(world(reservations=(theirs,)), policy(purchase={"tags": (("team", "vision"),)})).changes == ()
