"""A job trace as columns: what every reader produces and every replay takes.

Times are seconds from the trace's own zero. Rows that cannot be used are repaired or left out, each with a reason
that is counted; nothing is dropped silently.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan

import numpy as np
import numpy.typing as npt

from broker.backtest.calls import Calls
from broker.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY_S = 86_400.0
LONGEST_RUN_S = 3653 * DAY_S
LONGEST_GAP_S = 366 * DAY_S
_MOST_GPUS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Sorted by submit; jobs of one instant stay in file order. `wait_s` is NaN where the trace does not say, `calls`
    None where it says of no job how it can be called back.
    """

    tenants: tuple[str, ...]
    users: tuple[str, ...]
    ids: tuple[str, ...]
    tenant: Ints
    user: Ints
    submit_s: Floats
    duration_s: Floats
    gpus: Ints
    wait_s: Floats
    notes: Counter[str] = field(default_factory=Counter)
    calls: Calls | None = None

    def __len__(self) -> int:
        return len(self.submit_s)

    def pick(self, mask: npt.NDArray[np.bool_]) -> "Trace":
        """The jobs where `mask` holds, with the same tenants."""
        return Trace(
            tenants=self.tenants,
            users=self.users,
            ids=tuple(np.array(self.ids, dtype=object)[mask]),
            tenant=self.tenant[mask],
            user=self.user[mask],
            submit_s=self.submit_s[mask],
            duration_s=self.duration_s[mask],
            gpus=self.gpus[mask],
            wait_s=self.wait_s[mask],
            notes=self.notes,
            calls=self.calls.pick(mask) if self.calls else None,
        )

    def capped(self, longest_s: float) -> "Trace":
        """The same jobs, none longer than `longest_s`."""
        kept = {name: getattr(self, name) for name in self.__slots__}
        return Trace(**{**kept, "duration_s": np.minimum(self.duration_s, longest_s)})

    def called_back_in(self, seconds: Mapping[str, float]) -> "Trace":
        """The same jobs, with reclaim times by tenant or tenant/user where they say none of their own."""
        if not seconds:
            return self
        kept = {name: getattr(self, name) for name in self.__slots__}
        names = [(self.tenants[v], self.users[u]) for v, u in zip(self.tenant, self.user, strict=True)]
        return Trace(**{**kept, "calls": (self.calls or Calls.none(len(self))).of_classes(names, seconds)})


@dataclass(slots=True)
class Rows:
    """What a reader has collected, one entry a usable row; packed, for there may be millions."""

    id: list[str] = field(default_factory=list)
    tenant: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)
    submit_s: "array[float]" = field(default_factory=lambda: array("d"))
    duration_s: "array[float]" = field(default_factory=lambda: array("d"))
    gpus: "array[int]" = field(default_factory=lambda: array("q"))
    wait_s: "array[float]" = field(default_factory=lambda: array("d"))
    reclaim_s: "array[float]" = field(default_factory=lambda: array("d"))
    preemptible: "array[float]" = field(default_factory=lambda: array("d"))  # 1, 0, or NaN: not said
    notes: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        *,
        id: str,
        tenant: str,
        user: str,
        submit_s: float,
        duration_s: float,
        gpus: float,
        wait_s: float,
        reclaim_s: float = nan,
        preemptible: float = nan,
    ) -> None:
        """Keep the row, or count why it is left out."""
        reason = _unusable(submit_s, duration_s, gpus)
        if reason:
            self.notes[f"left out: {reason}"] += 1
            return
        if submit_s < 0:
            self.notes["kept: submitted before the zero of time"] += 1
        self.id.append(id)
        self.tenant.append(sys.intern(tenant or "default"))
        self.user.append(sys.intern(user))
        self.submit_s.append(submit_s)
        self.duration_s.append(duration_s)
        self.gpus.append(int(gpus))
        self.wait_s.append(wait_s if wait_s >= 0 else nan)
        self.reclaim_s.append(reclaim_s if 0 <= reclaim_s < inf else nan)
        self.preemptible.append(preemptible)


