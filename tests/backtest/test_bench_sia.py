"""`make bench-sia`: each figure beside its bar, on the public traces."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from broker.backtest.ablations import ABLATIONS, ablate
from broker.backtest.fifo import pooled_starts, static_starts
from broker.backtest.hourly import Outcome, Setting, replay_sia
from broker.backtest.playing import prepare
from broker.backtest.policies import naive_fifo
from broker.backtest.protocols import (
    LEARNED,
    Case,
    Knobs,
    on_nodes,
    run_adaptive_naive,
    run_fixed,
    run_moving,
    run_naive_mean,
    run_naive_on,
    whole_trace,
    window,
)
from broker.backtest.replay import replay_until
from broker.backtest.trace import Trace
from broker.sia.columns import NEVER
from broker.sia.compiling import compiled
from broker.sia.state import Rules
from tests.measures import Take

pytestmark = pytest.mark.bench

QUICK = Setting(rules=Rules(reclaim_s=60, restore_s=120))
SLACK_S = 0.01  # rounding
SLOW = Rules(reclaim_s=600, restore_s=300)
FRONTIER = [
    Knobs(quantile=0.7, hours=4, share=0.8),
    Knobs(quantile=0.85, share=0.8),
    Knobs(quantile=0.9, share=0.8),
    Knobs(quantile=0.9, share=0.85),
    Knobs(),
    Knobs(quantile=0.95, share=0.9),
    Knobs(quantile=0.9, share=1.0),
    Knobs(quantile=0.95, share=1.0),
    Knobs(quantile=0.99, share=1.0),
    Knobs(quantile=1.0, hours=24, days=14, share=1.0),
]
NAIVE_FRONTIER = [
    Knobs(quantile=0.8, hours=3, days=14),
    Knobs(quantile=0.8),
    Knobs(quantile=0.9),
    Knobs(quantile=0.95),
    Knobs(quantile=0.98),
]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def cpu_s(call: Callable[[], object]) -> float:
    """Least of three."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def row(case: Case, name: str, outcome: Outcome) -> tuple[float, float, float]:
    judged = case.judge(outcome)
    over = judged.p_slowdown_over
    say(
        f"{name:34} cost {case.cost(outcome):.3f}  latency {judged.latency_ratio:5.2f}x  P(>1.1) {over[1.1]:.3%}  "
        f"P(>1.5) {over[1.5]:.3%}  latest {judged.largest_delay_s:7.0f} s  preempted {outcome.preemptions:5d}  "
        f"lost {outcome.lost_gpu_s / 3600:6.0f} GPU-h  short {outcome.short_s / 3600:5.1f} h"
    )
    return case.cost(outcome), judged.latency_ratio, over[1.1]


def at_cost(points: list[tuple[float, float, float]], cost: float) -> float:
    """P(> 1.1) at a cost, between two points on a logarithmic scale."""
    points = sorted(points)
    costs, risks = [p[0] for p in points], [np.log(max(p[2], 1e-6)) for p in points]
    return float(np.exp(np.interp(cost, costs, risks)))


@pytest.fixture(scope="module")
def ninety(philly: Trace) -> Case:
    return whole_trace(philly)


@pytest.fixture(scope="module")
def sixty(philly: Trace) -> Case:
    return window(philly)


def test_philly_90(ninety: Case, take: Take) -> None:
    say("\nphilly-90, bar: cost <= 0.52, latency >= 8.3x, P(>1.1) <= 0.05%")
    outcome = run_moving(ninety, QUICK, Knobs())
    cost, ratio, risk = row(ninety, "SIA", outcome)
    for half, judged in zip(("first half", "second half"), ninety.judge_halves(outcome), strict=True):
        say(f"  {half:32} latency {judged.latency_ratio:5.2f}x  P(>1.1) {judged.p_slowdown_over[1.1]:.3%}")
    row(ninety, "NAIVE at its mean capacity", run_naive_mean(ninety, QUICK, outcome))
    row(ninety, "NAIVE on its capacity, hourly means", run_naive_on(ninety, QUICK, outcome))
    take("philly-90: cost of static", cost, 0.52, "")
    hold_philly_90("philly-90", ratio, risk, take)


