"""A reservation changes in place, and is given back however often that is asked for."""

from datetime import timedelta

import pytest

from broker.model.reservation import Reservation, ReservationState
from providers.base import ProviderError, Seen, Unfilled, Unsupported
from providers.sandbox.faults import FaultKind
from providers.sandbox.record import EffectKind
from providers.sandbox.supply import PoolRule
from tests.contract.cloud import Bench


@pytest.fixture
def bought(bench: Bench) -> Reservation:
    return bench.provider.reserve(bench.reserve_request())


def test_growth_and_shrinking_keep_the_reservation(bench: Bench, bought: Reservation) -> None:
    grown = bench.provider.resize(bench.resize_request(bought.id, 2, 4))
    assert (grown.id, grown.count) == (bought.id, 4)
    shrunk = bench.provider.resize(bench.resize_request(bought.id, 4, 1, "k5"))
    assert (shrunk.id, shrunk.count) == (bought.id, 1)

    assert bench.listed()[bought.id].count == bench.held() == 1
    assert EffectKind.RELEASE not in {effect.kind for effect in bench.sandbox.record.effects}


@pytest.mark.parametrize("kind", [FaultKind.REPLY_LOST, FaultKind.RESET_AFTER, FaultKind.ERROR_AFTER])
def test_growth_whose_answer_did_not_come_is_not_sent_again(bench: Bench, bought: Reservation, kind: FaultKind) -> None:
    bench.sandbox.record.clear()
    bench.fault(kind, bench.cloud.grow, status=500)

    try:
        assert bench.provider.resize(bench.resize_request(bought.id, 2, 4)).count == 4
    except ProviderError as error:
        assert error.may_have_acted
    assert len(bench.calls(bench.cloud.grow)) == len(bench.purchases()) == 1
    sighting = bench.provider.look(bench.resize_request(bought.id, 2, 4))
    assert sighting.seen is Seen.DONE
    assert sighting.reservation is not None
    assert sighting.reservation.count == 4


def test_growth_that_did_not_happen_is_not_taken_for_done(bench: Bench, bought: Reservation) -> None:
    bench.fault(FaultKind.RESET_BEFORE, bench.cloud.grow)

    with pytest.raises(ProviderError) as raised:
        bench.provider.resize(bench.resize_request(bought.id, 2, 4))

    assert raised.value.may_have_acted
    assert bench.provider.look(bench.resize_request(bought.id, 2, 4)).seen is Seen.NOT_YET
    assert bench.held() == 2


def test_growth_into_a_full_zone_leaves_what_was_there(bench: Bench, bought: Reservation) -> None:
    bench.sandbox.market.set_capacity(PoolRule(capacity=2))

    with pytest.raises(Unfilled):
        bench.provider.resize(bench.resize_request(bought.id, 2, 4))

    listed = bench.listed()[bought.id]
    assert (listed.count, listed.state, bench.held()) == (2, ReservationState.ACTIVE, 2)


def test_a_resize_that_is_done_already_buys_nothing(bench: Bench, bought: Reservation) -> None:
    bench.provider.resize(bench.resize_request(bought.id, 2, 4))
    bench.sandbox.record.clear()

    again = bench.provider.resize(bench.resize_request(bought.id, 2, 4))

    assert again.count == 4
    assert bench.purchases() == []


def test_parking_at_zero_works_or_is_refused_before_any_call(bench: Bench, bought: Reservation) -> None:
    calls = len(bench.calls(bench.cloud.grow))
    if bench.provider.capabilities().parks_at_zero:
        assert bench.provider.resize(bench.resize_request(bought.id, 2, 0)).count == bench.held() == 0
        return
    with pytest.raises(Unsupported):
        bench.provider.resize(bench.resize_request(bought.id, 2, 0))
    assert (len(bench.calls(bench.cloud.grow)), bench.held()) == (calls, 2)


def test_an_end_moves_or_is_refused_and_looking_agrees(bench: Bench, bought: Reservation) -> None:
    request = bench.end_request(bought.id, bench.sandbox.clock.now() + timedelta(hours=24))
    if not bench.provider.capabilities().end_settable:
        with pytest.raises(Unsupported):
            bench.provider.set_end(request)
        return
    assert bench.provider.look(request).seen is Seen.NOT_YET
    assert bench.provider.set_end(request).ends == request.to_end
    assert bench.provider.look(request).seen is Seen.DONE
    bench.advance(25 * 3600)
    assert bench.held() == 0


def test_giving_back_twice_is_giving_back_once(bench: Bench, bought: Reservation) -> None:
    for _ in range(2):
        assert bench.provider.release(bench.release_request(bought.id)).state is ReservationState.RELEASED

    assert bench.held() == 0
    releases = [effect for effect in bench.sandbox.record.effects if effect.kind is EffectKind.RELEASE]
    assert len(releases) == 1
    assert bench.provider.look(bench.release_request(bought.id)).seen is Seen.DONE


@pytest.mark.parametrize("kind", [FaultKind.REPLY_LOST, FaultKind.RESET_BEFORE, FaultKind.ERROR])
def test_giving_back_is_tried_again_until_it_is_done(bench: Bench, bought: Reservation, kind: FaultKind) -> None:
    bench.fault(kind, bench.cloud.release, status=503)

    released = bench.provider.release(bench.release_request(bought.id))

    assert released.state is ReservationState.RELEASED
    assert bench.held() == 0


def test_what_was_never_there_is_given_back_already(bench: Bench, bought: Reservation) -> None:
    bench.provider.release(bench.release_request(bought.id))
    bench.advance(30 * 24 * 3600)

    assert bench.provider.release(bench.release_request(bought.id)).state.gone


def test_a_release_that_has_not_happened_is_not_taken_for_done(bench: Bench, bought: Reservation) -> None:
    assert bench.provider.look(bench.release_request(bought.id)).seen is Seen.NOT_YET


def test_what_is_billed_begins_when_the_cloud_says(bench: Bench) -> None:
    bench.advance(1234)
    bought = bench.provider.reserve(bench.reserve_request())
    (line,) = bench.sandbox.market.bill()

    if bench.provider.capabilities().states_billing_start:
        assert bought.billed_from is not None
        assert abs(bought.billed_from - line.start) < timedelta(seconds=1)
    else:
        assert bought.billed_from is None or bought.billed_from <= line.start
