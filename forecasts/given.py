"""Forecasts made elsewhere: a file of demand quantiles or sample paths a pool and hour. One more expert, no more.

CSV with a header, JSONL or Parquet: `unique_id` (the pool), `ds` (RFC 3339 with an offset), `generated_at` (the same),
and either quantiles named `q0.05`, `q0.5` ... or sample paths named `sample_0`, `sample_1` ... All in GPUs.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from broker.errors import InputError
from forecasts.given_rows import NEXT_STEP, rows
from forecasts.quantiles import LEVELS, Array


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """`quantiles` (pool, time) -> (levels,); `until` is the last time forecast for each pool."""

    generated_at: datetime
    quantiles: dict[tuple[str, datetime], Array]
    until: dict[str, datetime]

    def at(self, pool: str, time: datetime) -> Array:
        """Demand at a whole hour (levels,), NaN where the file says nothing."""
        return self.quantiles.get((pool, time), np.full(len(LEVELS), np.nan))

    def problems(self, now: datetime, max_age: timedelta, horizon: timedelta) -> tuple[str, ...]:
        """What keeps it from being of use: too old, or too short. One line each."""
        found = []
        if now - self.generated_at > max_age:
            found.append(f"forecast is {_hours(now - self.generated_at)} old, more than {_hours(max_age)}: not used")
        short = (pool for pool, until in sorted(self.until.items()) if until < now + horizon)
        found += [f"forecast of pool {pool} ends {_hours(horizon)} ahead or earlier: silent beyond" for pool in short]
        return tuple(found)


def read(path: Path) -> Given:
    """Raises InputError with the file and the line where it cannot be used; part of a file is never used."""
    quantiles: dict[tuple[str, datetime], Array] = {}
    generated: set[datetime] = set()
    for line, row in rows(path):
        try:
            pool, at = str(row["unique_id"]), _time(row["ds"])
            generated.add(_time(row["generated_at"]))
            quantiles[pool, at] = _quantiles(row)
        except (KeyError, ValueError, TypeError) as error:
            raise InputError(f"{path}:{line}: {_cause(error)}", next_step=NEXT_STEP) from None
    if not quantiles:
        raise InputError(f"{path}: no forecast in it", next_step=NEXT_STEP)
    until: dict[str, datetime] = {}
    for pool, at in quantiles:
        until[pool] = max(until.get(pool, at), at)
    return Given(generated_at=min(generated), quantiles=quantiles, until=until)


def _quantiles(row: dict[str, Any]) -> Array:
    stated = {float(name[1:]): _gpus(value) for name, value in row.items() if name and name[0] == "q"}
    samples = [_gpus(value) for name, value in row.items() if name and name.startswith("sample_")]
    if samples:
        found: Array = np.quantile(samples, LEVELS)
        return found
    if not stated:
        raise ValueError("neither quantiles (q0.5) nor sample paths (sample_0)")
    levels = sorted(stated)
    if not all(0.0 < level < 1.0 for level in levels):
        raise ValueError("a quantile's level lies between 0 and 1")
    return np.interp(LEVELS, levels, sorted(stated.values()))


def _gpus(value: Any) -> float:
    if value is None:
        raise ValueError("a number of GPUs is missing")
    gpus = float(value)
    if not np.isfinite(gpus):
        raise ValueError(f"{value} is no number of GPUs")
    return max(gpus, 0.0)


def _time(text: Any) -> datetime:
    time = datetime.fromisoformat(str(text))
    if time.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC")
    return time


def _cause(error: Exception) -> str:
    return f"column {error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"
