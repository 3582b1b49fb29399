"""SIA on a trace with capacity decided once an hour: buying takes time and may fail, giving back does not."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from broker.backtest.playing import Playing, placed_naive, placed_sia, pooled_naive, pooled_sia
from broker.backtest.trace import Floats, Ints, Trace
from broker.sia.columns import NEVER, State
from broker.sia.state import Rules

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Hour:
    """What is known at a decision; `peak` is the largest of claims and demand since the last one, `claims_peak` of
    claims alone.
    """

    at: float
    claims: int
    demand: int
    peak: int
    capacity: int
    submitted: int
    claims_peak: int = 0


class CapacityRule(Protocol):
    def goal(self, hour: Hour) -> int:
        """GPUs to hold from now on; called once an hour, in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the pool behaves. Elastic jobs run on up to `elastic` times their GPUs at speed ratio ** `speed_power`.

    A share `unstoppable` of all jobs, chosen at random, cannot be called back. `node_gpus` 0: slots are pooled.
    """

    rules: Rules = field(default_factory=Rules)
    lead_s: float = 600.0
    failure: float = 0.0  # probability that a purchase brings nothing
    hold_share: float = 0.03
    elastic: int = 1
    speed_power: float = 0.8
    unstoppable: float = 0.0
    node_gpus: int = 0
    every_h: int = 1  # hours between two decisions on capacity; what is learned is learned each hour
    seed: int = 0

    def whole(self, gpus: int) -> int:
        """GPUs, rounded up to what can be held."""
        return -(-gpus // self.node_gpus) * self.node_gpus if self.node_gpus else gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`curve` is (time, GPU-seconds held so far) at each decision, and so is `used_curve` of those used, by jobs that
    drain as well. Held and used are up to the last submit.
    """

    start: Floats
    end: Floats
    curve: list[tuple[float, float]]
    used_curve: list[tuple[float, float]]
    held_s: float
    used_s: float
    held_after_s: float
    preemptions: int
    resizes: int
    lost_gpu_s: float
    short_s: float
    largest_lag_s: float
    sensitive: int
    missed: int
    firm_loans: int
    firm_missed: int


Advise = Callable[[State, Hour], None]


def replay_sia(
    trace: Trace,
    entitlements: Ints,
    capacity: int,
    setting: Setting,
    rule: CapacityRule | None = None,
    advise: Advise | None = None,
    typical_s: Floats | None = None,
    quick_s: Floats | None = None,
) -> Outcome:
    """`rule` None: capacity is constant. `advise` may set forecasts and the hold-back each hour."""
    of = placed_sia if setting.node_gpus else pooled_sia
    playing = of(trace, entitlements, capacity, setting, typical_s, quick_s)
    play = _Play(playing, setting, rule, advise)
    play.run(float(trace.submit_s[0]), float(trace.submit_s[-1]))
    return play.outcome()


def replay_naive(trace: Trace, capacity: int, setting: Setting, rule: CapacityRule | None = None) -> Outcome:
    """One blocking queue; `setting` gives the lead time, failures, nodes and seed."""
    playing = placed_naive(trace, capacity, setting.node_gpus) if setting.node_gpus else pooled_naive(trace, capacity)
    play = _Play(playing, setting, rule, None)
    play.run(float(trace.submit_s[0]), float(trace.submit_s[-1]))
    return play.outcome()


