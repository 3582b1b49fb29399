"""The market alone: what is finite, what is billed, what time does."""

from datetime import timedelta
from decimal import Decimal

import pytest

from broker.model.place import ProviderName
from providers.sandbox.catalogue import Pool
from providers.sandbox.holdings import Holding, HoldingState
from providers.sandbox.record import CALLS_KEPT
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import OutOfCapacity, OverQuota, QuotaRule, Twist, WrongState
from providers.sandbox.world import World

P5 = Pool(ProviderName.AWS, "us-east-1", "use1-az1", "p5.48xlarge")
HOUR = timedelta(hours=1)


def reserve(world: World, count: int, id: str = "cr-1", **rest: object) -> Holding:
    return world.market.reserve(P5, "1", count, id=id, **rest)  # type: ignore[arg-type]


def test_capacity_is_finite_for_all_accounts_together() -> None:
    world = World()
    free = world.market.free(P5)
    reserve(world, free - 1)
    with pytest.raises(OutOfCapacity):
        world.market.reserve(P5, "2", 2, id="cr-2")
    world.market.reserve(P5, "2", 1, id="cr-2")
    assert world.market.free(P5) == 0


def test_a_stock_out_lasts_as_long_as_it_was_set_to_and_spares_what_is_held() -> None:
    world = World()
    holding = reserve(world, 2)
    world.market.set_capacity(PoolRule(zone="use1-az1", until=world.clock.now() + HOUR))
    with pytest.raises(OutOfCapacity):
        world.market.resize(holding, 3)
    assert holding.count == 2
    world.clock.advance(HOUR)
    assert world.market.resize(holding, 3).count == 3


def test_a_quota_counts_what_is_asked_for_and_what_is_held() -> None:
    world = World()
    world.market.set_quota(QuotaRule(provider=ProviderName.AWS, quota="L-417A185B", limit=3 * 192, account="1"))
    holding = reserve(world, 2)
    with pytest.raises(OverQuota):
        world.market.resize(holding, 4)
    with pytest.raises(OverQuota):
        reserve(world, 2, "cr-2")
    assert world.market.quota_used(ProviderName.AWS, "1", "us-east-1", "L-417A185B") == 2 * 192


def test_the_bill_says_who_held_what_from_when_to_when() -> None:
    world = World()
    start = world.clock.now()
    holding = reserve(world, 2)
    world.clock.advance(HOUR)
    world.market.resize(holding, 3)
    world.clock.advance(HOUR / 2)
    world.market.release(holding)
    world.clock.advance(HOUR)
    lines = world.market.bill()
    assert [(line.count, line.start - start, line.end) for line in lines] == [
        (2, timedelta(0), start + HOUR),
        (3, HOUR, start + 1.5 * HOUR),
    ]
    assert sum(line.usd(world.clock.now()) for line in lines) == Decimal("55.04") * (2 + Decimal("1.5"))


def test_provisioning_takes_time_and_the_bill_begins_after_it() -> None:
    world = World()
    world.market.set_provisioning(ProviderName.AWS, 2 * HOUR)
    holding = reserve(world, 1)
    assert holding.state is HoldingState.PENDING
    ready = world.clock.now() + 2 * HOUR
    world.clock.advance(5 * HOUR)
    assert [line.start for line in world.market.bill()] == [ready]


def test_an_end_comes_at_its_instant_however_late_anyone_looks() -> None:
    world = World()
    end = world.clock.now() + HOUR
    reserve(world, 1, ends=end)
    world.clock.advance(10 * HOUR)
    (seen,) = world.market.holdings(ProviderName.AWS)
    assert (seen.state, seen.ended) == (HoldingState.EXPIRED, end)
    assert world.market.bill()[0].end == end


def test_an_end_may_come_late_and_is_billed_until_it_comes() -> None:
    world = World(seed=3)
    world.market.set_end_lag(ProviderName.AWS, HOUR)
    end = world.clock.now() + HOUR
    for number in range(5):
        reserve(world, 1, f"cr-{number}", ends=end)
    world.clock.advance(2 * HOUR)
    lags = {line.end - end for line in world.market.bill() if line.end}
    assert len(lags) == 5
    assert all(timedelta(0) <= lag < HOUR for lag in lags)


@pytest.mark.parametrize("ends", [False, True])
def test_what_comes_in_part_goes_as_what_had_come(ends: bool) -> None:
    world = World()
    world.market.twist = Twist(delivers=1)
    holding = reserve(world, 3, ends=world.clock.now() + HOUR)
    if ends:
        world.clock.advance(2 * HOUR)
        world.market.settle()
    else:
        world.market.release(holding)
    assert [(e.before, e.after) for e in world.record.effects] == [(0, 1), (1, 0)]


def test_what_is_hidden_is_there_all_the_same() -> None:
    world = World()
    world.market.twist = Twist(hidden=timedelta(minutes=3))
    holding = reserve(world, 4)
    world.market.twist = Twist()
    assert world.market.holdings() == []
    assert world.market.true_holding(P5.provider, "1", P5.region, "cr-1").count == 4
    world.clock.advance(timedelta(minutes=3))
    assert [seen.id for seen in world.market.holdings()] == [holding.id]


def test_instances_fill_a_reservation_and_outlive_it() -> None:
    world = World()
    free = world.market.free(P5)
    holding = reserve(world, 1)
    instance = world.market.launch(P5, "1", id="i-1", holding=holding)
    with pytest.raises(WrongState):
        world.market.launch(P5, "1", id="i-2", holding=holding)
    assert world.market.free(P5) == free - 1
    world.market.release(holding)
    assert instance.holding is None
    assert world.market.free(P5) == free - 1
    world.market.terminate(instance)
    assert world.market.free(P5) == free


def test_background_tenants_come_and_go_as_the_seed_says() -> None:
    times = [timedelta(hours=hour) for hour in range(96)]
    first, again, other = World(seed=1, busy=0.5), World(seed=1, busy=0.5), World(seed=2, busy=0.5)
    start = first.clock.now()
    levels = [first.market.supply.at(P5, start + time) for time in times]
    assert levels == [again.market.supply.at(P5, start + time) for time in reversed(times)][::-1]
    assert levels != [other.market.supply.at(P5, start + time) for time in times]
    assert len(set(levels)) > 3
    assert 0.3 < sum(levels) / len(levels) / 16 < 0.7


def test_a_saved_world_goes_on_as_the_same_world() -> None:
    world, other = World(seed=5), World()
    holding = reserve(world, 2, tags={"team": "a"})
    world.market.launch(P5, "1", id="i-1", holding=holding)
    other.restore(world.saved())
    assert other.market.holdings() == world.market.holdings()
    assert other.market.bill() == world.market.bill()
    assert other.market.new_id("cr-", 17) == world.market.new_id("cr-", 17)


def test_a_world_that_lives_long_keeps_its_effects_and_its_last_calls() -> None:
    world, other = World(), World()
    for _ in range(CALLS_KEPT + 10):
        world.record.begin(world.clock.now(), ProviderName.AWS, "Describe", {})
    reserve(world, 2)
    other.restore(world.saved())
    assert [call.number for call in (other.record.calls[0], other.record.calls[-1])] == [11, CALLS_KEPT + 10]
    assert other.record.effects == world.record.effects
    assert other.record.begin(world.clock.now(), ProviderName.AWS, "Describe", {}).number == CALLS_KEPT + 11