def hold_philly_90(what: str, ratio: float, risk: float, take: Take) -> None:
    take(f"{what}: latency, static / ours", ratio, 8.3, "x", least=True)
    take(f"{what}: P(slowdown > 1.1)", 100 * risk, 0.05, "%")


def test_philly_90_with_learned_forecasts(ninety: Case, take: Take) -> None:
    say("\nphilly-90, rises learned on the way; bar: cost below that of rolling quantiles, P(>1.1) <= 0.05%, <= 300 s")
    rolling, _, _ = row(ninety, "SIA, rolling quantiles", run_moving(ninety, QUICK, Knobs()))
    begin = time.process_time()
    outcome = run_moving(ninety, QUICK, LEARNED)
    spent = time.process_time() - begin
    cost, ratio, risk = row(ninety, "SIA, learned", outcome)
    for half, judged in zip(("first half", "second half"), ninety.judge_halves(outcome), strict=True):
        say(f"  {half:32} latency {judged.latency_ratio:5.2f}x  P(>1.1) {judged.p_slowdown_over[1.1]:.3%}")
    take("philly-90, learned: cost against that of rolling quantiles", cost / rolling, 1, "x")
    hold_philly_90("philly-90, learned", ratio, risk, take)
    take("philly-90, learned: the whole run", spent, 300, "s CPU")


def test_philly_90_frontier(ninety: Case, take: Take) -> None:
    say("\nphilly-90 frontier; bar: P(>1.1) at cost 0.55 and 0.50 at least 5x below adaptive NAIVE")
    ours = [
        row(ninety, f"SIA {k.quantile} {k.hours} {k.days} {k.share}", run_moving(ninety, QUICK, k)) for k in FRONTIER
    ]
    naive = [
        row(ninety, f"adaptive NAIVE {k.quantile} {k.hours} {k.days}", run_adaptive_naive(ninety, QUICK, k))
        for k in NAIVE_FRONTIER
    ]
    for cost in (0.50, 0.55):
        risk, baseline = at_cost(ours, cost), at_cost(naive, cost)
        say(f"at cost {cost:.2f}: SIA {risk:.3%}, adaptive NAIVE {baseline:.3%}")
        take(
            f"philly-90 at cost {cost:.2f}: P(slowdown > 1.1), adaptive NAIVE / ours",
            baseline / risk,
            5,
            "x",
            least=True,
        )


def test_philly_90_ablations(ninety: Case) -> None:
    say("\nphilly-90 ablations: one part off, the rest as it was")
    row(ninety, "SIA", run_moving(ninety, QUICK, Knobs()))
    for name in ABLATIONS:
        policy = ablate(ninety, name, QUICK, Knobs())
        judged = policy.comparison
        risk = f"P(>1.1) {judged.p_slowdown_over[1.1]:.3%}  latest {judged.largest_delay_s:7.0f} s"
        say(f"{name:34} cost {policy.cost_vs_static:.3f}  latency {judged.latency_ratio:5.2f}x  {risk}")


def test_philly_60(sixty: Case, take: Take) -> None:
    say("\nphilly-60, bar: latency >= 5.5x, P(>1.1) <= 0.03%, nobody later than STATIC + 600 s; elastic >= 1.3x that")
    naive = pooled_starts(sixty.trace, sixty.total) + sixty.trace.duration_s
    baseline = float(np.mean((naive - sixty.trace.submit_s) / (sixty.static_end - sixty.trace.submit_s) > 1.1))
    rigid, elastic = (run_fixed(sixty, Setting(rules=SLOW, elastic=most)) for most in (1, 4))
    _, ratio, risk = row(sixty, "SIA, rigid", rigid)
    _, wide, wide_risk = row(sixty, "SIA, elastic to 4x", elastic)
    take("philly-60: latency, static / ours", ratio, 5.5, "x", least=True)
    take("philly-60: P(slowdown > 1.1)", 100 * max(risk, wide_risk), 0.03, "%")
    take("philly-60: P(slowdown > 1.1), NAIVE / ours", baseline / max(risk, 1e-9), 500, "x", least=True)
    take("philly-60: latency, rigid / elastic", wide / ratio, 1.3, "x", least=True)
    for outcome in (rigid, elastic):
        take("philly-60: latest job behind static", sixty.judge(outcome).largest_delay_s, 600 + SLACK_S, "s")


