"""The three clouds as the crash tests need them: how to reach the sandbox, what to buy, what its calls are named."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from broker.clock import Clock, FixedClock
from broker.model.place import Place, ProviderName, Scope
from providers.base import Provider
from providers.connect import connect
from providers.sandbox.local import AWS_ACCOUNT, Sandbox
from providers.settings import (
    AwsAccount,
    AwsSettings,
    AzureSettings,
    AzureSubscription,
    GcpProject,
    GcpSettings,
    ProviderSettings,
)

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
TIMEOUT = timedelta(seconds=5)


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """`account` is the sandbox's own word for it; operations are those that change what is held;
    `move_end` is empty where no end can be set.
    """

    place: Place
    account: str
    machine_type: str
    gpu_model: str
    price: Decimal
    reserve: str
    resize: str
    release: str
    denied: str
    states_end: bool
    move_end: str = ""

    @property
    def name(self) -> ProviderName:
        return self.place.scope.provider

    @property
    def moves_end(self) -> bool:
        return bool(self.move_end)

    def settings(self, endpoint: str) -> ProviderSettings:
        region = self.place.scope.region
        if self.name is ProviderName.AWS:
            account = AwsAccount(name=self.place.scope.account, regions=(region,))
            return AwsSettings(endpoint=endpoint, sandbox=True, timeout=TIMEOUT, accounts=(account,))
        if self.name is ProviderName.GCP:
            project = GcpProject(project=self.account, regions=(region,), end_settable=self.moves_end)
            return GcpSettings(endpoint=endpoint, sandbox=True, timeout=TIMEOUT, projects=(project,))
        subscription = AzureSubscription(subscription=self.account, regions=(region,), resource_group="capacity")
        return AzureSettings(endpoint=endpoint, sandbox=True, timeout=TIMEOUT, subscriptions=(subscription,))

    def connect(self, endpoint: str, clock: Clock) -> Provider:
        return connect(self.settings(endpoint), clock)


CLOUDS = (
    Cloud(
        place=Place(Scope(ProviderName.AWS, "main", "us-east-1"), "", "use1-az1"),
        account=AWS_ACCOUNT,
        machine_type="p4d.24xlarge",
        gpu_model="A100-40GB",
        price=Decimal("21.957642"),
        reserve="CreateCapacityReservation",
        resize="ModifyCapacityReservation",
        release="CancelCapacityReservation",
        denied="UnauthorizedOperation",
        states_end=True,
        move_end="ModifyCapacityReservation",
    ),
    Cloud(
        place=Place(Scope(ProviderName.GCP, "research", "us-central1"), "us-central1-a"),
        account="research",
        machine_type="a3-highgpu-8g",
        gpu_model="H100-80GB",
        price=Decimal("88.49"),
        reserve="reservations.insert",
        resize="reservations.resize",
        release="reservations.delete",
        denied="forbidden",
        states_end=False,
    ),
    Cloud(
        place=Place(Scope(ProviderName.AZURE, SUBSCRIPTION, "eastus"), "1"),
        account=SUBSCRIPTION,
        machine_type="Standard_ND96isr_H100_v5",
        gpu_model="H100-80GB",
        price=Decimal("98.32"),
        reserve="capacityReservations.createOrUpdate",
        resize="capacityReservations.update",
        release="capacityReservations.delete",
        denied="AuthorizationFailed",
        states_end=False,
    ),
)

ENDING = (CLOUDS[0], msgspec.structs.replace(CLOUDS[1], move_end="reservations.update"))
"""Clouds whose reservations can be given an end that is moved; at Google the project has to be let do it."""

_PREPARED: dict[tuple[Cloud, str], tuple[Provider, FixedClock]] = {}


def prepared(cloud: Cloud, endpoint: str, now: datetime) -> Provider:
    """A provider that is ready to be forked: its client made, no connection opened yet.

    Making an EC2 client takes a quarter of a second of CPU; without this it would be most of the crash matrix.
    """
    which = (cloud, endpoint)
    if which not in _PREPARED:
        clock = FixedClock(now)
        provider = cloud.connect(endpoint, clock)
        if cloud.name is ProviderName.AWS:
            _with_client(provider, cloud)
        _PREPARED[which] = (provider, clock)
    provider, clock = _PREPARED[which]
    clock.at = now
    return provider


def _with_client(aws: Any, cloud: Cloud) -> None:
    aws._wire._client(cloud.place.scope, "ec2", "DescribeCapacityReservations")


def preload() -> None:
    """Everything that a run imports, so that a forked one starts at once: it costs seconds a cloud."""
    with Sandbox() as sandbox:
        for cloud in CLOUDS:
            cloud.connect(sandbox.endpoint, sandbox.clock).reservations(cloud.place.scope)
