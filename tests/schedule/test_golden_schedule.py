"""What `broker schedule` prints, byte for byte. After a wanted change: GOLDEN=write pytest tests/schedule."""

import os
from pathlib import Path

import pytest

from broker.commands.scheduling import Made
from broker.model.snapshot import Trust
from broker.schedule import explaining
from broker.schedule.step import look
from broker.view.schedule import schedule_json, schedule_text
from tests.schedule.cluster import SETTINGS, job, looked, policy, running, seen, tenant, watched

GOLDEN = Path(__file__).parents[1] / "golden"
RULES = policy(tenant("vision", 8), tenant("nlp", 8, max_lent=(("h100", 6),)), tenant("audio", 4), nodes=3)
HOUR = 3636.0


def story() -> tuple[Made, Made]:
    """Loans, a reclaim under way and an overdue one, a grant, an order that stands; and one job explained."""
    memory = watched(RULES)
    own = job("own", "vision", 8, HOUR)
    more = [job(f"more{number}", "vision", 4, HOUR, user=f"u{number}") for number in range(3)]
    looked(memory, HOUR + 10, own, *more, rules=RULES)
    own = running("own", "vision", 8, HOUR, HOUR + 11)
    more = [
        running(f"more{number}", "vision", 4, HOUR, HOUR + 12, user=f"u{number}", node_names=("n2",))
        for number in range(3)
    ]
    looked(memory, HOUR + 60, own, *more, job("first", "nlp", 8, HOUR + 50), rules=RULES)
    queue = [own, *more, job("first", "nlp", 8, HOUR + 50), job("next", "audio", 4, HOUR + 200)]
    found = look(memory, seen(HOUR + 300, *queue), RULES, SETTINGS)
    explained = explaining.explain(memory, "more2", ())
    return Made(schedule=found), Made(schedule=found, explained=explained)


def unread() -> Made:
    return Made(schedule=look(watched(RULES), seen(HOUR + 10, trust=Trust.UNKNOWN), RULES, SETTINGS))


RENDERED = {
    "schedule.txt": lambda: schedule_text(story()[0]),
    "schedule-verbose.txt": lambda: schedule_text(story()[0], verbose=True),
    "schedule.json": lambda: schedule_json(story()[0]),
    "schedule-unread.txt": lambda: schedule_text(unread()),
    "schedule-job.txt": lambda: schedule_text(story()[1]),
    "schedule-job.json": lambda: schedule_json(story()[1]),
}


@pytest.mark.parametrize("name", RENDERED)
def test_the_schedule_is_rendered_as_it_was(name: str) -> None:
    text = RENDERED[name]() + "\n"
    if os.environ.get("GOLDEN") == "write":
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")
