"""The month's spend, from counts over time: upper bounds, shared out to the tenants for whom it was bought. Pure."""

from collections.abc import Iterable
from datetime import datetime

from broker.model.intent import Intent
from broker.model.ledger import CountStep
from broker.model.money import from_micro
from broker.model.snapshot import Spend
from state.cost import by_key, by_reservation, cost

NOBODY = "*"
"""Who it is charged to where no tenant is known."""


def month_spend(steps: Iterable[CountStep], intents: Iterable[Intent], month: datetime, now: datetime) -> Spend:
    weights = {intent.key: intent.tenants for intent in intents}
    total, unpriced, tenants = 0, 0, dict[str, float]()
    for own in by_reservation(steps):
        paid = cost(own, month, now)
        total += paid.high
        unpriced += bool(paid.unpriced)
        for key, micro in by_key(own, month, now).items():
            for tenant, share in _shares(weights.get(key, ())):
                tenants[tenant] = tenants.get(tenant, 0.0) + micro * share
    by_tenant = tuple((tenant, from_micro(round(micro))) for tenant, micro in sorted(tenants.items()))
    return Spend(month_usd=from_micro(total), by_tenant=by_tenant, unpriced=unpriced)


def _shares(weights: tuple[tuple[str, float], ...]) -> list[tuple[str, float]]:
    whole = sum(weight for _, weight in weights)
    return [(tenant, weight / whole) for tenant, weight in weights] if whole > 0 else [(NOBODY, 1.0)]
