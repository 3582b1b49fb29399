"""What a plan would cost: how it changes the hourly rate, and what is paid at worst if nothing uses it. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec

from broker.model.plan import Extend, Keep, Plan, Release, Reserve, Resize
from broker.report import NOBODY, By, normal

Change = Reserve | Resize | Extend | Release


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars, each rounded by itself to a millionth. `gpus` is the change in GPUs held, in parts where
    tenants share it.

    What is added and what is saved an hour are both positive; `usd_idle_at_worst` is paid if nothing ever uses what is
    bought. `unpriced` changes have no known price: they are in no figure of money.
    """

    name: str
    gpus: Decimal
    usd_per_hour_added: Decimal
    usd_per_hour_saved: Decimal
    usd_idle_at_worst: Decimal
    unpriced: int

    @property
    def rate_change(self) -> Decimal:
        return self.usd_per_hour_added - self.usd_per_hour_saved


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """`warnings` say why the plan would not be carried out now, or not again; none: it may be applied."""

    plan: Plan
    by: By
    lines: tuple[Outlook, ...]
    total: Outlook
    warnings: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.total.unpriced


def outlook(plan: Plan, by: By, warnings: Sequence[str] = ()) -> PlanReport:
    """What the plan's changes cost, grouped `by`; what it keeps changes nothing and is in no line."""
    groups: dict[str, _Sums] = defaultdict(_Sums)
    total = _Sums()
    for change in plan.actions:
        if isinstance(change, Keep):
            continue
        total.add(change, Fraction(1))
        for name, share in _shares(change, by):
            groups[name].add(change, share)
    lines = tuple(groups[name].line(name) for name in sorted(groups))
    return PlanReport(plan=plan, by=by, lines=lines, total=total.line("total"), warnings=tuple(warnings))


def _shares(change: Change, by: By) -> list[tuple[str, Fraction]]:
    match by:
        case By.TENANT:
            return normal(change.tenants)
        case By.POOL:
            return [(change.pool or NOBODY, Fraction(1))]
        case By.PROVIDER:
            return [(change.request.place.scope.provider.value, Fraction(1))]
        case By.RESERVATION:
            return [(_which(change), Fraction(1))]


def _which(change: Change) -> str:
    """What is not bought yet has no id of the cloud's: it goes by the key that it will bear."""
    return f"new {change.request.key}" if isinstance(change, Reserve) else change.reservation.id


def _gpus(change: Change) -> int:
    match change:
        case Reserve():
            return change.request.count * change.offer.shape.gpus
        case Resize():
            return (change.request.to_count - change.request.from_count) * change.reservation.gpus_per_instance
        case Release():
            return -change.reservation.gpus
        case Extend():
            return 0


class _Sums:
    """Exact until the end: a total must not depend on how its lines were cut."""

    def __init__(self) -> None:
        self._gpus = self._added = self._saved = self._idle = Fraction(0)
        self._unpriced = 0

    def add(self, change: Change, share: Fraction) -> None:
        self._gpus += _gpus(change) * share
        if change.usd_per_hour is None:
            self._unpriced += 1
            return
        rate = Fraction(change.usd_per_hour) * share
        self._added += max(rate, Fraction(0))
        self._saved += max(-rate, Fraction(0))
        self._idle += Fraction(change.usd_idle_at_worst) * share

    def line(self, name: str) -> Outlook:
        return Outlook(
            name=name,
            gpus=_rounded(self._gpus),
            usd_per_hour_added=_rounded(self._added),
            usd_per_hour_saved=_rounded(self._saved),
            usd_idle_at_worst=_rounded(self._idle),
            unpriced=self._unpriced,
        )


def _rounded(exact: Fraction) -> Decimal:
    return (Decimal(round(exact * 1_000_000)) / 1_000_000).normalize()
