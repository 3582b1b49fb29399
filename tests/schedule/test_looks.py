"""What a look says in the situations that it is for."""

from datetime import timedelta

import msgspec
import pytest

from broker.config import ScheduleSettings
from broker.errors import StateError, UsageError
from broker.model.job import JobState
from broker.model.snapshot import Trust
from broker.schedule import explaining, habits
from broker.schedule.memory import Known, dumps, loads
from broker.schedule.orders import Part
from broker.schedule.step import begin, look
from tests.schedule.cluster import SETTINGS, START, at, job, looked, policy, running, seen, tenant, watched

HOUR = 3636.0
TWO = policy(tenant("vision", 8), tenant("nlp", 8))


def test_a_loan_names_its_lender_and_is_called_back_when_the_lender_comes() -> None:
    memory = watched(TWO)
    own, more = job("own", "vision", 8, HOUR), job("more", "vision", 4, HOUR)
    found = looked(memory, HOUR + 10, own, more, rules=TWO)
    assert [(order.job, order.kind) for order in (*found.grants, *found.loans)] == [
        ("c/own", "grant"),
        ("c/more", "loan"),
    ]
    assert found.loans[0].lenders == (Part(tenant="nlp", gpus=4),)
    own, more = (
        running("own", "vision", 8, HOUR, HOUR + 11),
        running("more", "vision", 4, HOUR, HOUR + 12, node_names=("n2",)),
    )
    found = looked(memory, HOUR + 60, own, more, job("due", "nlp", 8, HOUR + 50), rules=TWO)
    assert [(order.job, order.due, order.nodes) for order in found.reclaims] == [("c/more", at(HOUR + 180), ("n2",))]
    assert found.grants == ()
    found = looked(memory, HOUR + 100, own, job("more", "vision", 4, HOUR), job("due", "nlp", 8, HOUR + 50), rules=TWO)
    (due,) = found.grants
    assert (due.job, round(due.lag_s)) == ("c/due", 50)
    assert found.reclaims == ()


def test_an_order_stands_until_the_queue_shows_it_done() -> None:
    memory = begin(START)
    for now, new in ((0, True), (60, False), (120, False)):
        (order,) = looked(memory, now, job("a", "vision", 4), rules=TWO).grants
        assert (order.new, order.since) == (new, START)
        assert order.lag_s == now
    assert looked(memory, 180, running("a", "vision", 4, 0, 170), rules=TWO).grants == ()


def test_lag_counts_what_was_really_run() -> None:
    memory = begin(START)
    looked(memory, 0, job("a", "vision", 4), rules=TWO)
    looked(memory, 600, running("a", "vision", 4, 0, 100), rules=TWO)
    assert explaining.explain(memory, "a", ()).lag_s == 100


def test_an_overdue_reclaim_is_reported_and_its_class_does_not_borrow_until_it_is_trusted() -> None:
    memory = watched(TWO)
    more, due = job("more", "vision", 4, HOUR), job("due", "nlp", 8, HOUR + 50)
    own = running("own", "vision", 8, HOUR, HOUR + 5)
    looked(memory, HOUR + 10, own, more, rules=TWO)
    more = running("more", "vision", 4, HOUR, HOUR + 12)
    looked(memory, HOUR + 60, own, more, due, rules=TWO)
    assert looked(memory, HOUR + 179, own, more, due, rules=TWO).overdue == ()
    found = looked(memory, HOUR + 300, own, more, due, rules=TWO)
    assert [(each.job, each.kind) for each in found.overdue] == [("c/more", "vision/ada/gpu")]
    assert found.grants == (), "its slots are not free"
    back = job("more", "vision", 4, HOUR, requeued=at(HOUR + 310))
    found = looked(memory, HOUR + 360, own, back, due, rules=TWO)
    assert [order.job for order in found.grants] == ["c/due"]
    found = looked(memory, HOUR + 400, own, back, rules=TWO)
    assert found.loans == ()
    assert {each.name: (each.borrows, each.reclaim_s) for each in found.classes}["vision/ada/gpu"] == (False, 250.0)
    memory.pools["h100"].habits["vision/ada/gpu"].overdue = []
    memory.pools["h100"].habits["vision/ada/gpu"].reclaim_s = []
    assert [order.job for order in looked(memory, HOUR + 460, own, back, rules=TWO).loans] == ["c/more"]


def test_a_job_that_ends_where_it_was_called_back_frees_its_slots() -> None:
    memory = watched(TWO)
    own, due = running("own", "vision", 8, HOUR, HOUR + 5), job("due", "nlp", 8, HOUR + 50)
    looked(memory, HOUR + 10, own, job("more", "vision", 4, HOUR), rules=TWO)
    looked(memory, HOUR + 60, own, running("more", "vision", 4, HOUR, HOUR + 12), due, rules=TWO)
    assert [order.job for order in looked(memory, HOUR + 90, own, due, rules=TWO).grants] == ["c/due"]


