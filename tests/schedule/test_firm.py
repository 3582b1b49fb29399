"""Jobs that cannot be called back, on a live queue."""

from datetime import timedelta

from broker.config import ScheduleSettings
from broker.model.job import Job, JobState
from broker.schedule.memory import Memory, dumps, loads
from broker.schedule.orders import PoolSchedule
from broker.schedule.step import begin
from tests.schedule.cluster import START, at, job, looked, policy, running, tenant

HOUR = 3636.0
TWO = policy(tenant("vision", 8), tenant("nlp", 8))
LENT_TO = ScheduleSettings(reclaim=timedelta(seconds=120), restore=timedelta(seconds=60), firm_misses=0.1)


def taught() -> Memory:
    """Lending has begun, and jobs of the class have run for about five minutes each."""
    done = [
        job(f"past{k}", "vision", 4, -600, state=JobState.DONE, start=at(-600), end=at(3 * k - 310)) for k in range(8)
    ]
    memory = begin(START)
    looked(memory, 0, *done, rules=TWO, settings=LENT_TO)
    looked(memory, HOUR, rules=TWO, settings=LENT_TO)
    return memory


def queue(now: float) -> tuple[Job, Job]:
    return running("own", "vision", 8, now, now), job("more", "vision", 4, now)


def thought_of(memory: Memory, settings: ScheduleSettings) -> PoolSchedule:
    """The first look at which a loan is thought of begins to watch claims; a later one knows how far they rose."""
    for later in range(0, 1200, 60):
        found = looked(memory, HOUR + 500 + later, *queue(HOUR + 500), rules=TWO, settings=settings)
        if found.loans:
            break
    return found


def test_it_is_lent_to_once_its_class_and_the_claims_are_known() -> None:
    memory = taught()
    first = looked(memory, HOUR + 500, *queue(HOUR + 500), rules=TWO, settings=LENT_TO)
    assert first.loans == ()
    found = thought_of(loads(dumps(memory)), LENT_TO)
    assert [order.job for order in found.loans] == ["c/more"]
    assert "cannot be called back" in found.loans[0].reason
    assert found.firm.gpus == 4


def test_its_owner_waits_for_its_end_and_that_counts_as_a_miss() -> None:
    memory = taught()
    thought_of(memory, LENT_TO)
    own, lent = running("own", "vision", 8, HOUR, HOUR), running("more", "vision", 4, HOUR, HOUR + 1800)
    found = looked(memory, HOUR + 1860, own, lent, job("due", "nlp", 8, HOUR + 1850), rules=TWO, settings=LENT_TO)
    assert found.reclaims == ()
    assert (found.firm.in_the_way_gpus, found.firm.loans, found.firm.missed) == (4, 1, 1)
    assert found.short_gpus == 4, "what cannot be called back is no capacity"
    found = looked(memory, HOUR + 2000, own, job("due", "nlp", 8, HOUR + 1850), rules=TWO, settings=LENT_TO)
    assert [order.job for order in found.grants] == ["c/due"]
    assert (found.firm.gpus, found.firm.in_the_way_gpus) == (0, 0)


def test_off_unless_configured_and_off_again() -> None:
    off = ScheduleSettings(reclaim=LENT_TO.reclaim, restore=LENT_TO.restore)
    memory = taught()
    assert thought_of(loads(dumps(memory)), off).loans == ()
    looked(memory, HOUR + 450, *queue(HOUR + 450), rules=TWO, settings=LENT_TO)
    assert thought_of(memory, off).loans == ()