def test_philly_60_on_nodes(sixty: Case, take: Take) -> None:
    say("\nphilly-60 on nodes of 8, all placed alike; bar: nobody later than STATIC + 600 s, a fifth held back:")
    say("latency at least 0.8x that of NAIVE-FIFO with P(>1.1) 20x below it")
    case, setting = on_nodes(sixty, 8, SLOW.reclaim_s), Setting(rules=SLOW, node_gpus=8, hold_share=0.2)
    naive = naive_fifo(case).comparison
    baseline = naive.p_slowdown_over[1.1]
    say(f"NAIVE-FIFO latency {naive.latency_ratio:.2f}x  P(>1.1) {baseline:.3%}  latest {naive.largest_delay_s:.0f} s")
    row(case, "SIA, hold-back learned", run_fixed(case, setting))
    for wide, held_back in ((1, 0.1), (4, 0.2), (1, 0.2)):
        own = replace(setting, elastic=wide, hold_share=held_back)
        outcome = replay_sia(case.trace, case.entitlements, case.total, own)
        _, ratio, risk = row(case, f"SIA, to {wide}x, {held_back:.0%} held back", outcome)
        latest = case.judge(outcome).largest_delay_s
        take(f"on nodes, to {wide}x, {held_back:.0%} held back: latest job behind static", latest, 600 + SLACK_S, "s")
        assert outcome.short_s == 0.0
    take("on nodes: latency, ours / NAIVE", ratio / naive.latency_ratio, 0.8, "x", least=True)
    take("on nodes: P(slowdown > 1.1), NAIVE / ours", baseline / risk, 20, "x", least=True)


@pytest.mark.parametrize("nonsense", ["zero", "huge", "inverted", "random"])
@pytest.mark.parametrize("elastic", [1, 4])
def test_philly_60_with_adversarial_forecasts(sixty: Case, nonsense: str, elastic: int, take: Take) -> None:
    trace = sixty.trace
    forecasts = {
        "zero": np.zeros(len(trace)),
        "huge": np.full(len(trace), 1e12),
        "inverted": 1e9 / (1 + trace.duration_s),
        "random": np.random.default_rng(1).lognormal(6, 4, len(trace)),
    }
    setting = Setting(rules=SLOW, elastic=elastic, hold_share=0.0)
    outcome = replay_sia(trace, sixty.entitlements, sixty.total, setting, None, None, forecasts[nonsense])
    row(sixty, f"forecast {nonsense}, to {elastic}x, no hold", outcome)
    latest = sixty.judge(outcome).largest_delay_s
    take(f"forecast {nonsense}, to {elastic}x: latest job behind static", latest, 600 + SLACK_S, "s")


def test_speed(ninety: Case, take: Take) -> None:
    trace, n = ninety.trace, len(ninety.trace)
    static_starts(trace, ninety.entitlements)
    static = n / cpu_s(lambda: static_starts(trace, ninety.entitlements))
    pooled = n / cpu_s(lambda: pooled_starts(trace, ninety.total))
    kernel = compiled(replay_until)
    times = []
    for _ in range(3):
        state, world = prepare(trace, ninety.entitlements, ninety.total, QUICK)
        begin = time.process_time()
        kernel(state, world, NEVER)
        times.append(time.process_time() - begin)
    sia = n / min(times)
    for name, speed, bar in (("STATIC", static, 5e6), ("NAIVE", pooled, 5e6), ("SIA, capacity given", sia, 5e5)):
        take(f"{name}, philly", speed, bar, "jobs/s", least=True)