def _unusable(submit_s: float, duration_s: float, gpus: float) -> str:
    if not np.isfinite(submit_s):
        return "no submit time"
    if not np.isfinite(duration_s):
        return "not finished, or no duration"
    if duration_s < 0:
        return "ends before it starts"
    if duration_s > LONGEST_RUN_S:
        return "runs for more than ten years"
    if not np.isfinite(gpus) or gpus <= 0:
        return "no GPUs"
    if gpus > _MOST_GPUS:
        return "asks for more than a billion GPUs"
    return "" if gpus == int(gpus) else "a fraction of a GPU"


def build(rows: Rows, source: str) -> Trace:
    """Sort (stable), drop repeated ids, index tenants and users. Raises InputError where no trace comes of it."""
    if not rows.id:
        raise InputError(f"{source} holds no usable job", next_step=_why_none(rows.notes))
    notes = rows.notes.copy()
    submit = np.array(rows.submit_s, dtype=np.float64)
    first = _first_of_each_id(rows.id, notes)
    order = first[np.argsort(submit[first], kind="stable")]
    if np.any(np.diff(submit[first]) < 0):
        notes["sorted by submit time"] += int(np.sum(np.diff(submit[first]) < 0))
    _refuse_a_gap(submit[order], [rows.id[i] for i in order], source)
    tenants, tenant = _codes(rows.tenant, order)
    users, user = _codes(rows.user, order)
    return Trace(
        tenants=tenants,
        users=users,
        ids=tuple(rows.id[i] for i in order),
        tenant=tenant,
        user=user,
        submit_s=submit[order],
        duration_s=np.array(rows.duration_s, dtype=np.float64)[order],
        gpus=np.array(rows.gpus, dtype=np.int64)[order],
        wait_s=np.array(rows.wait_s, dtype=np.float64)[order],
        notes=notes,
        calls=_calls(rows, order, notes),
    )


def _calls(rows: Rows, order: Ints, notes: Counter[str]) -> Calls | None:
    reclaim_s, says = (np.array(each, dtype=np.float64)[order] for each in (rows.reclaim_s, rows.preemptible))
    if not np.isfinite(reclaim_s).any() and not np.isfinite(says).any():
        return None
    firm = says == 0.0
    if firm.any():
        notes["cannot be called back"] += int(firm.sum())
    return Calls(reclaim_s=reclaim_s, firm=firm)


def _why_none(notes: Counter[str]) -> str:
    if not notes:
        return "Give one with a line for each job that has ended"
    return "; ".join(f"{reason}: {count:,}" for reason, count in notes.most_common())


def _refuse_a_gap(submit_s: Floats, ids: list[str], source: str) -> None:
    """A time of zero, or of another unit, would stretch the trace by decades: a cost over them says nothing."""
    gaps = np.diff(submit_s)
    if not len(gaps) or gaps.max() <= LONGEST_GAP_S:
        return
    at = int(gaps.argmax())
    raise InputError(
        f"{source}: nothing is submitted for {gaps[at] / DAY_S:,.0f} days between job {ids[at]} and job {ids[at + 1]}",
        next_step="Leave out those whose submit time is unknown or in another unit",
    )


def _first_of_each_id(ids: list[str], notes: Counter[str]) -> Ints:
    seen: set[str] = set()
    kept = array("q")
    for index, name in enumerate(ids):
        if name and name in seen:
            notes["left out: the same id again"] += 1
            continue
        seen.add(name)
        kept.append(index)
    return np.array(kept, dtype=np.int64)


def _codes(names: list[str], order: Ints) -> tuple[tuple[str, ...], Ints]:
    values = [names[i] for i in order]
    known = {name: code for code, name in enumerate(dict.fromkeys(values))}
    return tuple(known), np.array([known[name] for name in values], dtype=np.int64)
