"""The matrix can fail: without the intent, without the key on the resource, or with the SDKs' retries on, it does."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.apply.boundary import Boundary
from broker.model.intent import Intent, Outcome
from broker.model.place import ProviderName, Scope
from broker.model.request import Request, ReserveRequest
from broker.model.reservation import Reservation
from providers.base import Provider, Seen, Sighting
from providers.sandbox.local import Sandbox
from state.store import Store
from tests.crash import clouds
from tests.crash.cell import Cell, Mode, Stage, Wish, survive
from tests.crash.clouds import CLOUDS, Cloud

QUICK = (ProviderName.AZURE,)
on_each_cloud = pytest.mark.parametrize(
    "cloud",
    [pytest.param(c, id=c.name, marks=[] if c.name in QUICK else [pytest.mark.crash]) for c in CLOUDS],
)


def cell(cloud: Cloud, mode: Mode, boundary: Boundary) -> Cell:
    return Cell(cloud=cloud, wish=Wish.RESERVE, mode=mode, boundary=boundary)


class Forgetful(Store):
    """Writes an intent only when its outcome is known."""

    _unwritten: Intent | None = None

    def intend(self, intent: Intent) -> None:
        self._unwritten = intent

    def conclude(self, key: str, outcome: Outcome, *, reservation: Reservation | None = None) -> bool:
        if self._unwritten is not None:
            super().intend(self._unwritten)
        return super().conclude(key, outcome, reservation=reservation)


@on_each_cloud
def test_without_the_intent_record_the_matrix_fails(cloud: Cloud, sandbox: Sandbox, tmp_path: Path) -> None:
    honest = Stage(sandbox, cloud, tmp_path / "honest.db")
    new = sandbox.world.saved()
    survive(honest, cell(cloud, Mode.LATER, Boundary.AFTER_CALL))
    sandbox.world.restore(new)
    forgetful = Stage(sandbox, cloud, tmp_path / "state.db", store=Forgetful)
    with pytest.raises(AssertionError, match=r"duplicate|more than was wanted"):
        survive(forgetful, cell(cloud, Mode.LATER, Boundary.AFTER_CALL))


class Keyless:
    """Purchases bear no key and no lineage: whose they are cannot be told, and none can be found again."""

    def __init__(self, real: Provider) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def reservations(self, scope: Scope) -> tuple[Reservation, ...]:
        return tuple(msgspec.structs.replace(r, owner=None) for r in self._real.reservations(scope))

    def look(self, request: Request) -> Sighting:
        return Sighting(seen=Seen.NOT_YET) if isinstance(request, ReserveRequest) else self._real.look(request)


@on_each_cloud
def test_without_the_key_on_the_resource_the_matrix_fails(cloud: Cloud, sandbox: Sandbox, tmp_path: Path) -> None:
    stage = Stage(sandbox, cloud, tmp_path / "state.db", wrap=Keyless)
    with pytest.raises(AssertionError, match=r"duplicate|more than was wanted"):
        survive(stage, cell(cloud, Mode.KILLED, Boundary.AFTER_CALL))


@on_each_cloud
def test_with_the_sdks_retries_on_the_matrix_fails(
    cloud: Cloud, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clouds, "_PREPARED", {})
    _turn_retries_on(cloud.name, monkeypatch)
    stage = Stage(sandbox, cloud, tmp_path / "state.db")
    with pytest.raises(AssertionError, match="sent more than once"):
        survive(stage, cell(cloud, Mode.REPLY_LOST, Boundary.AFTER_OUTCOME))


def _turn_retries_on(name: ProviderName, patch: pytest.MonkeyPatch) -> None:
    """As each SDK has them by default, or offers them."""
    if name is ProviderName.AWS:
        from botocore.config import Config

        patch.setattr("providers.aws.wire.Config", lambda **given: Config(**{**given, "retries": None}))
    elif name is ProviderName.AZURE:
        from azure.core.pipeline.policies import RetryPolicy

        patch.setattr("providers.azure.client.sdk_retries", RetryPolicy)
    else:
        _retry_on_compute_engine(patch)


def _retry_on_compute_engine(patch: pytest.MonkeyPatch) -> None:
    from google.api_core.retry import Retry
    from google.cloud.compute_v1 import ReservationsClient

    plain = ReservationsClient.insert_unary

    def insert(self: Any, *args: Any, **given: Any) -> Any:
        return plain(self, *args, **{**given, "retry": Retry(initial=0.01)})

    patch.setattr(ReservationsClient, "insert_unary", insert)
