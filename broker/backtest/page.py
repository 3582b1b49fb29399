"""A backtest as text and as one self-contained HTML page with plots drawn in SVG."""

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from broker.backtest.ablations import ABLATIONS
from broker.backtest.analysis import StaticUse
from broker.backtest.command import Backtest, key_of
from broker.backtest.frontier import Point
from broker.backtest.policies import Policy
from broker.backtest.trace import Floats
from broker.plots import Axis, Line, plot
from broker.webpage import page

_OVER = ("P(>1.05)", "P(>1.1)", "P(>1.5)", "P(>2)")
_LEGEND = (
    "cost: of GPU-hours held by static. x static: how many times better the mean latency is. P(>1.1): share of jobs\n"
    "slowed down by more than 10% against static. latest s: the job that is latest against static, in seconds.\n"
    "Policies: docs/backtest.md"
)
_COLUMNS = ("policy", "cost", "latency s", "x static", *_OVER, "latest s", "called back")


def as_text(found: Backtest) -> str:
    """The table, and what stands beside it."""
    rows = [_COLUMNS, *(_row(name, policy) for name, policy in found.policies.items())]
    return "\n".join([_title(found), "", *_aligned(rows), "", *_frontier(found.frontier), *_remarks(found)])


def _frontier(points: Sequence[Point]) -> list[str]:
    """Each cost beside adaptive naive sharing at that cost."""
    if not points:
        return []
    heading = ("cost up to", "SIA cost", "x static", "P(>1.1)", "latest s", "NAIVE cost", "x static", "P(>1.1)")
    rows = [(f"{p.cost:.2f}", *_bought(p.sia, p.cost), *_bought(p.naive, p.cost)[:-1]) for p in points]
    return [*_aligned([heading, *rows]), ""]


def _bought(policy: Policy, cost: float) -> tuple[str, str, str, str]:
    """Nothing, where even the cheapest run cost more."""
    if policy.cost_vs_static > cost:
        return "not reached", "", "", ""
    judged = policy.comparison
    figures = f"{policy.cost_vs_static:.3f}", f"{judged.latency_ratio:.2f}", f"{judged.p_slowdown_over[1.1]:.3%}"
    return *figures, _seconds(judged.largest_delay_s)


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "never"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _title(found: Backtest) -> str:
    case = found.case
    return (
        f"{found.source}: {len(case.trace):,} jobs, {len(case.trace.tenants)} tenants, {case.total:,} GPUs promised"
        f"{f' on nodes of {case.node_gpus}' if case.node_gpus else ''}, {case.span_s / 86_400:.1f} days"
    )


def _row(name: str, policy: Policy) -> tuple[str, ...]:
    judged = policy.comparison
    return (
        name,
        f"{policy.cost_vs_static:.3f}",
        _seconds(judged.mean_latency_s),
        f"{judged.latency_ratio:.2f}",
        *(f"{p:.3%}" for p in judged.p_slowdown_over.values()),
        _seconds(judged.largest_delay_s),
        str(policy.outcome.preemptions if policy.outcome else 0),
    )


def _remarks(found: Backtest) -> list[str]:
    remarks = [_LEGEND, f"STATIC waits {found.static_wait_s:,.0f} s on average."]
    remarks += _unserved(found)
    if found.recorded_wait_s is not None:
        remarks.append(f"The trace records waits of {found.recorded_wait_s:,.0f} s on average.")
    sia = found.policies["sia"].outcome
    if sia is not None and sia.short_s > 0:
        remarks.append(f"Claims exceeded capacity for {sia.short_s / 3600:.1f} h: there the bound is not promised.")
    remarks += _intervals(found.policies["sia"])
    ablated = {key_of(name): what for name, what in ABLATIONS.items()}
    remarks += [f"{name}: {what}" for name, what in ablated.items() if name in found.policies]
    remarks += [f"{count:,} {'row' if count == 1 else 'rows'} {reason}" for reason, count in found.notes.items()]
    return remarks


def _intervals(sia: Policy) -> list[str]:
    if not sia.seeds:
        return []
    least, most = zip(*sia.intervals().values(), strict=True)
    return [
        f"SIA over {len(sia.seeds) + 1} seeds: cost {least[2]:.3f} to {most[2]:.3f}, {least[0]:.2f} to {most[0]:.2f} x "
        f"static, P(>1.1) {least[1]:.3%} to {most[1]:.3%}, latest {_seconds(least[3])} to {_seconds(most[3])} s."
    ]


