"""A sandbox and the real adapter on it, over the wire."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from providers.aws.adapter import Aws
from providers.aws.wire import Wire
from providers.sandbox.local import Sandbox
from providers.settings import AwsAccount, AwsSettings

SCOPE = Scope(ProviderName.AWS, "main", "us-east-1")
PLACE = Place(SCOPE, "us-east-1a", "use1-az1")
LINEAGE = "0123456789ab"
CREATE, MODIFY, CANCEL = "CreateCapacityReservation", "ModifyCapacityReservation", "CancelCapacityReservation"
DESCRIBE = "DescribeCapacityReservations"
ACCOUNTS = (
    AwsAccount(name="main", regions=("us-east-1", "us-west-2")),
    AwsAccount(name="lab", regions=("us-east-1",), role_arn="arn:aws:iam::210987654321:role/broker"),
)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def waits() -> list[float]:
    """The seconds that the adapter would have waited for."""
    return []


@pytest.fixture
def aws(sandbox: Sandbox, waits: list[float]) -> Aws:
    return adapter(sandbox, waits)


def adapter(sandbox: Sandbox, waits: list[float] | None = None) -> Aws:
    settings = AwsSettings(endpoint=sandbox.endpoint, sandbox=True, accounts=ACCOUNTS)
    waited: list[float] = [] if waits is None else waits
    return Aws(settings, sandbox.clock, Wire(settings, sandbox.clock, sleep=waited.append))


def reserve_request(
    key: str = "k1",
    count: int = 2,
    *,
    place: Place = PLACE,
    machine_type: str = "p5.48xlarge",
    targeted: bool = True,
    end: datetime | None = None,
    match: tuple[tuple[str, str], ...] = (),
) -> ReserveRequest:
    return ReserveRequest(
        key=key,
        lineage=LINEAGE,
        place=place,
        machine_type=machine_type,
        count=count,
        targeted=targeted,
        end=end,
        match=match,
        tags=(("team", "vision lab"),),
    )


def resize_request(id: str, before: int, after: int, key: str = "k2") -> ResizeRequest:
    return ResizeRequest(key=key, lineage=LINEAGE, place=PLACE, reservation_id=id, from_count=before, to_count=after)


def release_request(id: str) -> ReleaseRequest:
    return ReleaseRequest(key="k3", lineage=LINEAGE, place=PLACE, reservation_id=id)


def end_request(id: str, end: datetime) -> EndRequest:
    return EndRequest(key="k4", lineage=LINEAGE, place=PLACE, reservation_id=id, from_end=None, to_end=end)
