"""`broker schedule`: on the configured queue, remembered; on queue files, supposed."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.errors import Exit
from state.lock import Lock
from tests.cli.conftest import Broker

HEADER = "id,tenant,submit,start,state,gpus,preemptible\n"
ROWS = (
    "own,vision,2026-03-04T10:00:00Z,2026-03-04T10:01:00Z,running,8,true\n"
    "due,nlp,2026-03-04T11:59:00Z,,pending,4,true\n"
    "more,vision,2026-03-04T11:59:30Z,,pending,2,true\n"
)
SHARES = ("--entitlement", "vision=8", "--entitlement", "nlp=8")
CONFIG = """
[[queue]]
name = "files"
file = "queue.csv"
cluster = "c"
[[pool]]
name = "h100"
gpu = "h100"
default = true
[[pool.own]]
nodes = 2
gpus_per_node = 8
[[tenant]]
name = "vision"
entitlements = { h100 = 8 }
[[tenant]]
name = "nlp"
entitlements = { h100 = 8 }
"""


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    path = tmp_path / "queue.csv"
    path.write_text(HEADER + ROWS)
    return path


@pytest.fixture
def own(tmp_path: Path, queue: Path) -> Path:
    """Own nodes, no cloud, and not even a state."""
    path = tmp_path / "broker.toml"
    path.write_text(CONFIG)
    return path


def test_files_with_supposed_entitlements_need_no_configuration(broker: Broker, queue: Path) -> None:
    ran = broker("schedule", queue, *SHARES, "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["format_version"], ran.document["kind"]) == (1, "schedule")
    (pool,) = ran.document["schedule"]["pools"]
    assert [each["job"] for each in pool["grants"]] == ["queue.csv/due"]
    (loan,) = pool["loans"]
    assert (loan["job"], loan["lenders"]) == ("queue.csv/more", [{"tenant": "nlp", "gpus": 2}])
    assert (pool["capacity_gpus"], pool["short_gpus"]) == (16, 0)
    assert not list(queue.parent.glob("*.schedule.json"))


def test_text_and_one_job_explained(broker: Broker, queue: Path) -> None:
    said = broker("schedule", queue, *SHARES).out
    assert "+ grant    queue.csv/due  nlp  4 GPUs  lag 0 s" in said
    assert "~ loan     queue.csv/more  vision  2 GPUs" in said
    assert "Orders: 1 grant, 1 loan, 0 reclaims. Nothing was started or stopped" in said
    assert "it is owed 8 GPUs" in broker("schedule", queue, *SHARES, "--explain", "own").out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--explain", "nobody"), "no live job nobody"),
        (("--pool", "nowhere"), 'there is no pool "nowhere"'),
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
    assert "NOT DECIDED" in ran.out


def test_own_nodes_without_any_cloud_or_state_and_orders_that_stand(broker: Broker, own: Path) -> None:
    first = broker("schedule", "--json").document["schedule"]["pools"][0]
    assert first["slots"] == [{"source": "own nodes 0", "gpus": 16}]
    assert [(each["job"], each["new"]) for each in first["grants"]] == [("c/due", True)]
    assert first["loans"] == []
    again = broker("schedule", "--json").document["schedule"]["pools"][0]
    assert [(each["job"], each["new"]) for each in again["grants"]] == [("c/due", False)]
    kept = own.with_name("state.schedule.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_bytes())["format_version"] == 1


def test_a_mere_look_remembers_nothing(broker: Broker, own: Path) -> None:
    assert broker("schedule", "--look").code == 0
    assert not own.with_name("state.schedule.json").exists()
    broker("schedule")
    before = own.with_name("state.schedule.json").read_bytes()
    broker("schedule", "--look", "--explain", "due")
    assert own.with_name("state.schedule.json").read_bytes() == before


def test_a_damaged_memory_is_named_with_what_to_do(broker: Broker, own: Path) -> None:
    own.with_name("state.schedule.json").write_text("{")
    ran = broker("schedule")
    assert (ran.code, ran.out) == (1, "")
    assert "broker schedule --begin-again" in ran.err
    assert broker("schedule", "--begin-again").code == 0


def test_an_unknown_class_cannot_be_trusted(broker: Broker, own: Path) -> None:
    broker("schedule")
    assert 'no class of jobs "vision/-/x"' in broker("schedule", "--trust", "vision/-/x").err
    assert broker("schedule", "--trust", "vision/-/-").code == 0


def test_verbose_shows_tenants_and_classes(broker: Broker, own: Path) -> None:
    said = broker("schedule", "-v").out
    assert "tenant  promised  may lend  borrows  owed  held  early  lent  queued" in said
    assert re.search(r"vision/-/- +yes +not measured +not measured", said)


def test_a_second_look_at_once_is_refused_with_the_name_of_the_first(broker: Broker, own: Path) -> None:
    own.write_text('lock_timeout = "0s"\n' + own.read_text())
    with Lock(own.with_name("state.schedule.json"), command="another look", now=datetime(2026, 3, 4, tzinfo=UTC)):
        ran = broker("schedule")
        assert broker("schedule", "--look").code == 0
    assert ran.code == Exit.LOCKED
    assert "another look" in ran.err


def test_a_pool_whose_queue_is_not_read_leaves_the_others_decided(broker: Broker, own: Path) -> None:
    more = """
[[queue]]
name = "gone"
file = "gone.csv"
pools = ["a100"]
[[pool]]
name = "a100"
gpu = "a100-80gb"
[[pool.own]]
nodes = 1
gpus_per_node = 8
"""
    own.write_text(own.read_text().replace('cluster = "c"', 'cluster = "c"\npools = ["h100"]') + more)
    ran = broker("schedule")
    assert ran.code == Exit.PARTLY_DONE
    assert "pool a100: NOT DECIDED: job source gone is unknown" in ran.out
    assert "+ grant    c/due" in ran.out
    assert broker("schedule", "--pool", "a100").code == Exit.ERROR
    assert broker("schedule", "--pool", "h100").code == Exit.OK
