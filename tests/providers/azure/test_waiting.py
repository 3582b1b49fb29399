"""Waiting for long-running operations: as long as patience lasts, and not after it."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from broker.model.place import ProviderName
from broker.model.reservation import ReservationState
from providers.azure import polling
from providers.azure.calls import Calls
from providers.sandbox.local import Sandbox
from tests.providers.azure.conftest import SUBSCRIPTION, adapter, called, reserve_request


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sandbox, float], Calls]:
    """The sandbox's clock runs here, so that there is something to wait for."""
    monkeypatch.setattr(polling, "INTERVAL_S", 0.05)

    def make(sandbox: Sandbox, patience_s: float) -> Calls:
        sandbox.clock.run(60)
        azure = adapter(sandbox)
        calls = azure._subscriptions[SUBSCRIPTION]
        monkeypatch.setattr(calls, "_patience_s", patience_s)
        monkeypatch.setattr("providers.azure.adapter.Azure._of", lambda _self, _scope: calls)
        return calls

    return make


def test_a_purchase_is_followed_to_its_end(patient: Callable[[Sandbox, float], Calls], sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.AZURE, timedelta(seconds=9))
    patient(sandbox, 5.0)

    made = adapter(sandbox).reserve(reserve_request())

    assert made.state is ReservationState.ACTIVE
    assert called(sandbox, "operations.get") >= 2


def test_patience_ends_before_the_operation_does(patient: Callable[[Sandbox, float], Calls], sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.AZURE, timedelta(hours=1))
    patient(sandbox, 0.2)
    began = time.monotonic()

    made = adapter(sandbox).reserve(reserve_request())

    assert made.state is ReservationState.PENDING
    assert time.monotonic() - began < 2.0
    assert 1 <= called(sandbox, "operations.get") <= 5
