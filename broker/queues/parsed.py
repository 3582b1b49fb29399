"""What a format's reader hands back: jobs, and an account of every row that did not become one."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from broker.model.job import Job

MOST_SET_ASIDE = 1000
"""Rows that are kept one by one; all are counted."""

MOST_DIGITS = 18
"""Of a number that any job has: more are no number of ours, nor of a database."""

_SHOWN = 60
_LONGEST_NOTE = 500


class Unreadable(Exception):
    """The input is not a queue that can be believed: nothing in it is used. One line, with what to do next."""


class TooLarge(Unreadable):
    """What to do about it is for the caller to say: some can be told to take more."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"is larger than {max_bytes:,} bytes unpacked")


class Unfit(Exception):
    """One row cannot be used. `reason` is the same for all rows with that fault; `value` is this row's."""

    def __init__(self, reason: str, value: object = "") -> None:
        super().__init__(reason, value)
        self.reason = reason
        self.value = value


class Unwanted(Exception):
    """One row is understood and not about whole GPUs that may still be asked for; `reason` says why it is left out."""

    def __init__(self, reason: str, rows: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rows = rows


class Context(NamedTuple):
    """What a reader is told beside the text. `zone` is for times without one; None refuses them.

    For logs that count processors and seconds: `procs_per_gpu` (0: not said) and `epoch`, from which they count. For
    tables with names of their own: `columns`, pairs of our field and their column.
    """

    source: str
    cluster: str = ""
    tenant: str = ""
    zone: ZoneInfo | None = None
    ref: str = ""
    procs_per_gpu: int = 0
    epoch: datetime | None = None
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def fallback_tenant(self) -> str:
        return self.tenant or "default"


class SetAside(NamedTuple):
    """A row that is not understood: where it stands, why, and what it holds there."""

    where: str
    reason: str
    value: str


class Parsed(msgspec.Struct, kw_only=True):
    """rows = len(jobs) + merged + dropped + quarantined; an array record counts once per task (`tasks` so far).

    `whole` is false when the input says or shows that it is not all there. `as_of` is the input's own word for how
    fresh it is, None where it says nothing. `set_aside` holds the first of those quarantined.
    `limited` counts kept jobs by the limit of the queue's own that they wait for. `read_as` is filled in by whoever
    chose the reader.
    """

    jobs: list[Job] = msgspec.field(default_factory=list)
    merged: int = 0
    dropped: Counter[str] = msgspec.field(default_factory=Counter)
    quarantined: Counter[str] = msgspec.field(default_factory=Counter)
    limited: Counter[str] = msgspec.field(default_factory=Counter)
    examples: dict[str, str] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)
    set_aside: list[SetAside] = msgspec.field(default_factory=list)
    tasks: int = 0
    whole: bool = True
    as_of: datetime | None = None
    read_as: str = ""

    @property
    def rows(self) -> int:
        return len(self.jobs) + self.merged + self.dropped.total() + self.quarantined.total()

    def quarantine(self, where: str, unfit: Unfit) -> None:
        self.quarantined[unfit.reason] += 1
        shown = str(unfit.value)[:_SHOWN]
        self.examples.setdefault(unfit.reason, f"{where}: {shown!r}" if shown else where)
        if len(self.set_aside) < MOST_SET_ASIDE:
            self.set_aside.append(SetAside(where, unfit.reason, shown))

    def drop(self, unwanted: Unwanted) -> None:
        self.dropped[unwanted.reason] += unwanted.rows

    def note(self, sentence: str) -> None:
        """Said once, however often it comes up, and cut where an input makes it long."""
        if len(sentence) > _LONGEST_NOTE:
            sentence = f"{sentence[:_LONGEST_NOTE]}..."
        if sentence not in self.notes:
            self.notes.append(sentence)

    def damage(self, sentence: str) -> None:
        """Something is missing from the input."""
        self.whole = False
        self.note(sentence)

    def account(self) -> list[str]:
        """One line for each kind of fault, then the notes."""
        lines = [f"{_rows(n)} set aside: {reason} ({self.examples[reason]})" for reason, n in self.quarantined.items()]
        return lines + self.notes + self._limits()

    def _limits(self) -> list[str]:
        """Said, not decided: a site may raise its limits with what is bought."""
        if not self.limited:
            return []
        jobs, reasons = self.limited.total(), ", ".join(list(self.limited)[:4])
        wait, count = ("job waits", "counts") if jobs == 1 else ("jobs wait", "count")
        return [f"{jobs} {wait} for limits of the queue's own ({reasons}) and {count} as demand: "
                "nothing that is bought starts them before those are raised"]  # fmt: skip


def latest(jobs: Sequence[Job], parsed: Parsed) -> list[Job]:
    """Without doubles: of several rows for one attempt of a job the last one counts, the others are merged."""
    unique = {(job.cluster, job.id, job.attempt): job for job in jobs}
    parsed.merged += len(jobs) - len(unique)
    return list(unique.values())


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
