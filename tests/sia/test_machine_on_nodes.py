"""The live machine on nodes: the replay's decisions, with cells; saved and resumed at any instant."""

import json
import random

import pytest

from broker.errors import StateError, UsageError
from broker.sia.columns import RUNNING
from broker.sia.machine import Kind, Machine, Request, Terms
from broker.sia.placement import Cell
from broker.sia.state import Rules
from tests.sia.placed import draw_placed, play_placed
from tests.sia.test_machine import drive

RULES = Rules(reclaim_s=60, restore_s=120)


@pytest.mark.parametrize("seed", range(60))
def test_decides_as_the_replay_on_nodes(seed: int) -> None:
    extras = ["moves"] if seed % 2 else []
    instance, size = draw_placed(random.Random(seed), extras)
    ends, decisions = drive(instance, node_gpus=size)
    _, world, _ = play_placed(draw_placed(random.Random(seed), extras)[0], size)
    assert ends == [course.end for course in world.plan]
    assert all(decision.cells for decision in decisions)


@pytest.mark.parametrize("extras", [[], ["moves"], ["elastic"], ["elastic", "moves"]], ids="+".join)
def test_resumed_at_a_hundred_instants_on_nodes_it_decides_the_same(extras: list[str]) -> None:
    rng = random.Random(7)
    for seed in range(25):
        cuts = {rng.randint(1, 30) for _ in range(4)}
        (one, size), (other, _) = (draw_placed(random.Random(seed), extras) for _ in range(2))
        assert drive(one, node_gpus=size) == drive(other, cuts, node_gpus=size)


def two_tenants() -> Machine:
    terms = {"vision": Terms(entitlement=4), "nlp": Terms(entitlement=4)}
    return Machine.new(terms, 8, RULES, node_gpus=4)


def test_orders_name_cells() -> None:
    machine = two_tenants()
    for name, gpus in (("a", 4), ("b", 2), ("c", 2)):
        machine.submit(0, Request(id=name, tenant="vision", gpus=gpus))
    granted, *lent = machine.tick(0)
    assert (granted.kind, granted.cells) == (Kind.GRANT, (Cell(0, 0, 4),))
    assert [(d.kind, d.cells) for d in lent] == [(Kind.LOAN, (Cell(1, 0, 2),)), (Kind.LOAN, (Cell(1, 2, 2),))]
    machine.submit(100, Request(id="d", tenant="nlp", gpus=1))
    (called,) = machine.tick(100)
    assert (called.kind, called.cells) == (Kind.RECLAIM, (Cell(1, 0, 2),))
    assert [(d.job, d.cells, d.lag_s) for d in machine.tick(160)] == [("d", (Cell(1, 0, 1),), 60)]


def test_a_start_of_the_schedulers_own_is_called_back_on_nodes() -> None:
    machine = two_tenants()
    for name, tenant in (("a", "vision"), ("b", "vision")):
        machine.submit(0, Request(id=name, tenant=tenant, gpus=4))
        machine.start(0, name)
    assert machine.tick(0) == []
    assert machine.state.jobs[0].state == RUNNING
    machine.progress(50, "b", 10.0)
    machine.submit(60, Request(id="c", tenant="nlp", gpus=1))
    assert [(d.job, d.kind) for d in machine.tick(60)] == [("b", Kind.RECLAIM)]
    machine.submit(61, Request(id="d", tenant="nlp", gpus=4))
    with pytest.raises(UsageError, match="fits on no node"):
        machine.start(61, "d")


def test_promises_are_whole_nodes_and_nodes_are_powers_of_two() -> None:
    machine = Machine.new({"nlp": Terms(entitlement=5)}, 9, RULES, node_gpus=4)
    assert (machine.state.tenants[0].entitlement, machine.state.pool[0].capacity) == (8, 8)
    with pytest.raises(UsageError, match="cannot be cut into cells"):
        Machine.new({"nlp": Terms(entitlement=6)}, 12, RULES, node_gpus=6)


@pytest.mark.parametrize("cut", ["floor", "waiting", "statics"])
def test_damaged_nodes_are_refused(cut: str) -> None:
    saved = json.loads(two_tenants().dumps())
    assert saved["format_version"] == 4
    if cut == "statics":
        saved["nodes"]["floor"]["statics"] = [{"needs": "soon", "queue": {}}]
    else:
        del saved["nodes"][cut]
    with pytest.raises(StateError, match="damaged"):
        Machine.loads(json.dumps(saved).encode())
