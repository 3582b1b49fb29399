"""A purchase of which a cloud delivers a part: from the run that made it to the run that makes up for it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.local import Sandbox
from tests.cli.conftest import Broker

BUYING = ("CreateCapacityReservation", "reservations.insert", "capacityReservations.createOrUpdate")


def alone(demo: Path, cloud: str) -> None:
    """One job of two nodes, and one cloud to buy them from."""
    tables = {"aws": "[[aws.account]]", "gcp": "[[gcp.project]]", "azure": "[[azure.subscription]]"}
    text = demo.read_text()
    for name, table in tables.items():
        if name != cloud:
            start = text.index(table)
            end = text.find("\n\n", start)
            text = text[:start] + (text[end:] if end >= 0 else "")
    demo.write_text(text)
    queue = demo.parent / "queue.csv"
    lines = queue.read_text().splitlines()
    queue.write_text("\n".join([lines[0], next(line for line in lines if "h100" in line)]) + "\n")


def sandbox_with(demo: Path, *rules: Rule, later: timedelta = timedelta(seconds=1)) -> None:
    world = demo.parent / "world.json"
    sandbox = Sandbox(path=world)
    sandbox.world.faults.clear()
    for rule in rules:
        sandbox.world.faults.add(rule)
    sandbox.advance(later)
    sandbox.save(world)


def there(demo: Path) -> int:
    """What the cloud itself holds."""
    return sum(each.there for each in Sandbox(path=demo.parent / "world.json").market.holdings() if each.state.live)


def known(broker: Broker, demo: Path) -> int:
    """What the ledger takes for supply."""
    held: list[Any] = broker("status", "-c", demo, "--json").document["status"]["held"]
    counts = [each["reservation"] for each in held]
    return sum(each["count"] if each["assured"] is None else each["assured"] for each in counts)


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_what_is_delivered_in_part_is_said_and_is_made_up_for_once(broker: Broker, demo: Path, cloud: str) -> None:
    alone(demo, cloud)
    (planned,) = broker("plan", "-c", demo, "--json").document["plan"]["actions"]
    wanted = planned["request"]["count"]
    assert wanted >= 2
    sandbox_with(demo, *(Rule(kind=FaultKind.PARTLY, operation=name, count=wanted - 1) for name in BUYING))

    first = broker("run", "-c", demo)

    assert (first.code, f"partly: {wanted - 1} of {wanted} instances" in first.out) == (3, True), first
    assert there(demo) == known(broker, demo) == wanted - 1
    warnings = broker("status", "-c", demo, "--json").document["status"]["warnings"]
    assert any(f"{wanted - 1} of {wanted} " in warning for warning in warnings), warnings

    sandbox_with(demo, later=timedelta(minutes=6))
    second, third = broker("run", "-c", demo), broker("run", "-c", demo)
    assert (second.code, third.code) == (0, 0), (second, third)
    assert there(demo) == known(broker, demo) == wanted
    assert "nothing to do" in third.out


GROWING = ("ModifyCapacityReservation", "reservations.resize", "capacityReservations.update")


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_growth_that_comes_in_part_is_said_and_is_made_up_for(broker: Broker, demo: Path, cloud: str) -> None:
    """A second job of two nodes comes; its reservation is to grow by as many, and gets one less."""
    alone(demo, cloud)
    assert broker("run", "-c", demo).code == 0
    before = there(demo)
    queue = demo.parent / "queue.csv"
    first = queue.read_text().splitlines()[1]
    queue.write_text(queue.read_text() + first.replace("1001", "2001") + "\n")
    sandbox_with(demo, later=timedelta(minutes=6))
    actions = broker("plan", "-c", demo, "--json").document["plan"]["actions"]
    (growth,) = [each for each in actions if each["type"] != "keep"]
    assert growth["type"] == "resize"
    wanted = growth["request"]["to_count"]
    delivered = wanted - before - 1
    sandbox_with(demo, *(Rule(kind=FaultKind.PARTLY, operation=name, count=delivered) for name in GROWING))

    assert broker("run", "-c", demo).code in (0, 3), "a cloud may say only later that it was less"
    sandbox_with(demo, later=timedelta(minutes=6))
    broker("run", "-c", demo)

    assert there(demo) == known(broker, demo) == wanted
    assert len(broker("status", "-c", demo, "--json").document["status"]["unsettled"]) == 0
    third = broker("run", "-c", demo)
    assert (third.code, "nothing to do" in third.out) == (0, True)
