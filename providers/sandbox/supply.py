"""How much of each machine type a zone has for us, as a function of time and nothing else.

Capacity is a step function that a script may set. Background tenants come and go: each holds some instances in some
of its epochs, as a hash of the seed says, so that any time can be asked for in any order and gives the same answer.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

import msgspec

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Catalogue, Pool

TENANTS = 6
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class PoolRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From `start` (None: always) until `until` (None: for good), pools that match hold `capacity` instances for us.

    Names are shell patterns. 0 is a stock-out. Of several that match, the one added last wins. Background tenants
    have no part in a capacity that is set.
    """

    capacity: int = 0
    provider: ProviderName | None = None
    region: str = "*"
    zone: str = "*"
    machine_type: str = "*"
    start: datetime | None = None
    until: datetime | None = None

    def matches(self, pool: Pool, at: datetime) -> bool:
        in_time = (self.start is None or self.start <= at) and (self.until is None or at < self.until)
        named = zip(
            (self.region, self.zone, self.machine_type), (pool.region, pool.zone, pool.machine_type), strict=True
        )
        return in_time and self.provider in (None, pool.provider) and all(fnmatchcase(n, p) for p, n in named)


class Supply:
    """`busy` is the share of time for which a background tenant is there: 0 is a market without others."""

    def __init__(self, catalogue: Catalogue, seed: int, busy: float, rules: list[PoolRule] | None = None) -> None:
        self.catalogue = catalogue
        self.seed = seed
        self.busy = busy
        self.rules = rules if rules is not None else []

    def at(self, pool: Pool, at: datetime) -> int:
        """Instances that all accounts of ours together can hold there at that time."""
        for rule in reversed(self.rules):
            if rule.matches(pool, at):
                return rule.capacity
        return max(self._capacity(pool) - self._background(pool, at), 0)

    def _capacity(self, pool: Pool) -> int:
        machine_type = self.catalogue.find(pool.provider, pool.region, pool.machine_type)
        return machine_type.capacity if machine_type and pool.zone in machine_type.zones else 0

    def _background(self, pool: Pool, at: datetime) -> int:
        if self.busy <= 0:
            return 0
        share = -(-self._capacity(pool) // TENANTS)
        return sum(share for tenant in range(TENANTS) if self._there(pool, tenant, at))

    def _there(self, pool: Pool, tenant: int, at: datetime) -> bool:
        name = f"{self.seed}/{pool.provider}/{pool.region}/{pool.zone}/{pool.machine_type}/{tenant}"
        stay = timedelta(minutes=30 + int(330 * draw(name)))
        epoch = (at - EPOCH + stay * draw(f"{name}/phase")) // stay
        return draw(f"{name}/{epoch}") < self.busy


def draw(name: str) -> float:
    """A number in [0, 1) that is always the same for the name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest()) / 2**56
