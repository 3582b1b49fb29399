"""Forecasts made elsewhere: a file of demand quantiles or sample paths a pool and hour. One more expert, no more.

CSV with a header, JSONL or Parquet: `unique_id` (the pool), `ds` (RFC 3339 with an offset), `generated_at` (the same),
and either quantiles named `q0.05`, `q0.5` ... or sample paths named `sample_0`, `sample_1` ... All in GPUs. A file may
hold forecasts of many times: of an hour, what was said last by the time that counts is taken.
"""

import re
from bisect import bisect_right
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from broker.errors import InputError
from forecasts.given_rows import NEXT_STEP, may_be_cut, rows
from forecasts.quantiles import LEVELS, Array

SLACK = timedelta(hours=1)
"""The present is the last whole hour; a forecast made since then belongs to it."""
_QUANTILE = re.compile(r"q(\d*\.?\d+)")
_DISORDER = "whose quantiles fall as their level rises: put in order"
_NEGATIVE = "with GPUs below zero: taken as 0"
_TWICE = "with other figures for the same pool, hour and generated_at: the last is taken"
_CUT = "without an end, the last: it may be cut off"
_NO_HOUR = "whose ds is no whole hour: not used"


class Said(msgspec.Struct, frozen=True):
    """Of one pool and hour: `made` in order of time, and as many arrays of quantiles (levels,)."""

    made: list[datetime]
    quantiles: list[Array]

    def by(self, time: datetime) -> Array | None:
        """What had been said last by then."""
        count = bisect_right(self.made, time)
        return self.quantiles[count - 1] if count else None


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """`pools` holds what was said by pool and hour; `repairs` are rows that were mended or left out, one line each."""

    pools: dict[str, dict[datetime, Said]]
    repairs: tuple[str, ...] = ()

    def at(self, pool: str, time: datetime, by: datetime) -> Array:
        """Demand at a whole hour (levels,), as said last at `by` or before; NaN where nothing was."""
        said = self.pools.get(pool, {}).get(time)
        found = said.by(by) if said else None
        return np.full(len(LEVELS), np.nan) if found is None else found

    def usable(self, pool: str, now: datetime, max_age: timedelta) -> bool:
        """Whether it said something of the pool not long before `now`."""
        made = self._made(pool, now)
        return made is not None and now - made <= max_age

    def problems(self, pool: str, now: datetime, max_age: timedelta, horizon: timedelta) -> tuple[str, ...]:
        """What keeps it from being of use for a pool: silent, of the future, too old, or too short. One line each."""
        if pool not in self.pools:
            return ("forecast says nothing of this pool",)
        made = self._made(pool, now)
        if made is None:
            return (f"forecast was made after {now:%Y-%m-%d %H:%M} UTC, the last hour that is known: not used",)
        if now - made > max_age:
            return (f"forecast is {_hours(now - made)} old, more than {_hours(max_age)}: not used",)
        until = max(time for time, said in self.pools[pool].items() if said.by(now + SLACK) is not None)
        return (f"forecast ends {_hours(horizon)} ahead or earlier: silent beyond",) if until < now + horizon else ()

    def _made(self, pool: str, now: datetime) -> datetime | None:
        made = (at for said in self.pools.get(pool, {}).values() for at in said.made if at <= now + SLACK)
        return max(made, default=None)


def read(path: Path) -> Given:
    """Raises InputError with the file and the line where it cannot be used; part of a file is never used."""
    found: dict[tuple[str, datetime, datetime], Array] = {}
    mended: Counter[str] = Counter()
    for line, row in rows(path):
        try:
            _take(row, found, mended)
        except (KeyError, ValueError, TypeError) as error:
            raise InputError(f"{path}:{line}: {_cause(error)}", next_step=NEXT_STEP) from None
    if found and may_be_cut(path):
        mended[_CUT] += 1
    if not found:
        raise InputError(f"{path}: no forecast in it", next_step=NEXT_STEP)
    pools: dict[str, dict[datetime, Said]] = {}
    for (pool, at, made), quantiles in sorted(found.items(), key=lambda item: item[0]):
        said = pools.setdefault(pool, {}).setdefault(at, Said([], []))
        said.made.append(made)
        said.quantiles.append(quantiles)
    repairs = tuple(f"{path}: {count:,} row{'s' if count > 1 else ''} {what}" for what, count in sorted(mended.items()))
    return Given(pools=pools, repairs=repairs)


def _take(row: dict[str, Any], found: dict[tuple[str, datetime, datetime], Array], mended: Counter[str]) -> None:
    key = str(row["unique_id"]), _time(row["ds"]), _time(row["generated_at"])
    quantiles = _quantiles(row, mended)
    if quantiles.min() < 0:
        mended[_NEGATIVE] += 1
        quantiles = np.maximum(quantiles, 0.0)
    if key in found and not np.array_equal(found[key], quantiles):
        mended[_TWICE] += 1
    if (key[1].minute, key[1].second, key[1].microsecond) != (0, 0, 0):
        mended[_NO_HOUR] += 1
    found[key] = quantiles


def _quantiles(row: dict[str, Any], mended: Counter[str]) -> Array:
    stated = {float(level[1]): _gpus(row[level[0]]) for name in row if (level := _QUANTILE.fullmatch(name or ""))}
    samples = [_gpus(value) for name, value in row.items() if name and name.startswith("sample_")]
    if samples:
        found: Array = np.quantile(samples, LEVELS)
        return found
    if not stated:
        raise ValueError("neither quantiles (q0.5) nor sample paths (sample_0)")
    levels = sorted(stated)
    if not all(0.0 < level < 1.0 for level in levels):
        raise ValueError("a quantile's level lies between 0 and 1")
    gpus = [stated[level] for level in levels]
    if gpus != sorted(gpus):
        mended[_DISORDER] += 1
    return np.interp(LEVELS, levels, sorted(gpus))


def _gpus(value: Any) -> float:
    if value is None:
        raise ValueError("a number of GPUs is missing")
    gpus = float(value)
    if not np.isfinite(gpus):
        raise ValueError(f"{value} is no number of GPUs")
    return gpus


def _time(text: Any) -> datetime:
    time = datetime.fromisoformat(str(text))
    if time.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC")
    return time


def _cause(error: Exception) -> str:
    return f"column {error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"