class _Play:
    """One replay: the rules between decisions, capacity and forecasts at them."""

    def __init__(self, playing: Playing, setting: Setting, rule: CapacityRule | None, advise: Advise | None) -> None:
        self.state, self.world, self.until = playing
        self.setting, self.rule, self.advise = setting, rule, advise
        self.chance = np.random.default_rng(setting.seed)
        self.curve: list[tuple[float, float]] = []
        self.used_curve: list[tuple[float, float]] = []
        self.until_last = (0.0, 0.0)

    def run(self, first_s: float, last_s: float) -> None:
        pool = self.state.pool[0]
        pool["now"] = first_s
        pool["hold"] = round(self.setting.hold_share * pool["capacity"])
        at = np.ceil(first_s / HOUR_S) * HOUR_S
        following = first_s
        while following < NEVER and (self.rule is not None or self.advise is not None) and at <= last_s:
            following = self.until(at)
            self._decide(float(at))
            at += HOUR_S
        self.until(last_s)
        idle_s = last_s - pool["now"]
        self.until_last = (
            float(pool["held_s"] + idle_s * pool["capacity"]),
            float(pool["busy_s"] + idle_s * pool["busy"]),
        )
        self._drain(at)

    def _drain(self, at: float) -> None:
        """After the last submit decisions go on, so that what remains is served as before."""
        between_s = self.setting.every_h * HOUR_S
        at = float(np.ceil(at / between_s) * between_s)
        following = self.until(at)
        while following < NEVER and self.rule is not None:
            self._decide(at)
            at = float(max(at + between_s, np.floor(following / between_s) * between_s))
            following = self.until(at)
        self.until(NEVER)

    def _decide(self, at: float) -> None:
        pool = self.state.pool[0]
        hour = Hour(
            at=at,
            claims=int(pool["claimed"] + pool["firm"]),
            demand=int(pool["demand"]),
            peak=int(pool["peak"]),
            capacity=int(pool["goal"]),
            submitted=int(self.world.position[0]["submitted"]),
            claims_peak=int(pool["claims_peak"]),
        )
        pool["claims_peak"] = hour.claims
        pool["peak"] = max(hour.claims, hour.demand)
        since = at - float(pool["now"])
        self.curve.append((at, float(pool["held_s"]) + since * int(pool["capacity"])))
        self.used_curve.append((at, float(pool["busy_s"]) + since * int(pool["busy"])))
        if self.advise is not None:
            self.advise(self.state, hour)
        if self.rule is not None:
            goal = self.rule.goal(hour)
            if round(at / HOUR_S) % self.setting.every_h == 0:
                self._order(at, self.setting.whole(goal), hour.capacity)

    def _order(self, at: float, goal: int, holds: int) -> None:
        if self.advise is None:
            self.state.pool[0]["hold"] = round(self.setting.hold_share * goal)
        if goal < holds:
            self._push(at, goal, raises=0)
        elif goal > holds and self.chance.random() >= self.setting.failure:
            self._push(at + self.setting.lead_s, goal, raises=1)

    def _push(self, at: float, goal: int, *, raises: int) -> None:
        """Into the changes that lie ahead, in order of time."""
        position = self.world.position[0]
        first, known = int(position["capacities"]), int(position["capacities_known"])
        ahead = [(self.world.capacity_at[i], self.world.capacity[i], self.world.raises[i]) for i in range(first, known)]
        ahead = sorted([*ahead, (at, goal, raises)], key=lambda change: (change[0], change[2]))
        if len(ahead) > len(self.world.capacity_at):
            raise ValueError("more changes of capacity lie ahead than there are hours")
        for i, change in enumerate(ahead):
            self.world.capacity_at[i], self.world.capacity[i], self.world.raises[i] = change
        position["capacities"], position["capacities_known"] = 0, len(ahead)

    def outcome(self) -> Outcome:
        pool = self.state.pool[0]
        held_s, used_s = self.until_last
        return Outcome(
            start=self.world.plan["start"].copy(),
            end=self.world.plan["end"].copy(),
            curve=self.curve,
            used_curve=self.used_curve,
            held_s=held_s,
            used_s=used_s,
            held_after_s=float(pool["held_s"]) - held_s,
            preemptions=int(pool["preemptions"]),
            resizes=int(pool["resizes"]),
            lost_gpu_s=float(pool["lost"]),
            short_s=float(pool["short_s"]),
            largest_lag_s=float(pool["largest_lag"]),
            sensitive=int(pool["sensitive"]),
            missed=int(pool["missed"]),
            firm_loans=int(pool["firm_judged"]),
            firm_missed=int(pool["firm_missed"]),
        )
