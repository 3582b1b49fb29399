"""What the sandbox prints for pointing a client at it works when it is pasted."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from providers.sandbox.local import Sandbox

ASK: dict[str, Callable[[dict[str, Any]], Any]] = {
    "boto3": lambda names: names["ec2"].describe_regions()["Regions"],
    "google-cloud-compute": lambda names: [
        *names["reservations"].list(project="p", zone="us-central1-a"),
        *names["operations"].list(project="p", zone="us-central1-a"),
        "asked",
    ],
    "azure-mgmt-compute": lambda names: [
        *names["compute"].capacity_reservation_groups.list_by_subscription(),
        *names["compute"].resource_skus.list(),
    ],
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def test_there_are_lines_for_every_sdk(sandbox: Sandbox) -> None:
    assert set(sandbox.code_lines()) == set(ASK)


@pytest.mark.parametrize("sdk", list(ASK))
def test_the_lines_work_as_they_are(sandbox: Sandbox, sdk: str) -> None:
    names: dict[str, Any] = {}
    exec(sandbox.code_lines()[sdk], names)
    assert ASK[sdk](names)
    assert sandbox.record.calls


def test_the_variables_point_boto3_here(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3

    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    assert boto3.Session().client("sts").get_caller_identity()["Account"] == "123456789012"
