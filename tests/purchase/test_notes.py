"""Notes of a plan: what its reader could not see in the actions."""

import msgspec

from broker.model.intent import IntentStatus
from broker.model.job import JobState
from broker.model.reservation import Owner
from broker.purchase.decide import decide
from tests.purchase.worlds import (
    AZURE,
    EASTUS,
    H100,
    HOUR,
    LINEAGE,
    MINUTE,
    NOW,
    ONE,
    bought,
    held,
    intent,
    job,
    offer,
    policy,
    world,
)


def test_a_job_that_would_be_spread_over_instances_is_named_with_the_way_out() -> None:
    plan = decide(world(job("wide", 4), offers=(offer(shape=ONE, usd="5"),)), policy())
    (note,) = plan.notes
    assert "wide (4 GPUs)" in note and ONE.machine_type in note and "gpus_per_node" in note


def test_a_job_that_says_its_nodes_or_fits_one_instance_needs_no_note() -> None:
    said = job("said", 4, nodes=4, gpus_per_node=1)
    plan = decide(world(said, job("fits", 1), offers=(offer(shape=ONE, usd="5"),)), policy())
    assert plan.changes and plan.notes == ()


def test_a_plan_without_any_cloud_says_that_nothing_can_be_bought() -> None:
    plan = decide(msgspec.structs.replace(world(job()), scopes=()), policy())
    assert any("no cloud is configured" in note for note in plan.notes)


def test_a_zone_is_never_shown_without_its_region() -> None:
    zonal = msgspec.structs.replace(EASTUS, zone="2")
    assert (str(zonal), str(EASTUS)) == ("azure eastus/2", "azure eastus")
    assert offer(EASTUS).id.startswith(f"{AZURE}/regional/")


def test_what_the_cloud_did_not_deliver_is_no_supply_and_is_named() -> None:
    lacking = world(job("wide", 16), offers=(offer(),), reservations=(held(count=2, assured=1),))
    plan = decide(lacking, policy())
    assert bought(plan) == [("us-east-1a", 1)]
    assert any("cr-1" in note and "lacks 1 of 2 instances" in note for note in plan.notes)
    whole = world(job("wide", 16), offers=(offer(),), reservations=(held(count=2),))
    assert (bought(decide(whole, policy())), decide(whole, policy()).notes) == ([], ())


def test_what_is_not_there_is_paid_for_and_so_within_what_the_pool_may_hold() -> None:
    """16 GPUs are paid for, 8 of them are there: of a ceiling of 24 GPUs one instance is left, of 16 none."""
    for ceiling, expected in ((24, [("us-east-1a", 1)]), (16, [])):
        lacking = world(job("wide", 16), offers=(offer(),), reservations=(held(count=2, assured=1),))
        plan = decide(lacking, policy(msgspec.structs.replace(H100, max_gpus=ceiling)))
        assert bought(plan) == expected


def test_what_was_bought_a_moment_ago_may_still_be_on_its_way() -> None:
    owner = Owner(LINEAGE, "k1")
    for minutes, expected in ((4, []), (6, [("us-east-1a", 1)])):
        sent = NOW - minutes * MINUTE
        young = intent(count=2, status=IntentStatus.DONE, reservation_id="cr-1", sent=sent)
        seen = (held(count=2, assured=1, owner=owner, billed_from=sent),)
        plan = decide(world(job("wide", 16), offers=(offer(),), reservations=seen, intents=(young,)), policy())
        assert bought(plan) == expected


def test_use_by_what_is_no_job_of_the_queue_is_named_while_jobs_count_on_it() -> None:
    """Two held and one of them in use: by a job that runs, or by something that nobody submitted."""
    held_two = (held(count=2, used=1),)
    runs = job("r", state=JobState.RUNNING, start=NOW - HOUR)
    strange = decide(world(job("q", 16), offers=(offer(),), reservations=held_two), policy())
    assert any("at least 1 instances of ours are used by what is no job" in note for note in strange.notes)
    assert decide(world(job("q"), runs, offers=(offer(),), reservations=held_two), policy()).notes == ()
    assert decide(world(offers=(offer(),), reservations=held_two), policy()).notes == ()


def test_what_another_broker_bought_is_said_once_for_each() -> None:
    """It may be another team's, or ours from before its state was lost, which nothing would ever release."""
    theirs = [held(f"cr-{n}", owner=Owner("a00000000000", f"k{n}")) for n in (1, 2)]
    people = held("cr-3", owner=None)
    plan = decide(world(offers=(offer(),), reservations=(*theirs, people)), policy())
    (note,) = plan.notes
    assert note.startswith("2 reservations of another broker (state a00000000000)")
    assert "broker state adopt --lineage a00000000000" in note
