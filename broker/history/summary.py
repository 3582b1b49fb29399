"""What the history holds, counted in one pass over it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from broker.history.past import heard
from state.encode import from_us
from state.history.facts import GONE, LIVE
from state.history.reading import DAY_US, Attempt
from state.history.store import History

_HOUR_US = 3_600_000_000


class Counts(msgspec.Struct, kw_only=True):
    """`live` are alive as far as is known, `gone` left a queue without word of how, `runaway` cannot be true."""

    jobs: int = 0
    attempts: int = 0
    requeued: int = 0
    resized: int = 0
    live: int = 0
    gone: int = 0
    runaway: int = 0
    gpu_hours: float = 0.0

    def add(self, attempts: Sequence[Attempt]) -> None:
        last = attempts[-1]
        self.jobs += 1
        self.attempts += len(attempts)
        self.requeued += len(attempts) > 1
        self.resized += any(_resized(attempt) for attempt in attempts)
        self.live += last.told == LIVE and not last.runaway
        self.gone += last.told == GONE
        self.runaway += last.runaway
        self.gpu_hours += sum(attempt.gpu_us for attempt in attempts if not attempt.runaway) / _HOUR_US


class TenantCounts(Counts, kw_only=True):
    cluster: str
    tenant: str


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Whole days (UTC) in which no job was submitted, started or ended."""

    begin: datetime
    end: datetime


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """`first` and `last`: the earliest submit and the latest time of which anything is known."""

    path: str
    files: int
    hashed: bool
    kept_since: datetime | None
    first: datetime | None
    last: datetime | None
    total: Counts
    tenants: tuple[TenantCounts, ...]
    gaps: tuple[Gap, ...]


def summarise(history: History) -> Summary:
    """Raises StateError."""
    total, tenants, days = Counts(), dict[tuple[str, str], TenantCounts](), defaultdict[int, bool](bool)
    first, last = None, 0
    for attempts in history.jobs():
        job = attempts[0]
        key = job.cluster, job.tenant
        total.add(attempts)
        tenants.setdefault(key, TenantCounts(cluster=job.cluster, tenant=job.tenant)).add(attempts)
        first = job.first_submit if first is None else min(first, job.first_submit)
        last = max(last, heard(attempts))
        for at in _events(attempts):
            days[at // DAY_US] = True
    rules = history.rules
    return Summary(
        path=str(history.path),
        files=history.files(),
        hashed=rules.hashed,
        kept_since=from_us(rules.kept_since) if rules.kept_since else None,
        first=None if first is None else from_us(first),
        last=None if first is None else from_us(last),
        total=total,
        tenants=tuple(tenants[key] for key in sorted(tenants)),
        gaps=tuple(_gaps(sorted(days))),
    )


def _resized(attempt: Attempt) -> bool:
    return len({size.gpus for size in attempt.sizes}) > 1


def _events(attempts: Sequence[Attempt]) -> Iterator[int]:
    for attempt in attempts:
        yield attempt.submit
        if attempt.began is not None:
            yield attempt.began
        if attempt.ended is not None:
            yield attempt.ended


def _gaps(days: Sequence[int]) -> Iterator[Gap]:
    for day, following in pairwise(days):
        if following > day + 1:
            yield Gap(begin=from_us((day + 1) * DAY_US), end=from_us(following * DAY_US))
