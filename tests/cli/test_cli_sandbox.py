"""What `broker sandbox` prints, pasted as it stands into a shell and into Python, each in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

THEN = {
    "boto3": """
        made = ec2.create_capacity_reservation(
            InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1)
        print(made["CapacityReservation"]["State"])
    """,
    "google-cloud-compute": """
        wanted = compute_v1.Reservation(
            name="mine", specific_reservation_required=True,
            specific_reservation=compute_v1.AllocationSpecificSKUReservation(
                count=1, instance_properties=compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
                    machine_type="a3-highgpu-8g")))
        begun = reservations.insert_unary(project="p", zone="us-central1-a", reservation_resource=wanted)
        operations.wait(project="p", zone="us-central1-a", operation=begun.name)
        print(reservations.get(project="p", zone="us-central1-a", reservation="mine").status)
    """,
    "azure-mgmt-compute": """
        compute.capacity_reservation_groups.create_or_update("rg", "group", {"location": "eastus", "zones": ["1"]})
        made = compute.capacity_reservations.begin_create_or_update("rg", "group", "mine", {
            "location": "eastus", "zones": ["1"], "sku": {"name": "Standard_NC24ads_A100_v4", "capacity": 1}}).result()
        print(made.provisioning_state)
    """,
}
"""What a user would do next with the names that the lines leave: buy one instance, and look."""

SAYS = {"boto3": "active", "google-cloud-compute": "READY", "azure-mgmt-compute": "Succeeded"}


class Told(NamedTuple):
    exports: str
    code: dict[str, str]
    url: str


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "sandbox", "--busy", "0"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        lines = [child.stdout.readline()]
        while "_sandbox/health" not in lines[-1]:
            lines.append(child.stdout.readline())
            assert lines[-1], child.stderr.read()
        yield taken_apart("".join(lines))
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
        assert child.wait(timeout=20) == 0
        assert said == "Serving until interrupted (Ctrl-C).\nStopped. Its clouds are gone with it.\n"


def taken_apart(text: str) -> Told:
    """Its sections are indented under a line that says what for."""
    sections = {
        head: textwrap.dedent(body) for head, body in re.findall(r"^For (.+):\n((?:  .*\n)+)", text, flags=re.MULTILINE)
    }
    exports = sections.pop("boto3 and the AWS command line")
    sections.pop("the broker, in broker.toml")
    return Told(exports, sections, text.rsplit("curl ", 1)[1].strip())


def ran(*command: str, **environment: str) -> str:
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("library", list(THEN))
def test_the_lines_for_each_library_work_in_a_program_of_their_own(told: Told, library: str) -> None:
    assert set(told.code) == set(THEN)
    program = told.code[library] + textwrap.dedent(THEN[library])
    assert ran(sys.executable, "-W", "ignore", "-c", program).strip() == SAYS[library]


def test_the_exports_point_boto3_and_the_command_line_there(told: Told) -> None:
    aws = Path(sys.executable).with_name("aws")
    asked = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'])"
    command = f'{told.exports}\n"{sys.executable}" "{aws}" ec2 describe-regions --output text\n'
    assert "us-east-1" in ran("sh", "-ec", command)
    assert ran("sh", "-ec", f'{told.exports}\n"{sys.executable}" -c "{asked}"').strip() == "123456789012"


def test_the_address_for_curl_answers(told: Told) -> None:
    asked = f"from urllib.request import urlopen; print(urlopen('{told.url}').status)"
    assert ran(sys.executable, "-c", asked).strip() == "200"
