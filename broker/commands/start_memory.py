"""What was learned of the starts that owed jobs make, pool by pool: data, beside the state."""

import msgspec

from broker.commands.kept_models import SEED
from broker.schedule.foretold import HourOver
from forecasts.starts import Starts

VERSION = 1
HOUR_S = 3600.0


class Pool(msgspec.Struct, kw_only=True):
    """`hour` is the last that was asked of, since 1970."""

    alpha: float
    windows: int
    starts: Starts
    hour: int = 0
    said: float | None = None


class StartMemory(msgspec.Struct, kw_only=True):
    version: int = VERSION
    seed: int = SEED
    first_s: float = 0.0
    until_s: float = 0.0
    pools: dict[str, Pool] = {}

    def asked(self, over: HourOver) -> float | None:
        """One hour more, and what is expected of the next. An hour that was told before teaches nothing again."""
        pool = self._pool(over)
        if over.hour > pool.hour:
            pool.starts.see(over.wanted, over.known, over.hour)
            pool.hour, pool.said = over.hour, pool.starts.expected()
            self.first_s = self.first_s or over.hour * HOUR_S
            self.until_s = max(self.until_s, over.hour * HOUR_S)
        return pool.said

    def _pool(self, over: HourOver) -> Pool:
        """Begun anew where another share may be missed, or a reclaim takes another time."""
        pool = self.pools.get(over.pool)
        if pool is None or (pool.alpha, pool.windows) != (over.alpha, over.windows):
            starts = Starts.new(over.alpha, over.windows, seed=self.seed)
            pool = self.pools[over.pool] = Pool(alpha=over.alpha, windows=over.windows, starts=starts)
        return pool
