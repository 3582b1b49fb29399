"""Short histories, each of a kind that once broke a promise."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from broker.apply.boundary import Boundary
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.record import EffectKind
from providers.sandbox.supply import PoolRule
from state.queue_reads import QueueRead, remember
from tests.crash.clouds import CLOUDS, Cloud
from tests.sim.promises import check_bill
from tests.sim.site import QueueFile, Site
from tests.sim.world import LISTINGS, World

MINUTE = timedelta(minutes=1)


def anyhow() -> Random:
    """Where it does not matter what is drawn, the same each time."""
    return Random(0)


def one_job_arrives(world: World) -> None:
    before = len(world.site.jobs)
    world.jobs_arrive(anyhow())
    del world.site.jobs[before + 1 :]


@pytest.fixture
def world(sandbox: Sandbox, tmp_path: Path) -> World:
    return World(Site(sandbox, tmp_path, "0123456789ab"))


@pytest.fixture
def idle(world: World) -> World:
    """Two instances on AWS that nothing wants any more, long enough to be given back by the next run."""
    for job in range(2):
        world.jobs_arrive(Random(job))
    del world.site.jobs[2:]
    world.site.run()
    assert sum(h.count for h in world.ours()) == 2
    world.all_jobs_end(anyhow())
    world.sandbox.advance(31 * MINUTE)
    return world


def released(world: World) -> bool:
    return any(e.kind is EffectKind.RELEASE for e in world.sandbox.record.effects)


def a_job_starts(world: World) -> None:
    one_job_arrives(world)
    assert world.job_starts(anyhow())


def killed_before_it_is_called(world: World) -> None:
    assert world.site.run((Boundary.AFTER_INTENT, 1)).code is None
    assert not released(world)
    world.sandbox.advance(2 * MINUTE)


def test_a_frozen_broker_does_not_call_a_release_again(idle: World) -> None:
    killed_before_it_is_called(idle)
    idle.site.freeze(True)
    idle.site.run()
    assert not released(idle)
    idle.site.freeze(False)
    idle.site.run()
    assert released(idle)


def test_a_release_is_not_called_again_once_something_uses_it(idle: World) -> None:
    killed_before_it_is_called(idle)
    a_job_starts(idle)
    idle.site.run()
    idle.sandbox.advance(6 * MINUTE)
    idle.site.run()
    assert not released(idle)
    with idle.site.store() as store:
        assert not store.intents(open_only=True), "it holds up renewing and resizing for good"


def test_a_saved_plan_does_not_give_back_what_is_in_use_by_now(idle: World) -> None:
    idle.site.save_plan()
    a_job_starts(idle)
    idle.site.apply_plan()
    assert not released(idle)


@pytest.mark.parametrize("file", [QueueFile.GARBAGE, QueueFile.MISSING, QueueFile.CUT_OFF])
def test_a_saved_plan_gives_nothing_back_while_the_queue_is_not_known(idle: World, file: QueueFile) -> None:
    idle.site.save_plan()
    idle.site.file = file
    idle.site.apply_plan()
    assert not released(idle)
    idle.site.file = QueueFile.FRESH
    assert idle.site.apply_plan().code == 0
    assert released(idle)


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.name)
def test_a_plan_that_an_older_state_forgot_is_not_applied_again(world: World, cloud: Cloud) -> None:
    """On clouds that show nothing of what is gone, its serial fits again."""
    site = world.site
    for other in CLOUDS:
        capacity = 2 if other is cloud else 0
        world.market.set_capacity(PoolRule(provider=other.name, capacity=capacity))
    one_job_arrives(world)
    for _ in CLOUDS:
        site.run()
    site.release()
    site.back_up()
    site.save_plan()
    site.apply_plan()
    site.release()
    site.put_back()
    for _ in range(3):
        site.apply_plan()
        world.sandbox.advance(6 * MINUTE)
    assert max(site.sent.values()) == 1


def test_a_clock_that_is_set_back_between_two_runs_breaks_no_report(world: World) -> None:
    one_job_arrives(world)
    world.site.run()
    world.site.clock.off = -3 * MINUTE
    world.site.release()
    world.site.clock.off = timedelta(0)
    world.sandbox.advance(60 * MINUTE)
    world.site.run()
    check_bill(world, off=3 * MINUTE)


@pytest.mark.parametrize("died", [Boundary.AFTER_INTENT, Boundary.AFTER_CALL])
def test_what_was_bought_and_ended_while_no_run_looked_is_in_the_report(world: World, died: Boundary) -> None:
    """Nobody can say any more whether it was there: the report's bounds hold both."""
    one_job_arrives(world)
    world.site.run((died, 1))
    bought = died is Boundary.AFTER_CALL
    assert bool(world.ours()) is bought
    world.all_jobs_end(anyhow())
    world.sandbox.advance(timedelta(days=2))
    assert world.site.run().code == 0
    assert not world.ours()
    check_bill(world, off=timedelta(0))
    with world.site.store() as store:
        assert not store.intents(open_only=True)
        assert max(step.count for step in store.count_steps()) > 0


@pytest.mark.parametrize(
    ("cloud", "lost"), tuple(zip(CLOUDS, (True, False, True), strict=True)), ids=("aws", "gcp", "azure")
)
def test_what_is_held_where_nobody_can_look_is_not_bought_again_elsewhere(
    world: World, cloud: Cloud, lost: bool
) -> None:
    """A state that does not know of it waits until that cloud can be listed."""
    site = world.site
    for other in CLOUDS:
        world.market.set_capacity(PoolRule(provider=other.name, capacity=2 if other is cloud else 0))
    site.back_up()
    one_job_arrives(world)
    while not world.ours() and len(site.sent) < 12:
        site.run()
    assert [h.provider for h in world.ours()] == [cloud.name]
    world.clouds_get_well(anyhow())
    world.sandbox.fault(FaultKind.ERROR, LISTINGS[cloud.name], cloud.name, times=None, status=503)
    site.lose()
    site.adopt() if lost else site.put_back()
    for _ in range(3):
        world.sandbox.advance(11 * MINUTE)
        site.run()
    assert sum(h.count for h in world.ours()) == 1
    world.clouds_get_well(anyhow())
    one_job_arrives(world)
    for _ in range(2):
        world.sandbox.advance(6 * MINUTE)
        site.run()
    assert sum(h.count for h in world.ours()) == 2, "and then it buys again"


def test_nothing_is_given_back_on_the_first_read_of_a_queue_that_lost_its_jobs(idle: World) -> None:
    """Two reads of different times that say the same are believed."""
    remember(idle.site.state, {"queue": QueueRead(source="queue", live=400)})
    idle.site.run()
    assert not released(idle)
    idle.sandbox.advance(2 * MINUTE)
    idle.site.run()
    assert released(idle)
