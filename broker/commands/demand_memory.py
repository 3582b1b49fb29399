"""What forecasts of demand have learned so far, to go on from the next time: data, beside the state."""

from datetime import datetime

import msgspec

from broker.commands import kept_models
from broker.commands.kept_models import SEED
from broker.config import Config
from forecasts.ahead import Ahead, Setting

VERSION = 1
NAME = "demand"


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """`hour` is the last one that it was asked at, counted from `origin_s`, a midnight in seconds since 1970."""

    origin_s: float
    hour: int
    online: Ahead


class DemandMemory(msgspec.Struct, kw_only=True):
    """Forecasters by pool and hours ahead. `first_s` and `until_s` are of the history that taught them."""

    version: int = VERSION
    seed: int = SEED
    first_s: float = 0.0
    until_s: float = 0.0
    aheads: dict[str, Learned] = {}

    def resumed(self, pool: str, setting: Setting, ahead_h: int, origin: datetime, since: int, now: int) -> Learned:
        """The forecaster as it stood at some hour from `since` to `now`, counted from `origin`; a new one, which has
        been asked at no hour yet, where there is none such.
        """
        new = Learned(origin_s=origin.timestamp(), hour=since - 1, online=Ahead.new(ahead_h, setting))
        known = self.aheads.get(_key(pool, ahead_h))
        if known is None or known.online.setting != setting or known.online.ahead_h != ahead_h:
            return new
        moved = round((known.origin_s - new.origin_s) / 3600.0)
        hour = known.hour + moved
        if not since <= hour <= now:
            return new
        return Learned(origin_s=new.origin_s, hour=hour, online=known.online.moved(moved))

    def keep(self, pool: str, learned: Learned) -> None:
        self.aheads[_key(pool, learned.online.ahead_h)] = learned
        until_s = learned.origin_s + learned.hour * 3600.0
        if until_s >= self.until_s:
            self.first_s, self.until_s = learned.origin_s, until_s


def remembered(config: Config) -> tuple[DemandMemory, tuple[str, ...]]:
    """What the last forecast learned; nothing, and a line, where that cannot be used."""
    kept, notes = kept_models.kept(kept_models.path_of(config, NAME), DemandMemory, VERSION)
    return kept or DemandMemory(), notes


def keep(config: Config, memory: DemandMemory) -> tuple[str, ...]:
    """A line where it could not be written."""
    return kept_models.keep(kept_models.path_of(config, NAME), memory) if memory.aheads else ()


def _key(pool: str, ahead_h: int) -> str:
    return f"{ahead_h} h/{pool}"
