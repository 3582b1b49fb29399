"""What an aborted run left behind in a cloud is taken up and given back; what is not ours is left where it is."""

from datetime import timedelta
from pathlib import Path

import pytest

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.local import Sandbox
from tests.cli.conftest import Broker
from tests.cli.test_cli_partly import alone, sandbox_with

POOL = Pool(ProviderName.AWS, "us-east-1", "use1-az1", "p5.48xlarge")


@pytest.fixture
def idle(broker: Broker, demo: Path) -> Path:
    """Nobody wants anything."""
    queue = demo.parent / "queue.csv"
    queue.write_text(queue.read_text().splitlines()[0] + "\n")
    return demo


def bought(demo: Path, **tags: str) -> str:
    """As a process that died at once would have left it: in the cloud, and in no ledger."""
    sandbox = Sandbox(path=demo.parent / "world.json")
    id = sandbox.market.new_id("cr-", 17)
    marks = {f"broker:{name}": value for name, value in tags.items()}
    sandbox.market.reserve(POOL, "123456789012", 2, id=id, tags=marks, details={"criteria": "targeted"})
    sandbox.save(demo.parent / "world.json")
    return id


def later(demo: Path, by: timedelta) -> None:
    sandbox = Sandbox(path=demo.parent / "world.json")
    sandbox.advance(by)
    sandbox.save(demo.parent / "world.json")


def alive(demo: Path) -> set[str]:
    return {each.id for each in Sandbox(path=demo.parent / "world.json").market.holdings() if each.state.live}


def test_a_purchase_in_no_ledger_is_adopted_shown_unused_and_given_back(broker: Broker, idle: Path) -> None:
    lineage = broker("status", "-c", idle, "--json").document["status"]["lineage"]
    leaked = bought(idle, lineage=lineage, key="k1")
    foreign = {bought(idle, lineage="fedcba987654", key="k1"), bought(idle)}
    later(idle, timedelta(minutes=20))

    first = broker("run", "-c", idle)

    assert first.code == 0, first
    assert any(leaked in line and "adopted: a purchase of ours" in line for line in first.out.splitlines())
    unused = broker("status", "--unused", "-c", idle, "--json").document["status"]
    assert [each["reservation"]["id"] for each in unused["held"]] == [leaked]
    assert {each["id"] for each in unused["others"]} == foreign
    later(idle, timedelta(hours=2))
    (proposed,) = [
        action
        for action in broker("plan", "-c", idle, "--json").document["plan"]["actions"]
        if action["type"] != "keep"
    ]
    assert (proposed["type"], proposed["reservation"]["id"]) == ("release", leaked)
    assert alive(idle) == {leaked, *foreign}
    assert broker("run", "-c", idle).code == 0
    assert alive(idle) == foreign


def test_what_idles_costs_what_it_would_if_it_were_used_and_the_plan_says_so(broker: Broker, idle: Path) -> None:
    """Ten GPUs' worth of floor and no job: all of it idles, for as long as it is held at least."""
    idle.write_text(idle.read_text().replace('gpu = ["h100"]\n', 'gpu = ["h100"]\nmin_gpus = 10\n', 1))
    document = broker("plan", "-c", idle, "--json").document["plan"]
    rate = sum(float(action["usd_per_hour"]) for action in document["actions"])
    worst = sum(float(action["usd_idle_at_worst"]) for action in document["actions"])
    (hours,) = {float(action["hours"]) for action in document["actions"]}
    assert sum(action["request"]["count"] for action in document["actions"]) == 10
    assert worst == pytest.approx(rate * hours)
    assert f"Idle at worst ${worst:,.2f}" in broker("plan", "-c", idle).out


def test_what_grew_a_moment_ago_and_is_not_listed_so_yet_is_given_back_all_the_same(broker: Broker, demo: Path) -> None:
    """The cloud's list lags behind; what a person is shown is what the ledger knows, and so is what is given back."""
    alone(demo, "aws")
    assert broker("run", "-c", demo).code == 0
    queue = demo.parent / "queue.csv"
    queue.write_text(queue.read_text() + queue.read_text().splitlines()[1].replace("1001", "2001") + "\n")
    hidden = Rule(kind=FaultKind.HIDDEN, operation="ModifyCapacityReservation", delay_s=240)
    sandbox_with(demo, hidden, later=timedelta(minutes=6))
    assert broker("run", "-c", demo).code == 0

    ran = broker("release", "--all-ours", "--yes", "-c", demo)

    assert ran.code == 0, ran
    later(demo, timedelta(minutes=6))
    assert alive(demo) == set()
