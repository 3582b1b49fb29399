"""What the history teaches of durations decides who is lent to; it is kept beside the state."""

import csv
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Broker
from tests.cli.test_cli_schedule import CONFIG

LEARNED = "state.durations.json"
QUEUE = (
    "id,tenant,user,submit,start,state,gpus,preemptible\n"
    "long,nlp,slow,2026-03-04T11:58:00Z,,pending,8,true\n"
    "short,nlp,quick,2026-03-04T11:59:00Z,,pending,8,true\n"
)
SHARES = ("--entitlement", "vision=8", "--entitlement", "nlp=0", "--capacity", 8)


def past(path: Path) -> Path:
    """400 jobs of two users of one tenant: one runs for minutes, the other for hours."""
    chance = random.Random(3)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "tenant", "user", "submit", "start", "end", "state", "gpus"))
        for number in range(400):
            submit = datetime(2026, 2, 1, tzinfo=UTC) + timedelta(hours=number)
            user, median_s = (("quick", 200), ("slow", 20_000))[number % 2]
            end = submit + timedelta(seconds=60 + median_s * chance.uniform(0.5, 2))
            rows.writerow((number, "nlp", user, submit, submit + timedelta(seconds=60), end, "done", 8))
    return path


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Path:
    (tmp_path / "queue.csv").write_text(QUEUE)
    (tmp_path / "broker.toml").write_text(CONFIG)
    (tmp_path / "q.csv").write_text(QUEUE)
    assert broker("history", "import", past(tmp_path / "past.csv")).code == 0
    return tmp_path


def lent(broker: Broker, *flags: object) -> list[str]:
    ran = broker("schedule", "q.csv", *SHARES, "--json", *flags)
    (pool,) = ran.document["schedule"]["pools"]
    return [order["job"].rpartition("/")[2] for order in pool["loans"]]


def test_whom_the_history_calls_quick_is_lent_to_first(broker: Broker, place: Path) -> None:
    assert lent(broker) == ["long"], "nothing was learned yet: in order of submit"
    broker("schedule", "--begin-again")
    assert lent(broker) == ["short"]


def test_what_was_learned_is_kept_with_its_span_and_for_its_owner(broker: Broker, place: Path) -> None:
    broker("schedule", "--look")
    assert not (place / LEARNED).exists()
    broker("schedule", "--begin-again")
    head = json.loads((place / LEARNED).read_bytes())
    assert (head["version"], head["seed"], head["trained_from"]) == (1, 0, "2026-02-01T00:00:00Z")
    assert (place / LEARNED).stat().st_mode & 0o777 == 0o600
    written = (place / LEARNED).stat().st_mtime_ns
    broker("schedule", "--begin-again")
    assert (place / LEARNED).stat().st_mtime_ns == written, "it is fresh: nothing is learned again"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[: len(text) // 2], "it is damaged"),
        (lambda text: text.replace(b'"tail_index":', b'"tail_index":9', 1), "it is damaged"),
        (lambda text: text.replace(b"leaf_value=", b"leaf_value=9", 1), "it is damaged"),
        (lambda text: text.replace(b'"version":1', b'"version":0', 1), "it is of version 0, not 1"),
        (lambda _: b"\xff\x00", "it is damaged"),
        (lambda _: b"", "it is damaged"),
    ],
    ids=["cut", "changed", "model", "older", "noise", "empty"],
)
def test_what_cannot_be_used_is_learned_anew_and_said(broker: Broker, place: Path, damage: object, why: str) -> None:
    broker("schedule", "--begin-again")
    good = (place / LEARNED).read_bytes()
    assert callable(damage)
    bad = damage(good)
    assert bad != good
    (place / LEARNED).write_bytes(bad)
    notes = broker("schedule", "--begin-again", "--json").document["schedule"]["notes"]
    assert f"{LEARNED} is not used: {why}; it is learned anew" in notes
    assert lent(broker) == ["short"]
    assert not any(
        "not used" in note for note in broker("schedule", "--begin-again", "--json").document["schedule"]["notes"]
    )


def test_what_is_old_is_learned_again(broker: Broker, place: Path) -> None:
    from broker.commands.kept_models import fresh
    from forecasts.lasting import Lasting
    from forecasts.stored import unseal

    broker("schedule", "--begin-again")
    model = unseal((place / LEARNED).read_bytes(), Lasting, version=1)
    then = datetime.fromtimestamp(model.until_s, UTC)
    assert fresh(model, then + timedelta(hours=23))
    assert not fresh(model, then + timedelta(hours=25))
    assert not fresh(model, then - timedelta(hours=1)), "the clock went back"


def test_a_folder_that_cannot_be_written_is_said(broker: Broker, place: Path) -> None:
    from broker.commands.kept_models import keep
    from forecasts.lasting import Lasting
    from forecasts.stored import unseal

    broker("schedule", "--begin-again")
    model = unseal((place / LEARNED).read_bytes(), Lasting, version=1)
    (line,) = keep(place / "gone" / LEARNED, model)
    assert line == f"{LEARNED} could not be written: No such file or directory"
