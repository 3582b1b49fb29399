"""Replays that can be played up to a time: SIA and naive sharing, in pooled slots (compiled) and on nodes (plain)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from broker.backtest.naive import NaivePool, NaiveState, naive_until
from broker.backtest.placed_naive import PlacedNaive, replay_placed_naive_until
from broker.backtest.placed_replay import replay_placed_until
from broker.backtest.records import Records
from broker.backtest.replay import Course, Position, World, replay_until
from broker.backtest.trace import Floats, Ints, Trace
from broker.sia.columns import Job, State
from broker.sia.compiling import compiled, filled, to_arrays
from broker.sia.heap import Node
from broker.sia.placement import slots_of
from broker.sia.placement_state import Nodes
from broker.sia.state import add_job, new_state, whole_state

if TYPE_CHECKING:
    from broker.backtest.hourly import Setting

_HOUR_S = 3600.0


class Playing(NamedTuple):
    """A replay under way: `until` plays all instants up to a time and says when the next one is."""

    state: Any
    world: Any
    until: Callable[[float], float]


def pooled_sia(
    trace: Trace,
    entitlements: Ints,
    capacity: int,
    setting: "Setting",
    typical_s: Floats | None = None,
    quick_s: Floats | None = None,
) -> Playing:
    state, world = prepare(trace, entitlements, capacity, setting, typical_s, quick_s)
    return Playing(state, world, partial(compiled(replay_until), state, world))


def pooled_naive(trace: Trace, capacity: int) -> Playing:
    state = to_arrays(NaiveState([NaivePool(capacity=capacity, goal=capacity)], trace.gpus.tolist()))
    world = _world(trace)
    return Playing(state, world, partial(compiled(naive_until), state, world))


def prepare(
    trace: Trace,
    entitlements: Ints,
    capacity: int,
    setting: "Setting",
    typical_s: Floats | None = None,
    quick_s: Floats | None = None,
) -> tuple[State, World]:
    """Arrays for the compiled replay. Without forecasts, jobs rank by what they have done, and all may be quick."""
    empty = new_state(entitlements=entitlements.tolist(), capacity=capacity, rules=setting.rules)
    return whole_state(empty, _jobs(trace, setting, typical_s, quick_s)), _world(trace)


def _jobs(trace: Trace, setting: "Setting", typical_s: Floats | None, quick_s: Floats | None) -> Any:
    rules = setting.rules
    job = Job(speed_power=setting.speed_power, reclaim_s=rules.reclaim_s, restore_s=rules.restore_s)
    jobs = filled(job, len(trace))
    jobs["tenant"], jobs["gpus"], jobs["most"] = trace.tenant, trace.gpus, trace.gpus * setting.elastic
    jobs["typical_s"] = 1000.0 if typical_s is None else typical_s
    jobs["quick_s"] = 10.0 if quick_s is None else quick_s
    if setting.unstoppable > 0:
        jobs["firm"] = np.random.default_rng((setting.seed, 1)).random(len(trace)) < setting.unstoppable
    if trace.calls:
        jobs["firm"] = np.maximum(jobs["firm"], trace.calls.firm)
        said = np.isfinite(trace.calls.reclaim_s)
        jobs["reclaim_s"] = np.where(said, trace.calls.reclaim_s, rules.reclaim_s)
    jobs["lendable"] = (jobs["firm"] == 0) & (jobs["reclaim_s"] <= rules.reclaim_s)
    jobs["most"] = np.where(jobs["lendable"] > 0, jobs["most"], jobs["gpus"])
    return jobs


def placed_sia(
    trace: Trace,
    entitlements: Ints,
    capacity: int,
    setting: "Setting",
    typical_s: Floats | None,
    quick_s: Floats | None,
) -> Playing:
    """The replay on nodes: lists of records, which are not compiled."""
    empty = new_state(entitlements=entitlements.tolist(), capacity=capacity, rules=setting.rules)
    state = empty._replace(wanted=np.array(empty.wanted))  # type: ignore[arg-type]  # arrays stand for lists
    classes: dict[int, int] = {}
    for row in _jobs(trace, setting, typical_s, quick_s).tolist():
        add_job(state, Job(*row), classes)
    nodes = Nodes.new(setting.node_gpus, entitlements.tolist(), capacity, setting.rules.reclaim_s)
    world = _plain_world(trace)
    seen = state._replace(jobs=Records(state.jobs), pool=Records(state.pool))  # type: ignore[arg-type]  # reads alike
    return Playing(seen, _seen(world), partial(replay_placed_until, state, nodes, world))


def placed_naive(trace: Trace, capacity: int, node_gpus: int, rank: Floats | None = None) -> Playing:
    """One blocking queue on nodes, by rank and then in order of submit."""
    order = [0.0] * len(trace) if rank is None else rank.tolist()
    naive = PlacedNaive.new(trace.gpus.tolist(), order, capacity, node_gpus)
    world = _plain_world(trace)
    seen = NaiveState(Records(naive.pool), naive.slots)  # type: ignore[arg-type]  # reads alike
    return Playing(seen, _seen(world), partial(replay_placed_naive_until, naive, world))


def placed_ranked_ends(trace: Trace, capacity: int, node_gpus: int, rank: Floats) -> Floats:
    """Ends when one blocking queue is served by rank. A job larger than all nodes never ends and holds nobody up."""
    ends = np.full(len(trace), np.inf)
    fits = np.array([slots_of(gpus, node_gpus) <= capacity for gpus in trace.gpus.tolist()])
    playing = placed_naive(trace.pick(fits), capacity, node_gpus, rank[fits])
    playing.until(np.inf)
    ends[fits] = playing.world.plan["end"].copy()
    return ends


def _plain_world(trace: Trace) -> World:
    hours = _hours(trace)
    times = zip(trace.submit_s.tolist(), trace.duration_s.tolist(), strict=True)
    return World(
        plan=[Course(submit=submit, duration=duration) for submit, duration in times],
        finish=[Node() for _ in range(len(trace))],
        capacity_at=[0.0] * hours,
        capacity=[0] * hours,
        raises=[0] * hours,
        position=[Position()],
    )


def _seen(world: World) -> World:
    """As the driver sees it."""
    return world._replace(plan=Records(world.plan), position=Records(world.position))  # type: ignore[arg-type]  # reads alike


def _hours(trace: Trace) -> int:
    """Of which capacity may change."""
    return int((trace.submit_s[-1] - trace.submit_s[0]) // _HOUR_S) + 4


def _world(trace: Trace) -> Any:
    hours = _hours(trace)
    plan = filled(Course(), len(trace))
    plan["submit"], plan["duration"] = trace.submit_s, trace.duration_s
    return World(
        plan=plan,
        finish=filled(Node(), len(trace)),
        capacity_at=np.zeros(hours),  # type: ignore[arg-type]  # arrays stand for lists
        capacity=np.zeros(hours, dtype=np.int64),  # type: ignore[arg-type]  # arrays stand for lists
        raises=np.zeros(hours, dtype=np.int64),  # type: ignore[arg-type]  # arrays stand for lists
        position=filled(Position(), 1),
    )
