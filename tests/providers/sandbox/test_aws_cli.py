"""The AWS command line, which we did not write, against the sandbox."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.model.place import ProviderName
from providers.sandbox.local import Sandbox
from providers.sandbox.record import EffectKind
from providers.sandbox.supply import PoolRule

AWS = Path(sys.executable).with_name("aws")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def aws(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_MAX_ATTEMPTS": "1", **sandbox.env()}
    command = [sys.executable, str(AWS), "--output", "json", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def answer(sandbox: Sandbox, *words: str) -> Any:
    done = aws(sandbox, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else {}


def test_it_creates_describes_modifies_and_cancels(sandbox: Sandbox) -> None:
    made = answer(
        sandbox,
        *("ec2", "create-capacity-reservation", "--instance-type", "p5.48xlarge", "--instance-platform", "Linux/UNIX"),
        *("--availability-zone", "us-east-1a", "--instance-count", "2", "--client-token", "once"),
        *("--end-date-type", "limited", "--end-date", "2026-03-03T08:00:00Z"),
        *("--tag-specifications", "ResourceType=capacity-reservation,Tags=[{Key=team,Value=vision lab}]"),
    )["CapacityReservation"]
    id = made["CapacityReservationId"]
    assert (made["State"], made["TotalInstanceCount"], made["EndDateType"]) == ("active", 2, "limited")
    assert made["Tags"] == [{"Key": "team", "Value": "vision lab"}]

    assert answer(
        sandbox, "ec2", "modify-capacity-reservation", "--capacity-reservation-id", id, "--instance-count", "3"
    )["Return"]

    found = answer(sandbox, "ec2", "describe-capacity-reservations", "--filters", "Name=tag:team,Values=vision*")
    assert [(r["CapacityReservationId"], r["TotalInstanceCount"]) for r in found["CapacityReservations"]] == [(id, 3)]

    assert answer(sandbox, "ec2", "cancel-capacity-reservation", "--capacity-reservation-id", id)["Return"]
    (gone,) = answer(sandbox, "ec2", "describe-capacity-reservations", "--capacity-reservation-ids", id)[
        "CapacityReservations"
    ]
    assert gone["State"] == "cancelled"
    kinds = [effect.kind for effect in sandbox.record.effects]
    assert kinds == [EffectKind.RESERVE, EffectKind.RESIZE, EffectKind.RELEASE]


def test_it_is_told_no_in_the_clouds_own_words(sandbox: Sandbox) -> None:
    sandbox.market.set_capacity(PoolRule(provider=ProviderName.AWS, zone="use1-az2"))

    refused = aws(
        sandbox,
        *("ec2", "create-capacity-reservation", "--instance-type", "p5.48xlarge", "--instance-platform", "Linux/UNIX"),
        *("--availability-zone", "us-east-1b", "--instance-count", "1"),
    )

    assert refused.returncode != 0
    assert "(InsufficientInstanceCapacity)" in refused.stderr
