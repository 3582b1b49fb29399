"""What is held costs: by the hour, and until it could be given back."""

from decimal import Decimal

import msgspec

from broker.model.policy import Policy
from broker.model.snapshot import Snapshot
from broker.purchase.holdings import Lot, holdings
from broker.purchase.upkeep import hold_hours


class Outlay(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for everything of ours, purchases of unknown outcome included.

    `usd_committed` is what it costs until it could be given back (the minimum hold, or the hours that getting it back
    takes). `unpriced` are the ids whose price nobody knows: the sums are too low by them.
    """

    usd_per_hour: Decimal
    usd_committed: Decimal
    committed_by_tenant: tuple[tuple[str, Decimal], ...]
    unpriced: tuple[str, ...]


def outlay(snapshot: Snapshot, policy: Policy) -> Outlay:
    """Of what is held at the snapshot; tenants by their part of each purchase."""
    ours = [lot for lot in holdings(snapshot, policy) if lot.ours and lot.count]
    hours = hold_hours(policy)
    tenants: dict[str, Decimal] = {}
    for lot in ours:
        for tenant, share in lot.tenants:
            tenants[tenant] = tenants.get(tenant, Decimal(0)) + _rate(lot) * hours * Decimal(str(share))
    rate = sum((_rate(lot) for lot in ours), Decimal(0))
    return Outlay(
        usd_per_hour=rate,
        usd_committed=rate * hours,
        committed_by_tenant=tuple(sorted(tenants.items())),
        unpriced=tuple(lot.id for lot in ours if lot.usd_per_hour is None),
    )


def _rate(lot: Lot) -> Decimal:
    return (lot.usd_per_hour or Decimal(0)) * lot.count
