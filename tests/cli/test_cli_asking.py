"""While a person thinks, nobody waits for them; and with a document on stdout nobody is asked."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.clock import WallClock
from providers.sandbox.local import Sandbox
from state.lock import Lock
from tests.cli.conftest import Broker, Ran

ROOT = Path(__file__).parents[2]
READING = [
    ("check",), ("jobs",), ("jobs", "--quarantine"), ("offers",), ("plan",), ("status",), ("report",), ("forecast",),
    ("schedule",), ("history", "show"), ("state", "list"), ("state", "history"), ("run", "--dry-run"), ("run",),
]  # fmt: skip
PATIENCE_S = 60


@pytest.fixture
def clouds(demo: Path) -> Iterator[Sandbox]:
    """A cloud that several processes reach at once, as a real one; the demo's configuration points at it.

    One is enough here, and each process loads one SDK instead of three.
    """
    with Sandbox(start=WallClock().now(), speed=1.0) as sandbox:
        text = re.sub(r"^world = .*$", f'aws = "{sandbox.endpoint}"', demo.read_text(), flags=re.MULTILINE)
        demo.write_text(text[: text.index("[[gcp.project]]")])
        yield sandbox


class Person:
    """A shell at a terminal: a command that asks, and a person who answers when they see fit."""

    def __init__(self, *arguments: object) -> None:
        self.keyboard, terminal = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BROKER_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "broker", *map(str, arguments)],
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(terminal)
        self.seen = ""

    def wait_for_the_question(self) -> None:
        assert self._process.stderr is not None
        until = time.monotonic() + PATIENCE_S
        while "goes ahead: " not in self.seen:
            assert time.monotonic() < until, self.seen
            read = os.read(self._process.stderr.fileno(), 65536)
            assert read, f"it ended without asking: {self.seen}"
            self.seen += read.decode()

    def answer(self, word: str) -> Ran:
        os.write(self.keyboard, f"{word}\n".encode())
        return self.ended()

    def ended(self) -> Ran:
        out, err = self._process.communicate(timeout=PATIENCE_S)
        os.close(self.keyboard)
        return Ran(self._process.returncode, out.decode(), self.seen + err.decode())


def bought(clouds: Sandbox) -> int:
    return len(clouds.record.purchases())


@pytest.mark.parametrize("saved", [(), ("p.json",)], ids=["planned now", "saved"])
def test_the_lock_is_free_while_a_person_thinks_and_what_moved_meanwhile_counts(
    broker: Broker, demo: Path, clouds: Sandbox, saved: tuple[str, ...]
) -> None:
    """The run in between buys; the yes that comes after it must not buy again."""
    broker("plan", "-c", demo, "--out", "p.json")
    person = Person("apply", *saved, "-c", demo)
    person.wait_for_the_question()

    with Lock(demo.parent / "state.db", command="broker run", now=WallClock().now()):
        assert broker("status", "-c", demo).code == 0
    assert broker("run", "-c", demo).code == 0
    after_run = bought(clouds)
    ran = person.answer("yes")

    assert (ran.code, "serial" in ran.err) == (5, True), ran
    assert bought(clouds) == after_run > 0
    assert broker("run", "-c", demo, "--lock-timeout", "1s").code == 0, "a refused apply leaves no lock"


def test_a_yes_acts_and_any_other_word_does_not(broker: Broker, demo: Path, clouds: Sandbox) -> None:
    for word in ("y", ""):
        person = Person("apply", "-c", demo)
        person.wait_for_the_question()
        ran = person.answer(word)
        assert (ran.code, bought(clouds)) == (1, 0), ran
    person = Person("apply", "-c", demo)
    person.wait_for_the_question()
    assert person.answer("yes").code == 0
    assert bought(clouds) > 0


def test_what_was_bought_while_a_person_thought_is_not_given_back_with_the_rest(
    broker: Broker, demo: Path, clouds: Sandbox
) -> None:
    """They said yes to what they saw: one reservation, not those that a run bought since."""
    assert broker("plan", "--pool", "a100", "-c", demo, "--out", "p.json").code == 0
    assert broker("apply", "p.json", "-c", demo, "--yes").code == 0
    person = Person("release", "--all-ours", "-c", demo)
    person.wait_for_the_question()
    assert broker("run", "-c", demo).code == 0
    held = len(broker("status", "-c", demo, "--json").document["status"]["held"])

    ran = person.answer("yes")

    assert (ran.code, "has changed since this was shown" in ran.err) == (5, True), ran
    assert len(broker("status", "-c", demo, "--json").document["status"]["held"]) == held > 1


def test_what_is_gone_meanwhile_does_not_keep_the_rest(broker: Broker, demo: Path, clouds: Sandbox) -> None:
    assert broker("run", "-c", demo).code == 0
    ids = [each["reservation"]["id"] for each in broker("status", "-c", demo, "--json").document["status"]["held"]]
    person = Person("release", "--all-ours", "-c", demo)
    person.wait_for_the_question()
    assert broker("release", ids[0], "-c", demo, "--yes").code == 0
    assert person.answer("yes").code == 0
    assert "Nothing is held." in broker("status", "-c", demo).out


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_with_json_stdout_is_documents_and_nothing_else(broker: Broker, demo: Path, command: tuple[str, ...]) -> None:
    ran = broker(*command, "--json", "-v", "-c", demo)
    documents = documents_in(ran.out, by_line=command[0] == "run")
    assert documents
    assert all(document["format_version"] == 1 for document in documents)


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--ouput", "p.json"),
        ("nope",),
        ("plan", "--format", "yaml"),
        ("status", "a", "b"),
        ("run", "--max-seconds", "x"),
    ],
    ids=" ".join,
)
def test_with_json_what_cannot_be_understood_is_a_document_too(
    broker: Broker, demo: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broker(*command, "-c", demo).out == ""
    flagged = broker(*command, "--json", "-c", demo)
    monkeypatch.setenv("BROKER_JSON", "1")
    for ran in (flagged, broker(*command, "-c", demo)):
        (document,) = documents_in(ran.out, by_line=False)
        assert (ran.code, document["kind"], document["exit_code"]) == (1, "error", 1)
        assert document["what"] and "--help" in document["next_step"]


WRITING: list[tuple[str, ...]] = [
    ("init", "elsewhere"), ("state", "backup", "b.db"), ("state", "unlock"), ("history", "import", "past.csv"),
    ("history", "export", "out.csv"), ("history", "prune"), ("apply", "--yes"), ("release", "--all-ours", "--yes"),
    ("report", "--plan", "p.json"), ("schedule", "--look"), ("backtest", "past.csv"),
]  # fmt: skip


def test_with_json_every_other_command_answers_with_documents_too(broker: Broker, demo: Path) -> None:
    """In a row, as they find what the ones before have left; those that are told of errors are told in documents."""
    rows = [
        f"{day},ana,2026-07-{day:02}T12:00Z,2026-07-{day:02}T12:10Z,2026-07-{day:02}T15:10Z,done,8"
        for day in range(1, 29)
    ]
    Path("past.csv").write_text("\n".join(["id,user,submit,start,end,state,gpus", *rows]) + "\n")
    assert broker("plan", "--out", "p.json", "-c", demo).code == 0
    for command in WRITING:
        ran = broker(*command, "--json", "-c", demo)
        documents = documents_in(ran.out, by_line=command[0] in ("apply", "release"))
        assert documents and all(each["format_version"] == 1 for each in documents), command
        assert ran.code == 0, (command, ran)


def documents_in(out: str, *, by_line: bool) -> list[Any]:
    return [json.loads(line) for line in (out.splitlines() if by_line else [out])]


@pytest.mark.parametrize("command", [("apply",), ("release", "--all-ours")], ids=" ".join)
def test_with_json_nobody_is_asked_even_at_a_terminal(demo: Path, clouds: Sandbox, command: tuple[str, ...]) -> None:
    ran = Person(*command, "--json", "-c", demo).ended()
    (document,) = documents_in(ran.out, by_line=False)
    assert (ran.code, document["kind"], document["exit_code"]) == (1, "error", 1)
    assert "--yes" in ran.err
    assert "goes ahead" not in ran.err
    assert clouds.record.effects == []


def test_with_json_and_yes_the_events_alone_are_on_stdout(demo: Path, clouds: Sandbox) -> None:
    ran = Person("apply", "--yes", "--json", "-c", demo).ended()
    events = documents_in(ran.out, by_line=True)
    assert (ran.code, events[-1]["kind"]) == (0, "summary"), ran
    assert "Plan: " in ran.err
    assert bought(clouds) > 0
