"""What `broker status ID` prints, a job launches with; and it lands in that reservation and nowhere else."""

from pathlib import Path

import pytest

from providers.sandbox.local import Sandbox
from tests.cli.conftest import Broker
from tests.cli.launching import WAYS, flags_of
from tests.cli.test_cli_partly import alone


@pytest.mark.parametrize("targeted", [True, False], ids=["targeted", "open"])
@pytest.mark.parametrize(("cloud", "way"), WAYS, ids="-".join)
def test_what_is_printed_launches_an_instance_in_that_reservation(
    broker: Broker, demo: Path, cloud: str, way: str, targeted: bool
) -> None:
    if cloud == "azure" and not targeted:
        pytest.skip("a group of ours is Targeted: whoever uses it names it")
    alone(demo, cloud)
    if not targeted:
        demo.write_text(demo.read_text().replace("[purchase]", "[purchase]\ntargeted = false"))
    assert broker("run", "-c", demo).code == 0
    (held,) = broker("status", "-c", demo, "--json").document["status"]["held"]
    told = broker("status", held["reservation"]["id"], "-c", demo, "--json").document["consume_with"]

    with Sandbox(path=demo.parent / "world.json") as sandbox:
        WAYS[cloud, way](sandbox.endpoint, told)
        (holding,) = sandbox.market.holdings()
        assert [instance.holding for instance in sandbox.market.instances()] == [holding.id]

    broker("run", "-c", demo)
    (held,) = broker("status", "-c", demo, "--json").document["status"]["held"]
    assert held["reservation"]["used"] == 1


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_without_what_is_printed_an_instance_lands_outside(broker: Broker, demo: Path, cloud: str) -> None:
    """The sandbox tells the two apart: a target that is lost on the way is seen, and not taken for a launch into it."""
    alone(demo, cloud)
    broker("run", "-c", demo)
    (held,) = broker("status", "-c", demo, "--json").document["status"]["held"]
    told = broker("status", held["reservation"]["id"], "-c", demo, "--json").document["consume_with"]
    lost = {
        "aws": ("aws", "CapacityReservationId", "CapacityReservationID"),
        "gcp": ("gcloud", "--reservation-affinity=specific", "--reservation-affinity=any"),
        "azure": ("az", "/broker-", "/other-"),
    }[cloud]
    name, right, wrong = lost
    assert right in told[name]

    with Sandbox(path=demo.parent / "world.json") as sandbox:
        try:
            WAYS[cloud, "command"](sandbox.endpoint, told | {name: told[name].replace(right, wrong)})
        except Exception:
            assert sandbox.market.instances() == []
        assert all(instance.holding is None for instance in sandbox.market.instances())


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_the_printed_command_line_leaves_open_only_what_is_the_users(broker: Broker, demo: Path, cloud: str) -> None:
    """Image, name and resource group are the job's own; all else is there, and the text says the same as the JSON."""
    alone(demo, cloud)
    broker("run", "-c", demo)
    (held,) = broker("status", "-c", demo, "--json").document["status"]["held"]
    which = held["reservation"]["id"]
    told = broker("status", which, "-c", demo, "--json").document["consume_with"]
    command = told[{"aws": "aws", "gcp": "gcloud", "azure": "az"}[cloud]]
    required = {
        "aws": {"region", "instance-type", "placement", "capacity-reservation-specification", "image-id"},
        "gcp": {"project", "zone", "machine-type", "reservation-affinity", "reservation", "maintenance-policy"},
        "azure": {
            "resource-group", "name", "image", "subscription", "location", "size", "capacity-reservation-group",
        },
    }[cloud]  # fmt: skip
    assert required <= set(flags_of(command))
    text = broker("status", which, "-c", demo).out
    assert all(value in text for value in told.values())


@pytest.mark.parametrize("wrong", ["Targeted", "target", "targetted"])
def test_a_key_of_the_configuration_in_the_wrong_case_or_spelling_is_an_error(
    broker: Broker, demo: Path, wrong: str
) -> None:
    """A key that nobody reads would be dropped without a word."""
    demo.write_text(demo.read_text().replace("[purchase]", f"[purchase]\n{wrong} = false"))
    ran = broker("plan", "-c", demo)
    assert (ran.code, f'purchase.{wrong}: unknown key; did you mean "targeted"?' in ran.err) == (1, True)