def _unserved(found: Backtest) -> list[str]:
    """Jobs that the figures do not speak of, and those by which a policy is infinitely slow."""
    remarks = []
    left_out = found.policies["static"].comparison.left_out
    if left_out:
        are = "job is" if left_out == 1 else "jobs are"
        remarks.append(f"{left_out:,} {are} larger than what the tenant is promised: left out, nothing is promised.")
    stuck = [(name, p.comparison.never_ended) for name, p in found.policies.items() if p.comparison.never_ended]
    if stuck:
        counted = ", ".join(f"{name} {count:,}" for name, count in stuck)
        remarks.append(f"Jobs that never end, and count as infinitely slow: {counted}.")
    return remarks


def use_as_text(use: StaticUse) -> str:
    """What static allocation promises, uses and leaves idle."""
    rows: list[tuple[str, ...]] = [("tenant", "promised", "used", "idle", "waited", "lendable")]
    for t in use.tenants:
        rows.append((t.tenant, *(f"{x:,.0f}" for x in (t.promised, t.used, t.idle, t.waited, t.lendable))))
    closing = f"GPU-hours. {use.lendable_share:.1%} of what is idle could be lent to jobs that wait."
    return "\n".join([*_aligned(rows), "", closing])


def as_html(found: Backtest) -> str:
    """Plots of the policies of the table, and of the frontier where it was asked for."""
    submit = found.case.trace.submit_s
    reference = found.case.static_end - submit
    latency, slowdown = [], []
    for name, policy in found.policies.items():
        seconds = policy.end - submit
        good = np.isfinite(seconds) & np.isfinite(reference) & (reference > 0)
        if not policy.plotted or not good.any():
            continue
        latency.append(_beyond(name, seconds[good]))
        slowdown.append(_beyond(name, (seconds / np.where(reference > 0, reference, 1))[good]))
    points = [(n, p.cost_vs_static, p.comparison.p_slowdown_over[1.1]) for n, p in found.policies.items() if p.plotted]
    risk = [(n, [c], [max(p, 1e-6)]) for n, c, p in points]
    even, by_tens, ratio = Axis(), Axis(log=True), _lines_of(found.frontier, _ratio)
    parts = [
        f"<pre>{escape(as_text(found))}</pre>",
        plot("Share of jobs with a latency above x seconds", latency, by_tens, by_tens),
        plot("Share of jobs with a slowdown above x", slowdown, by_tens, by_tens),
        plot("GPUs promised, held and used, mean of each hour, by day", _capacity(found), even, even),
        plot("P(slowdown > 1.1) against cost", [*_lines_of(found.frontier, _risk), *risk], even, by_tens),
        plot("Times better than static in latency, against cost", ratio, even, even),
    ]
    return page("Backtest", parts)


def _risk(policy: Policy) -> float:
    return max(policy.comparison.p_slowdown_over[1.1], 1e-6)


def _ratio(policy: Policy) -> float:
    return policy.comparison.latency_ratio


def _lines_of(points: Sequence[Point], figure: Callable[[Policy], float]) -> list[Line]:
    """A figure along the frontier, of SIA and of adaptive naive sharing."""
    if not points:
        return []
    sides = (("SIA at each cost", [p.sia for p in points]), ("adaptive NAIVE at each cost", [p.naive for p in points]))
    return [(name, [p.cost_vs_static for p in side], [figure(p) for p in side]) for name, side in sides]


def _beyond(name: str, values: Floats) -> Line:
    """The share of values above each of 200 of them."""
    ordered = np.sort(np.maximum(values, 1e-3))
    at = np.unique(np.linspace(0, len(ordered) - 1, 200).astype(np.int64))
    return name, ordered[at].tolist(), np.maximum(1 - at / len(ordered), 1e-6).tolist()


def _capacity(found: Backtest) -> list[Line]:
    """What is promised, what each policy holds, and what SIA uses of it."""
    lines = []
    for name, policy in found.policies.items():
        if policy.plotted and policy.outcome is not None and len(policy.outcome.curve) >= 3:
            lines.append(_hourly(name, policy.outcome.curve))
    sia = found.policies["sia"].outcome
    if lines and sia is not None and len(sia.used_curve) >= 3:
        days = lines[0][1]
        promised = "promised", [days[0], days[-1]], [float(found.case.total)] * 2
        lines = [promised, _hourly("sia, used", sia.used_curve), *lines]
    return lines


def _hourly(name: str, curve: Sequence[tuple[float, float]]) -> Line:
    time, so_far = np.array(curve).T
    return name, (time[1:] / 86_400).tolist(), (np.diff(so_far) / np.diff(time)).tolist()
