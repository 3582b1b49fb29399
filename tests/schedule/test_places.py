"""Where an order can start: on one node if the job fits there, else on whole ones; named where the queue names them."""

import random

import msgspec
import pytest

from broker.model.job import Job
from broker.model.policy import OwnNodes, Policy, Pool
from broker.schedule.orders import PoolSchedule, Spot
from broker.schedule.places import Rack, with_places
from broker.schedule.step import begin
from tests.schedule.cluster import START, job, looked, policy, running, tenant

RACK = Rack(source="own nodes gpu-*", nodes=3, gpus_per_node=8, patterns=("gpu-*",))


def places(found: PoolSchedule) -> dict[str, tuple[Spot, ...]]:
    return {order.job: order.places for order in (*found.grants, *found.loans)}


def granted(*jobs: Job, nodes: int = 3) -> PoolSchedule:
    own = (OwnNodes(nodes=nodes, gpus_per_node=8, node_patterns=("gpu-*",)),)
    rules = policy(tenant("nlp", 8 * nodes))
    pool = Pool(name="h100", gpu_models=("H100",), places=(), own=own, default=True)
    return looked(begin(START), 0, *jobs, rules=Policy(pools=(pool,), tenants=rules.tenants))


def test_a_job_of_a_node_or_less_goes_where_least_is_free_but_enough() -> None:
    found = granted(
        running("a", "nlp", 5, 0, 0, node_names=("gpu-2",)),
        running("b", "nlp", 6, 0, 0, node_names=("gpu-7",)),
        job("c", "nlp", 3),
        job("d", "nlp", 4),
    )
    assert places(found) == {
        "c/c": (Spot(node="gpu-2", gpus=3, named=True),),
        "c/d": (Spot(node="own nodes gpu-* #3", gpus=4, named=False),),
    }
    assert "nodes on which nothing runs have numbers here, for the queue does not tell their names" in found.notes


def test_a_larger_one_takes_whole_nodes_and_one_that_says_its_nodes_those() -> None:
    assert [spot.gpus for spot in places(granted(job("a", "nlp", 20)))["c/a"]] == [8, 8, 4]
    spread = granted(running("r", "nlp", 3, 0, 0, node_names=("gpu-1",)), job("a", "nlp", 8, nodes=2, gpus_per_node=4))
    assert [(spot.node, spot.gpus) for spot in places(spread)["c/a"]] == [("gpu-1", 4), ("own nodes gpu-* #2", 4)]


def test_the_largest_whole_nodes_come_first() -> None:
    racks = [Rack(source=name, nodes=2, gpus_per_node=gpus) for name, gpus in (("small", 4), ("large", 8))]
    wide = job("a", "nlp", 12)
    found = with_places(granted(wide), racks, {"c/a": wide})
    assert [(spot.node, spot.gpus) for spot in places(found)["c/a"]] == [("large #1", 8), ("large #2", 4)]


def test_what_runs_nobody_knows_where_is_put_together() -> None:
    runs = [running(f"r{n}", "nlp", gpus, 0, 0) for n, gpus in enumerate((2, 2, 6, 6))]
    assert [spot.gpus for spot in places(granted(*runs, job("a", "nlp", 8)))["c/a"]] == [8]


def test_what_is_free_but_not_together_is_said() -> None:
    apart = [running(f"r{n}", "nlp", 4, 0, 0, node_names=(f"gpu-{n}",)) for n in range(3)]
    found = granted(*apart, job("a", "nlp", 8))
    assert places(found) == {"c/a": ()}
    assert "c/a: the GPUs are free, but not together on nodes as jobs sit now" in found.notes


def test_jobs_that_do_not_say_where_they_run_make_it_a_guess() -> None:
    found = granted(running("r", "nlp", 8, 0, 0), job("a", "nlp", 16))
    assert sum(spot.gpus for spot in places(found)["c/a"]) == 16
    assert "1 running jobs do not say on which nodes they are: places are a guess" in found.notes


def test_single_slots_have_no_places() -> None:
    alone = Rack(source="x", nodes=8, gpus_per_node=1)
    found = granted(job("a", "nlp", 2))
    bare = PoolSchedule(pool="h100", grants=found.grants)
    assert with_places(bare, (alone,), {"c/a": job("a", "nlp", 2)}) is bare


@pytest.mark.parametrize("seed", range(60))
def test_no_node_is_overfilled_and_no_small_job_split(seed: int) -> None:
    rng = random.Random(seed)
    racks = (RACK, Rack(source="cr-1", nodes=2, gpus_per_node=4))
    held, used = {}, {f"gpu-{n}": 0 for n in range(3)}
    for n, name in enumerate(used):
        gpus = rng.randint(0, 8)
        if gpus:
            held[f"c/r{n}"] = running(f"r{n}", "nlp", gpus, 0, 0, node_names=(name,))
            used[name] = gpus
    waiting = {f"c/{n}": job(str(n), "nlp", rng.choice((1, 2, 4, 8, 12))) for n in range(6)}
    template = granted(job("0", "nlp", 1)).grants[0]
    grants = tuple(msgspec.structs.replace(template, job=key, gpus=each.gpus) for key, each in waiting.items())
    found = with_places(PoolSchedule(pool="h100", grants=grants), racks, {**held, **waiting})
    for key, spots in places(found).items():
        assert not spots or sum(spot.gpus for spot in spots) == waiting[key].gpus
        assert len(spots) <= 1 or waiting[key].gpus > 8
        for spot in spots:
            used[spot.node] = used.get(spot.node, 0) + spot.gpus
    assert all(gpus <= (4 if name.startswith("cr-1") else 8) for name, gpus in used.items())
