"""A listing is complete, or it is an error: never a shorter list."""

import pytest

from broker.model.reservation import ReservationState
from providers.base import Denied, ProviderError, Throttled
from providers.sandbox.faults import FaultKind
from tests.contract.cloud import Bench


def buy(bench: Bench, count: int) -> set[str]:
    return {bench.provider.reserve(bench.reserve_request(f"k{i}", 1)).id for i in range(count)}


def test_all_pages_are_read(bench: Bench) -> None:
    ids = buy(bench, 5)
    bench.sandbox.page_size(bench.cloud.place.scope.provider, 2)
    bench.sandbox.record.clear()

    assert set(bench.listed()) == ids
    assert len(bench.calls(bench.cloud.list)) >= 3


def test_a_page_that_never_comes_fails_the_whole_list(bench: Bench) -> None:
    buy(bench, 5)
    bench.sandbox.page_size(bench.cloud.place.scope.provider, 2)
    for nth in range(2, 30):
        bench.fault(FaultKind.ERROR, bench.cloud.list, nth=nth, status=503)

    with pytest.raises(ProviderError):
        bench.listed()


def test_a_page_that_fails_once_is_asked_for_again(bench: Bench) -> None:
    ids = buy(bench, 5)
    bench.sandbox.page_size(bench.cloud.place.scope.provider, 2)
    bench.fault(FaultKind.ERROR, bench.cloud.list, nth=2, status=503)

    assert set(bench.listed()) == ids


@pytest.mark.parametrize("kind", [FaultKind.MALFORMED, FaultKind.RESET_BEFORE, FaultKind.REPLY_LOST])
def test_a_list_that_breaks_is_read_again_and_then_given_up(bench: Bench, kind: FaultKind) -> None:
    ids = buy(bench, 1)
    bench.fault(kind, bench.cloud.list)
    assert set(bench.listed()) == ids

    bench.fault(kind, bench.cloud.list, times=None)
    with pytest.raises(ProviderError):
        bench.listed()


def test_waiting_is_as_long_as_the_cloud_asks_for(bench: Bench) -> None:
    ids = buy(bench, 1)
    bench.waits.clear()
    bench.fault(FaultKind.THROTTLE, bench.cloud.list, times=2, retry_after_s=7)

    assert set(bench.listed()) == ids
    assert len([wait for wait in bench.waits if wait >= 7]) == 2


def test_an_account_over_its_limit_is_not_hammered(bench: Bench) -> None:
    bench.fault(FaultKind.THROTTLE, bench.cloud.list, times=None)

    with pytest.raises(Throttled):
        bench.listed()

    assert len(bench.calls(bench.cloud.list)) <= 4


def test_who_may_not_list_is_told_so_at_once(bench: Bench) -> None:
    status, code = bench.cloud.denied
    bench.fault(FaultKind.ERROR, bench.cloud.list, times=None, status=status, code=code)

    with pytest.raises(Denied) as raised:
        bench.listed()

    assert raised.value.code == code
    assert len(bench.calls(bench.cloud.list)) == 1


def test_a_state_that_is_new_to_us_is_unknown_and_still_supply(bench: Bench) -> None:
    (id,) = buy(bench, 1)
    bench.fault(FaultKind.UNKNOWN_ENUM, "*", times=None, field=bench.cloud.state, value="Teleporting")

    listed = bench.listed()[id]

    assert (listed.state, listed.raw_state.lower()) == (ReservationState.UNKNOWN, "teleporting")
    assert listed.state.supplies
    assert listed.count == 1


def test_what_others_made_is_listed_and_not_ours(bench: Bench) -> None:
    ours = buy(bench, 1)
    foreign = bench.cloud.foreign(bench.sandbox)

    listed = bench.listed()

    assert set(listed) == {foreign, *ours}
    assert listed[foreign].owner is None
    assert listed[foreign].count == 1


def test_one_region_that_fails_does_not_hide_another(bench: Bench) -> None:
    bench.provider.reserve(bench.reserve_request(place=bench.cloud.other))
    here, there = bench.cloud.place.scope, bench.cloud.other.scope

    assert bench.provider.reservations(here) == ()
    assert len(bench.provider.reservations(there)) == 1
    assert {here, there} <= set(bench.provider.scopes())