def test_opting_out_in_the_configuration() -> None:
    for terms, lent in (({"lends": False}, []), ({"max_lent": (("h100", 2),)}, ["c/small"])):
        rules = policy(tenant("vision", 8), tenant("nlp", 8, **terms))
        memory = watched(rules)
        queue = (
            running("own", "vision", 8, HOUR, HOUR + 1),
            job("more", "vision", 4, HOUR),
            job("small", "vision", 2, HOUR),
        )
        assert [order.job for order in looked(memory, HOUR + 10, *queue, rules=rules).loans] == lent
    rules = policy(tenant("vision", 8, borrows=False), tenant("nlp", 8))
    memory = watched(rules)
    pair = (running("own", "vision", 8, HOUR, HOUR + 1), job("more", "vision", 4, HOUR))
    assert looked(memory, HOUR + 10, *pair, rules=rules).loans == ()


@pytest.mark.parametrize(
    ("terms", "settings", "why"),
    [
        (
            {"borrows": False},
            SETTINGS,
            "It does not borrow: its tenant does not borrow. [[tenant]] borrows = true lets it.",
        ),
        (
            {},
            ScheduleSettings(),
            "It does not borrow: it cannot be called back, as the queue tells it. schedule.preempt",
        ),
    ],
)
def test_who_may_not_borrow_is_told_the_one_reason(
    terms: dict[str, object], settings: ScheduleSettings, why: str
) -> None:
    rules = policy(tenant("vision", 8, **terms), tenant("nlp", 8))
    memory = watched(rules)
    pair = (running("own", "vision", 8, HOUR, HOUR + 1), job("more", "vision", 4, HOUR))
    looked(memory, HOUR + 10, *pair, rules=rules, settings=settings)
    assert any(line.startswith(why) for line in explaining.explain(memory, "more", ()).sentences)


def test_a_change_of_the_configuration_holds_from_the_next_look_on() -> None:
    memory = watched(TWO)
    queue = (running("own", "vision", 8, HOUR, HOUR + 1), job("more", "vision", 4, HOUR))
    closed = policy(tenant("vision", 8), tenant("nlp", 8, lends=False))
    assert looked(memory, HOUR + 10, *queue, rules=closed).loans == ()
    assert [order.job for order in looked(memory, HOUR + 20, *queue, rules=TWO).loans] == ["c/more"]
    wider = policy(tenant("vision", 12), tenant("nlp", 4))
    memory = watched(TWO)
    assert [order.job for order in looked(memory, HOUR + 20, *queue, rules=wider).grants] == ["c/more"]


def test_a_job_that_cannot_be_stopped_waits_for_its_turn() -> None:
    settings = msgspec.structs.replace(SETTINGS, preemptible_queues=())
    memory = watched(TWO)
    own = running("own", "vision", 8, HOUR, HOUR + 1)
    queue = (own, job("stiff", "vision", 4, HOUR), job("soft", "vision", 4, HOUR, preemptible=True))
    found = looked(memory, HOUR + 10, *queue, rules=TWO, settings=settings)
    assert [order.job for order in found.loans] == ["c/soft"]


@pytest.mark.parametrize("trust", [Trust.UNKNOWN, Trust.PARTIAL])
def test_a_queue_that_was_not_read_ends_no_job_and_frees_no_slot(trust: Trust) -> None:
    memory = begin(START)
    both = (running("a", "vision", 8, 0, 0), running("b", "nlp", 8, 0, 0))
    looked(memory, 10, *both, rules=TWO)
    before = memory.pools["h100"].machine.dumps()
    (found,) = look(memory, seen(60, both[0], trust=trust), TWO, SETTINGS).pools
    assert "is not known" in found.undecided
    assert memory.pools["h100"].machine.dumps() == before
    (found,) = look(memory, msgspec.structs.replace(seen(60, *both), now=at(60 + 3600)), TWO, SETTINGS).pools
    assert "too old" in found.undecided


def test_held_jobs_and_those_that_wait_for_others() -> None:
    queue = (
        job("held", "vision", 1, state=JobState.HELD),
        job("first", "vision", 1),
        job("then", "vision", 1, depends_on=("first",)),
    )
    assert [order.job for order in looked(begin(START), 0, *queue, rules=TWO).grants] == ["c/first"]
    settings = msgspec.structs.replace(SETTINGS, held_jobs_wait=True)
    found = looked(begin(START), 0, *queue, rules=TWO, settings=settings)
    assert {order.job for order in found.grants} == {"c/first", "c/held"}


