"""The ledger held to the sandbox's own record: nothing twice, nothing leaked, every instance, every cent."""

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from broker.model.money import from_micro
from providers.sandbox.local import Sandbox
from state.cost import Bounds, by_reservation, cost
from state.store import Store
from state.upkeep import faults
from tests.crash.clouds import Cloud

ROUNDING = Decimal("0.0001")
CENT = Decimal("0.01")


def held_in_truth(sandbox: Sandbox, cloud: Cloud) -> Counter[str]:
    """Instances by the key of the purchase that made the reservation; read as it is, not as it is shown."""
    with sandbox.world.lock:
        sandbox.market.settle()
        live = [h for h in sandbox.market.state.holdings if h.provider is cloud.name and h.state.live and h.count]
        return Counter({_name(h.id): h.count for h in live})


def held_by_ledger(state: Path) -> Counter[str]:
    assert faults(state) == ()
    with Store.open(state, read_only=True) as store:
        ours = [r for r in store.reservations() if r.owner and r.owner.lineage == store.lineage]
        return Counter({_name(r.id): r.count for r in ours if not r.state.gone and r.count})


def bought(sandbox: Sandbox) -> int:
    """Instances, over all purchases that the sandbox saw happen."""
    return sum(effect.after - effect.before for effect in sandbox.record.purchases())


def sent_again(sandbox: Sandbox, cloud: Cloud) -> list[str]:
    """Purchases that were sent more than once: every decision has a name or token of its own."""
    sent = Counter(
        json.dumps(call.parameters, sort_keys=True, default=str)
        for call in sandbox.record.calls
        if call.operation == cloud.reserve
    )
    return [parameters for parameters, times in sent.items() if times > 1]


def ends(state: Path) -> datetime:
    """When the first of what is ours ends."""
    with Store.open(state, read_only=True) as store:
        return min(r.ends for r in store.reservations() if r.ends and not r.state.gone)


def open_intents(state: Path) -> int:
    with Store.open(state, read_only=True) as store:
        return len(store.intents(open_only=True))


def money(sandbox: Sandbox, state: Path, now: datetime) -> tuple[Decimal, Bounds, bool]:
    """The true bill, the ledger's bounds, and whether the cloud stated every edge."""
    with sandbox.world.lock:
        truth = sum((line.usd(now) for line in sandbox.market.bill()), Decimal(0))
    with Store.open(state, read_only=True) as store:
        steps = store.count_steps()
    total = Bounds()
    for own in by_reservation(steps):
        total += cost(own, min(step.earliest for step in own), now)
    return truth, total, all(step.earliest == step.latest for step in steps)


def check_ledger(sandbox: Sandbox, cloud: Cloud, state: Path, now: datetime) -> None:
    """Nothing open, every instance as it is, the bill within the bounds and, where all is stated, to the cent."""
    assert open_intents(state) == 0
    assert held_by_ledger(state) == held_in_truth(sandbox, cloud)
    money_is_right(sandbox, state, now)


def money_is_right(sandbox: Sandbox, state: Path, now: datetime) -> None:
    """The bill lies within the bounds; where the clouds stated every edge it is the same to the cent."""
    truth, bounds, exact = money(sandbox, state, now)
    low, high = from_micro(bounds.low), from_micro(bounds.high)
    assert bounds.unpriced == 0
    assert low - ROUNDING <= truth <= high + ROUNDING, (low, truth, high)
    if exact:
        assert abs(low - truth) < CENT / 2 and abs(high - truth) < CENT / 2, (low, truth, high)


def _name(which: str) -> str:
    """A reservation's own name: adapters may put the zone or the group before it."""
    return which.rsplit("/", 1)[-1]
