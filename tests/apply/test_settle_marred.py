"""A growth that the cloud accepts and refuses later can leave what was held of no use: settling puts it right."""

from datetime import timedelta
from pathlib import Path

import msgspec

from broker.apply.apply import apply
from broker.apply.settle import foresee, settle
from broker.model.intent import IntentStatus
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReserveRequest
from providers.azure.adapter import Azure
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.settings import AzureSettings, AzureSubscription
from state.store import Store
from tests.apply.cloud import plan, resize
from tests.state.worlds import LINEAGE, reserve

SCOPE = Scope(ProviderName.AZURE, "00000000-0000-0000-0000-000000000001", "eastus")


def test_what_a_refused_growth_left_is_set_back_once_it_is_seen(tmp_path: Path) -> None:
    home = AzureSubscription(subscription=SCOPE.account, regions=(SCOPE.region,), resource_group="capacity")
    with Sandbox() as sandbox:
        clock = sandbox.clock
        azure = Azure(AzureSettings(endpoint=sandbox.endpoint, sandbox=True, subscriptions=(home,)), clock)
        providers = {ProviderName.AZURE: azure}
        held = azure.reserve(_of(Place(SCOPE, "1")))
        sandbox.fault(
            FaultKind.FAILS_LATER,
            "capacityReservations.update",
            ProviderName.AZURE,
            delay_s=60,
            code="AllocationFailed",
        )
        with Store.restore(tmp_path / "state.db", now=clock.now(), lineage=LINEAGE) as store:
            made = plan(resize("k2", held, 5), expires=clock.now() + timedelta(hours=1))
            apply(made, store, providers, clock)
            sandbox.advance(timedelta(minutes=2))

            (foreseen,) = foresee(store.intents(open_only=True), providers, clock)
            assert (foreseen.marred, azure.reservations(SCOPE)[0].raw_state) == (True, "Failed")
            (settled,) = settle(store, providers, clock)

            assert (settled.outcome.status, settled.outcome.code) == (IntentStatus.UNFILLED, "AllocationFailed")
            (now,) = azure.reservations(SCOPE)
            assert (now.count, now.raw_state, now.notes) == (2, "Succeeded", ())
            assert [(e.before, e.after) for e in sandbox.record.purchases()] == [(0, 2)]
            assert settle(store, providers, clock) == ()


def _of(place: Place) -> ReserveRequest:
    return msgspec.structs.replace(reserve("k1"), place=place, machine_type="Standard_ND96isr_H100_v5")
