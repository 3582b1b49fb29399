"""Notes of a plan: what its reader could not see in the actions."""

import msgspec

from broker.purchase.decide import decide
from tests.purchase.worlds import AZURE, EASTUS, ONE, job, offer, policy, world


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
