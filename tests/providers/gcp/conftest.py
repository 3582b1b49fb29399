"""A sandbox and the real adapter on it, over the wire."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, ReserveRequest, ResizeRequest
from providers.gcp.adapter import Gcp
from providers.gcp.wire import Wire
from providers.sandbox.local import Sandbox
from providers.settings import GcpProject, GcpSettings

PROJECT = "research"
REGION = "us-central1"
ZONE = "us-central1-a"
LINEAGE = "0123456789ab"
SCOPE = Scope(ProviderName.GCP, PROJECT, REGION)
PLACE = Place(SCOPE, ZONE)
MACHINE = "a3-highgpu-8g"
END = datetime(2026, 3, 3, 8, tzinfo=UTC)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def gcp(sandbox: Sandbox) -> Gcp:
    return adapter(sandbox)


def adapter(sandbox: Sandbox, *, end_settable: bool = True, timeout: timedelta = timedelta(seconds=5)) -> Gcp:
    """The adapter does not pause between tries."""
    settings = GcpSettings(
        endpoint=sandbox.endpoint,
        sandbox=True,
        timeout=timeout,
        projects=(GcpProject(project=PROJECT, regions=(REGION, "europe-west4"), end_settable=end_settable),),
    )
    return Gcp(settings, Wire(settings, sleep=lambda seconds: None))


def reserve_request(
    key: str = "k1", count: int = 2, *, machine_type: str = MACHINE, targeted: bool = True, end: datetime | None = None
) -> ReserveRequest:
    return ReserveRequest(
        key=key,
        lineage=LINEAGE,
        place=PLACE,
        machine_type=machine_type,
        count=count,
        targeted=targeted,
        end=end,
        tags=(("team", "vision lab"), ("cost", "a=b")),
    )


def resize_request(id: str, from_count: int, to_count: int, key: str = "k2") -> ResizeRequest:
    return ResizeRequest(
        key=key, lineage=LINEAGE, place=PLACE, reservation_id=id, from_count=from_count, to_count=to_count
    )


def release_request(id: str, key: str = "k3") -> ReleaseRequest:
    return ReleaseRequest(key=key, lineage=LINEAGE, place=PLACE, reservation_id=id)


def end_request(id: str, to_end: datetime, from_end: datetime | None = None, key: str = "k4") -> EndRequest:
    return EndRequest(key=key, lineage=LINEAGE, place=PLACE, reservation_id=id, from_end=from_end, to_end=to_end)
