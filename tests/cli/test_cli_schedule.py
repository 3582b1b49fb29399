"""`broker schedule` on queue files."""

from pathlib import Path

import pytest

from tests.cli.conftest import Broker

HEADER = "id,tenant,submit,start,state,gpus,preemptible\n"
ROWS = (
    "own,vision,2026-03-04T10:00:00Z,2026-03-04T10:01:00Z,running,8,true\n"
    "due,nlp,2026-03-04T11:59:00Z,,pending,4,true\n"
    "more,vision,2026-03-04T11:59:30Z,,pending,2,true\n"
)


SHARES = ("--entitlement", "vision=8", "--entitlement", "nlp=8")


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    path = tmp_path / "queue.csv"
    path.write_text(HEADER + ROWS)
    return path


def test_decisions_as_json(broker: Broker, queue: Path) -> None:
    ran = broker("schedule", queue, *SHARES, "--json")
    assert ran.code == 0, ran.err
    assert ran.document["kind"] == "schedule"
    kinds = {each["job"]: each["kind"] for each in ran.document["decisions"]}
    assert kinds["due"] == "grant"
    assert ran.document["short_gpus"] == 0


def test_decisions_as_text_and_one_job_explained(broker: Broker, queue: Path) -> None:
    assert "grant" in broker("schedule", queue, *SHARES).out
    assert "8 of 8 GPUs" in broker("schedule", queue, *SHARES, "--explain", "own").out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--explain", "nobody"), "not known"),
        (("--pool", "nowhere"), "no such pool"),
        (("--entitlement", "x"), "TENANT=GPUS"),
    ],
)
def test_refusals(broker: Broker, queue: Path, flags: tuple[str, str], says: str) -> None:
    ran = broker("schedule", queue, *SHARES, *flags)
    assert ran.code == 1
    assert says in ran.err


def test_a_queue_that_cannot_be_read_is_not_empty(broker: Broker, tmp_path: Path) -> None:
    ran = broker("schedule", tmp_path / "missing.csv", *SHARES)
    assert ran.code == 1
    assert not ran.out
