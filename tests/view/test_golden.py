"""Rendered output as it is, byte for byte. After a wanted change: GOLDEN=write pytest tests/view, and read the diff."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.apply.apply import Result
from broker.apply.settle import Settled
from broker.commands.events import Acted, Ended, FoundOut, Looked, News, Refused, Short
from broker.model.intent import IntentStatus, Outcome
from broker.report import By
from broker.view import history as histories
from broker.view import outlook as outlooks
from broker.view import plan as plans
from broker.view import report as reports
from broker.view import status as standings
from broker.view.events import event_json, event_text
from tests.view import values

GOLDEN = Path(__file__).parents[1] / "golden"
CONSUME = (("CapacityReservationId", "cr-0123456789abcdef0"), ("InstanceType", "p5.48xlarge"))
UNFILLED = Outcome(
    status=IntentStatus.UNFILLED,
    at=values.NOW,
    code="InsufficientInstanceCapacity",
    message="Insufficient capacity.",
    request_id="req-1",
)
EVENTS = (
    Looked(queued_jobs=41, reservations=2, offers=212, problems=("queue slurm: is older than 30 min",)),
    FoundOut(settled=Settled(intent=values.intents()[1], outcome=UNFILLED)),
    News(text="cr-1 in aws/main/us-east-1: gone"),
    Refused(refusal=values.plan().refusals[0]),
    Short(shortfall=values.plan().shortfalls[0]),
    Acted(result=Result(action=values.plan().actions[0], outcome=UNFILLED)),
    Ended(done=2, unfilled=1, refused=1, exit_code=3),
)

RENDERED: dict[str, Callable[[], str]] = {
    "plan.txt": lambda: plans.plan_text(values.plan(), values.SEEN, next_step=plans.how_to_act(values.plan())),
    "plan-verbose.txt": lambda: plans.plan_text(
        values.plan(), values.SEEN, next_step=plans.how_to_act(values.plan()), verbose=True
    ),
    "plan.md": lambda: plans.plan_markdown(values.plan(), values.SEEN),
    "plan.json": lambda: plans.plan_json(values.plan(), values.SEEN),
    "status.txt": lambda: standings.status_text(values.where_we_stand()),
    "status-verbose.txt": lambda: standings.status_text(values.where_we_stand(), verbose=True),
    "status.json": lambda: standings.status_json(values.where_we_stand()),
    "reservation.txt": lambda: standings.reservation_text(values.where_we_stand().held[1], CONSUME),
    "report.txt": lambda: reports.report_text(values.cost()),
    "report.md": lambda: reports.report_markdown(values.cost()),
    "report.csv": lambda: reports.report_csv(values.cost()),
    "report.json": lambda: reports.report_json(values.cost()),
    "plan-report.txt": lambda: outlooks.outlook_text(values.to_come(By.TENANT)),
    "plan-report.md": lambda: outlooks.outlook_markdown(values.to_come(By.POOL)),
    "plan-report.csv": lambda: outlooks.outlook_csv(values.to_come(By.RESERVATION)),
    "plan-report.json": lambda: outlooks.outlook_json(values.to_come(By.PROVIDER)),
    "history-import.txt": lambda: histories.imports_text(values.imports()),
    "history-import.json": lambda: histories.imports_json(values.imports()),
    "history.txt": lambda: histories.summary_text(values.remembered()),
    "history.json": lambda: histories.summary_json(values.remembered()),
    "events.txt": lambda: "\n".join(event_text(event) for event in EVENTS),
    "events.jsonl": lambda: "\n".join(event_json(event) for event in EVENTS),
}


@pytest.mark.parametrize("name", RENDERED)
def test_rendered_output_is_as_it_was(name: str) -> None:
    text = RENDERED[name]() + "\n"
    if os.environ.get("GOLDEN") == "write":
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in RENDERED if name.endswith(("json", "jsonl"))])
def test_documents_have_a_version_and_a_kind(name: str) -> None:
    texts = RENDERED[name]().splitlines() if name.endswith("jsonl") else [RENDERED[name]()]
    for document in map(json.loads, texts):
        assert document["format_version"] == 1
        assert document["kind"]


def test_no_golden_file_is_left_over() -> None:
    mine = {path.name for path in GOLDEN.iterdir() if path.is_file()}
    assert mine >= set(RENDERED)


def test_colour_is_only_beside_the_signs() -> None:
    def painted(text: str, colour: str) -> str:
        return f"<{colour}>{text}</>"

    text = plans.plan_text(values.plan(), values.SEEN, paint=painted)
    assert "<green>+</> reserve" in text
    assert "<red>-</> release" in text
    bare = text.replace("</>", "")
    for colour in ("green", "red", "yellow"):
        bare = bare.replace(f"<{colour}>", "")
    assert bare == plans.plan_text(values.plan(), values.SEEN)
