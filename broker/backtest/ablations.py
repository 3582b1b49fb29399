"""SIA with one part left out or made worse, for tables that say which part buys what."""

from dataclasses import replace

import numpy as np

from broker.backtest.calls import Calls
from broker.backtest.hourly import Setting
from broker.backtest.policies import Policy, of
from broker.backtest.protocols import Case, Knobs, case_of, run_moving
from broker.backtest.trace import Ints, Trace
from broker.sia.columns import CREDIT, ENTITLEMENT, GUARD, HOME, ORDER, RESTART, RESTORE

RULES_OFF = {
    "no shadow guard": GUARD,
    "no whole entitlement": ENTITLEMENT,
    "claims out of order": ORDER,
    "restore is lost service": RESTORE,
    "no restart while draining": RESTART,
    "resizes without credit": CREDIT,
    "no going home": HOME,
}

ABLATIONS = {
    "no hold-back": "nothing idle is kept free for starts that a wait would hurt",
    "no shadow guard": "nothing is called back for claims",
    "no whole entitlement": "a late tenant claims what is owed only",
    "claims out of order": "claims are not served in the order in which they were made",
    "restore is lost service": "a stopped job never counts a restore as service",
    "no restart while draining": "a job that becomes owed while it drains waits for the end of the drain",
    "resizes without credit": "owed jobs are resized whether or not they are ahead (needs --elastic)",
    "no going home": "an owed job stays where it runs, though that is another's home (needs --gpus-per-node)",
    "no preemption limit": "jobs are lent to however often they were called back",
    "claims covered only": "no capacity is held for early starts",
    "loans in order of submit": "loans are not ranked by predicted rest",
    "point forecast": "capacity covers the median rise of demand instead of a high quantile of it",
    "forecast error x3": "durations are the true ones and rises the usual, both times or over 3 at random",
    "forecast error x10": "the same by 10",
    "a fifth unstoppable": "a fifth of the jobs cannot be called back, and does not borrow",
    "a fifth unstoppable but lent to": "the same, and they borrow where 95% will end before their slots are owed",
    "adversarial bursts": "every tenant wants all that it is promised once a week at 4 at night, for half an hour",
}
_LENT_TO = 0.05
_LENT_TO_FIRMLY = "a fifth unstoppable but lent to"
_WEEK_S, _FOUR_S, _BURST_S = 7 * 86_400.0, 4 * 3_600.0, 1_800.0


def that_apply(setting: Setting) -> tuple[str, ...]:
    """Those of which the part is there: some need elastic jobs, some nodes, some that there are none."""
    idle = set() if setting.elastic > 1 else {"resizes without credit"}
    idle |= {_LENT_TO_FIRMLY} if setting.node_gpus else {"no going home"}
    return tuple(name for name in ABLATIONS if name not in idle)


def ablate(case: Case, name: str, setting: Setting, knobs: Knobs) -> Policy:
    """One part of SIA switched off or made worse; the rest as in `run_moving`."""
    if name == "adversarial bursts":
        return _with_bursts(case, setting, knobs)
    setting, knobs = _changed(name, setting, knobs)
    return replace(of(case, run_moving(case, setting, knobs)), plotted=False)


def _changed(name: str, setting: Setting, knobs: Knobs) -> tuple[Setting, Knobs]:
    if name in RULES_OFF:
        return _with(setting, off=frozenset({RULES_OFF[name]})), knobs
    if name.startswith("a fifth unstoppable"):
        share = _LENT_TO if name == _LENT_TO_FIRMLY else 0.0
        return replace(_with(setting, firm_share=share), unstoppable=0.2), knobs
    if name == "no hold-back":
        return setting, replace(knobs, hold_share=0.0)
    if name == "no preemption limit":
        return _with(setting, most_preemptions=10**6), knobs
    if name == "loans in order of submit":
        return _with(setting, shortest_first=False), replace(knobs, durations="submit")
    if name not in ABLATIONS:
        raise ValueError(f"unknown ablation {name!r}, known: {', '.join(ABLATIONS)}")
    return setting, _with_forecast(name, knobs)


def _with_forecast(name: str, knobs: Knobs) -> Knobs:
    if name == "claims covered only":
        return replace(knobs, share=0.0)
    if name == "point forecast":
        return replace(knobs, quantile=0.5, claims_quantile=None if knobs.claims_quantile is None else 0.5)
    return replace(knobs, wrong_by=float(name.rpartition("x")[2]))


def _with(setting: Setting, **changes: object) -> Setting:
    rules = replace(setting.rules, **changes)  # type: ignore[arg-type]  # by names of knobs
    return replace(setting, rules=rules)


def _with_bursts(case: Case, setting: Setting, knobs: Knobs) -> Policy:
    """Judged on the trace's own jobs beside static shares that meet the same bursts."""
    trace, own = with_bursts(case)
    burst = case_of(trace, case.entitlements, node_gpus=case.node_gpus, rest_s=setting.rules.reclaim_s)
    outcome = run_moving(burst, setting, knobs)
    judged = replace(burst, trace=trace.pick(own), static_end=burst.static_end[own]).judge_ends(outcome.end[own])
    cost = burst.cost(outcome)
    return Policy(comparison=judged, cost_vs_static=cost, outcome=outcome, end=outcome.end[own], plotted=False)


def _with_calls(trace: Trace, added: int, order: Ints) -> Calls | None:
    if trace.calls is None:
        return None
    more = Calls.none(added)
    return Calls(
        reclaim_s=np.concatenate([trace.calls.reclaim_s, more.reclaim_s])[order],
        firm=np.concatenate([trace.calls.firm, more.firm])[order],
    )


def with_bursts(case: Case) -> tuple[Trace, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The trace with the bursts in it, as one-GPU jobs; and which of its jobs were there before."""
    trace = case.trace
    first, last = float(trace.submit_s[0]), float(trace.submit_s[-1])
    times = np.arange(np.floor(first / _WEEK_S) * _WEEK_S + _FOUR_S, last, _WEEK_S)
    times = times[times > first]
    tenant = np.tile(np.repeat(np.arange(len(trace.tenants)), case.entitlements), len(times))
    submit = np.concatenate([trace.submit_s, np.repeat(times, case.total)])
    order, added = np.argsort(submit, kind="stable"), len(tenant)
    found = Trace(
        tenants=trace.tenants,
        users=trace.users,
        ids=tuple(np.array([*trace.ids, *(f"burst-{i}" for i in range(added))], dtype=object)[order]),
        tenant=np.concatenate([trace.tenant, tenant])[order],
        user=np.concatenate([trace.user, np.zeros(added, dtype=np.int64)])[order],
        submit_s=submit[order],
        duration_s=np.concatenate([trace.duration_s, np.full(added, _BURST_S)])[order],
        gpus=np.concatenate([trace.gpus, np.ones(added, dtype=np.int64)])[order],
        wait_s=np.concatenate([trace.wait_s, np.full(added, np.nan)])[order],
        calls=_with_calls(trace, added, order),
    )
    return found, order < len(trace)
