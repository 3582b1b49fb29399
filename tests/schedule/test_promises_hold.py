"""Whatever the queue does: no more slots than there are, no loan that was not allowed, the same after a restart."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.policy import Policy
from broker.schedule.memory import Memory, dumps, loads
from broker.schedule.orders import PoolSchedule
from broker.schedule.step import begin, look
from tests.schedule.cluster import SETTINGS, START, Cluster, Work, policy, seen, tenant

Cut = Callable[[Memory], Memory]
STEP_S = 100.0


def worlds(rng: random.Random) -> Policy:
    """Two nodes among three tenants, of which one keeps its own and one does not borrow."""
    return policy(
        tenant("open", rng.choice([2, 4, 8])),
        tenant("closed", rng.choice([2, 4]), lends=False),
        tenant("proud", rng.choice([0, 2, 4]), borrows=False, max_lent=(("h100", 1),)),
    )


def play(seed: int, cut: Cut, *, looks: int = 90, lazy: float = 0.3) -> Iterator[tuple[PoolSchedule, int]]:
    """(what was decided, GPUs that the cluster has in use at that look)."""
    rng = random.Random(seed)
    rules, cluster, memory = worlds(rng), Cluster(rng, 16, lazy), begin(START)
    for number in range(looks):
        now = number * STEP_S
        cluster.pass_time(now, STEP_S)
        for _ in range(rng.choice([0, 0, 1, 3]) if number > 20 else 0):
            name = rng.choice(["open", "closed", "proud", "guest"])
            gpus, work_s = rng.choice([1, 1, 2, 4, 8]), rng.choice([50, 500, 2500])
            cluster.add(Work(f"{number}-{len(cluster.works)}-{rng.random():.6f}", name, gpus, now - 1, work_s))
        memory = cut(memory)
        (found,) = look(memory, seen(now, *cluster.queue()), rules, SETTINGS).pools
        used = cluster.used()
        cluster.follow(found, now)
        yield found, used


def uncut(memory: Memory) -> Memory:
    return memory


def saved(memory: Memory) -> Memory:
    return loads(dumps(memory))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0.0, 0.3, 0.8]))
def test_never_grants_more_slots_than_there_are(seed: int, lazy: float) -> None:
    for found, used in play(seed, uncut, lazy=lazy):
        started = sum(order.gpus for order in (*found.grants, *found.loans) if order.kind != "restart")
        assert used + started <= found.capacity_gpus == 16


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9))
def test_who_does_not_lend_is_never_lent_from_and_who_does_not_borrow_never_borrows(seed: int) -> None:
    for found, _ in play(seed, uncut):
        shares = {share.tenant: share for share in found.tenants}
        for loan in found.lent:
            assert loan.tenant != "proud"
            assert loan.beyond_gpus == 0
            assert "closed" not in {part.tenant for part in loan.lenders}
            assert loan.own_gpus + sum(part.gpus for part in loan.lenders) == loan.gpus
        assert shares["closed"].lent_gpus == 0
        assert all(share.lent_gpus <= share.may_lend_gpus for share in shares.values())
        assert not any(order.tenant == "proud" for order in found.loans)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 89))
def test_saved_and_loaded_at_any_look_it_decides_the_same(seed: int, where: int) -> None:
    looks = iter(range(10**6))
    assert list(play(seed, uncut)) == list(play(seed, lambda memory: saved(memory) if next(looks) == where else memory))


def test_a_command_that_ends_after_each_look_decides_the_same() -> None:
    seen_kinds = set()
    for seed in range(4):
        whole = list(play(seed, uncut, looks=150))
        assert whole == list(play(seed, saved, looks=150))
        seen_kinds |= {name for found, _ in whole for name in ("grants", "loans", "reclaims") if getattr(found, name)}
        seen_kinds |= {"overdue" for found, _ in whole if found.overdue}
    assert seen_kinds == {"grants", "loans", "reclaims", "overdue"}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9))
def test_letting_finished_jobs_go_changes_no_decision(seed: int) -> None:
    whole = list(play(seed, uncut, looks=120))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.schedule.step.FORGET_FROM", 0)
        assert whole == list(play(seed, saved, looks=120))


def test_a_long_life_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.schedule.step.FORGET_FROM", 10)
    memories: list[Memory] = []

    def kept(memory: Memory) -> Memory:
        memories.append(memory)
        return memory

    assert len(list(play(5, kept, looks=400))) == 400
    (pool,) = memories[-1].pools.values()
    assert pool.names > 100
    assert len(pool.machine.jobs) <= 10 + 3 * len(pool.known) + 16


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9))
def test_promises_and_capacity_that_change_break_nothing(seed: int) -> None:
    """Never more slots than there are, and books that stay in order, whatever is promised from look to look."""
    rng = random.Random(seed)
    cluster, memory = Cluster(rng, 16), begin(START)
    rules = worlds(rng)
    for number in range(90):
        now = number * STEP_S
        rules = worlds(rng) if number % 7 == 0 else rules
        cluster.pass_time(now, STEP_S)
        for _ in range(rng.choice([0, 1, 2]) if number > 20 else 0):
            owner, gpus = rng.choice(["open", "closed", "proud", "guest"]), rng.choice([1, 2, 4, 8])
            cluster.add(Work(f"{number}-{rng.random()}", owner, gpus, now - 1, rng.choice([50, 500, 2500])))
        (found,) = look(memory, seen(now, *cluster.queue()), rules, SETTINGS).pools
        started = sum(order.gpus for order in (*found.grants, *found.loans) if order.kind != "restart")
        assert cluster.used() + started <= 16
        assert all(0 <= share.granted_gpus <= share.owed_gpus for share in found.tenants)
        assert all(tenant.behind >= 0 for tenant in memory.pools["h100"].machine.state.tenants)
        cluster.follow(found, now)