def test_a_pool_in_which_nobody_is_promised_anything_belongs_to_everybody() -> None:
    found = looked(begin(START), 0, job("a", "x", 8), job("b", "y", 8), job("c", "z", 1), rules=policy())
    assert [order.job for order in found.grants] == ["c/a", "c/b"]


def test_a_clock_that_goes_back_stands_still() -> None:
    memory = begin(START)
    looked(memory, 100, job("a", "vision", 4), rules=TWO)
    found = look(memory, seen(40, job("a", "vision", 4)), TWO, SETTINGS)
    assert found.now == at(100)
    assert "went back" in found.notes[0]


def test_a_job_that_somebody_requeued_starts_afresh() -> None:
    memory = begin(START)
    looked(memory, 0, job("a", "vision", 4), rules=TWO)
    looked(memory, 1000, running("a", "vision", 4, 0, 0), rules=TWO)
    found = looked(memory, 1100, job("a", "vision", 4), rules=TWO)
    assert explaining.explain(memory, "c/a", ()).lag_s == 1100
    assert found.busy_gpus == 4


def test_runs_and_restores_are_measured_by_class_from_what_happened() -> None:
    memory, now = watched(TWO), HOUR
    for number in range(6):
        looked(memory, now, running(f"r{number}", "vision", 4, now - 1, now), rules=TWO)
        done = job(f"r{number}", "vision", 4, now - 1, state=JobState.DONE, start=at(now), end=at(now + 500))
        looked(memory, now + 600, done, rules=TWO)
        now += 700
    habit = memory.pools["h100"].habits["vision/ada/gpu"]
    assert habit.run_s == {4: [500.0] * 6}
    assert (habits.quick_s(habit, 4), habits.typical_s(habit, 4), habits.typical_s(habit, 1)) == (500, 500, None)
    for run_s in (580.0, 640.0, 560.0, 600.0, 660.0):
        habits.note_end(habit, Known(name="x", kind="", gpus=4, run_s=run_s, called_back=2))
    assert habits.restore_s(habit, SETTINGS) == 50
    assert habits.restore_s(None, SETTINGS) == 60


def test_explaining_names_what_there_is_not() -> None:
    memory = begin(START)
    queue = seen(0, job("a", "vision", 4), job("h", "vision", 4, state=JobState.HELD))
    look(memory, queue, TWO, SETTINGS)
    assert "is owed 4 GPUs" in " ".join(explaining.explain(memory, "a", queue.sources).sentences)
    more = seen(10, *(job(name, "vision", 5) for name in "abc"))
    look(memory, more, TWO, SETTINGS)
    second, third = (explaining.explain(memory, name, more.sources).sentences[0] for name in "bc")
    assert second.endswith("would not have started it yet: the jobs before it leave too little.")
    assert third.endswith("would not have started it yet; 1 of its jobs are before it.")
    with pytest.raises(UsageError, match="held and not scheduled"):
        explaining.explain(memory, "h", queue.sources)
    with pytest.raises(UsageError, match="no live job"):
        explaining.explain(memory, "nobody", queue.sources)


def test_damaged_and_newer_memories_are_refused() -> None:
    text = dumps(begin(START))
    assert loads(text).since == START
    for bad in (text[:-5], text.replace(b'"format_version":1', b'"format_version":9'), b"[]"):
        with pytest.raises(StateError):
            loads(bad)


def test_reclaim_time_is_what_the_configuration_says() -> None:
    slow = msgspec.structs.replace(SETTINGS, reclaim=timedelta(minutes=20))
    memory = watched(TWO)
    own = running("own", "vision", 8, HOUR, HOUR + 1)
    looked(memory, HOUR + 10, own, job("more", "vision", 4, HOUR), rules=TWO, settings=slow)
    more, due = running("more", "vision", 4, HOUR, HOUR + 12), job("due", "nlp", 8, HOUR + 50)
    looked(memory, HOUR + 60, own, more, due, rules=TWO, settings=slow)
    assert looked(memory, HOUR + 660, own, more, due, rules=TWO, settings=slow).overdue == ()


def test_a_class_that_gives_back_fast_borrows_where_a_slow_one_would_not() -> None:
    for measured, borrows in (([10.0], True), ([115.0], False), ([], False)):
        memory = watched(TWO)
        looked(memory, HOUR + 10, running("own", "vision", 8, HOUR, HOUR), rules=TWO)
        memory.pools["h100"].habits["vision/ada/gpu"].reclaim_s = measured
        memory.pools["h100"].machine.hold_back(4)
        own, more = running("own", "vision", 8, HOUR, HOUR), job("more", "vision", 6, HOUR + 20)
        found = looked(memory, HOUR + 60, own, more, rules=TWO)
        assert bool(found.loans) == borrows
