"""A purchase happens once, and is always found again."""

from datetime import timedelta

import msgspec
import pytest

from broker.clock import FixedClock
from broker.model.reservation import Owner, ReservationState
from providers.base import Denied, ProviderError, QuotaExceeded, Seen, Throttled, Unfilled, Unreachable
from providers.sandbox.faults import FaultKind
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule
from tests.contract.cloud import LINEAGE, TAGS, Bench


def test_it_is_one_call_and_one_effect_and_bears_its_owner(bench: Bench) -> None:
    bought = bench.provider.reserve(bench.reserve_request())

    assert (bought.count, bought.state, bought.owner) == (2, ReservationState.ACTIVE, Owner(LINEAGE, "k1"))
    assert (bought.place, bought.machine_type) == (bench.cloud.place, bench.cloud.machine_type)
    assert len(bench.calls(bench.cloud.buy)) == len(bench.purchases()) == 1


def test_the_users_tags_are_on_it_where_the_cloud_keeps_them(bench: Bench) -> None:
    bench.provider.reserve(bench.reserve_request())

    (listed,) = bench.listed().values()

    assert listed.owner == Owner(LINEAGE, "k1")
    assert set(TAGS) <= set(listed.tags)


def test_looking_is_repeatable_and_changes_nothing(bench: Bench) -> None:
    bought = bench.provider.reserve(bench.reserve_request())
    effects = len(bench.sandbox.record.effects)

    sightings = [bench.provider.look(bench.reserve_request()) for _ in range(3)]

    assert {(s.seen, s.reservation.id if s.reservation else "") for s in sightings} == {(Seen.DONE, bought.id)}
    assert bench.provider.look(bench.reserve_request("k9")).seen is Seen.NOT_YET
    assert len(bench.sandbox.record.effects) == effects


@pytest.mark.parametrize(
    "kind", [FaultKind.REPLY_LOST, FaultKind.RESET_AFTER, FaultKind.MALFORMED, FaultKind.ERROR_AFTER]
)
def test_an_answer_that_did_not_come_is_never_a_no_and_never_sent_again(bench: Bench, kind: FaultKind) -> None:
    """The adapter says that it does not know, or has seen for itself what became of it."""
    bench.fault(kind, bench.cloud.buy, status=500)

    try:
        assert bench.provider.reserve(bench.reserve_request()).count == 2
    except ProviderError as error:
        assert error.may_have_acted
    assert len(bench.calls(bench.cloud.buy)) == len(bench.purchases()) == 1
    sighting = bench.provider.look(bench.reserve_request())
    assert sighting.seen is Seen.DONE
    assert sighting.reservation is not None
    assert (sighting.reservation.count, sighting.reservation.owner) == (2, Owner(LINEAGE, "k1"))


def test_an_answer_that_comes_too_late_is_never_a_no(bench: Bench) -> None:
    hasty = bench.cloud.connect(bench.sandbox, bench.sandbox.clock, bench.waits.append, 0.3)
    bench.fault(FaultKind.DELAY, bench.cloud.buy, delay_s=1.0)

    with pytest.raises(ProviderError) as raised:
        hasty.reserve(bench.reserve_request())

    assert raised.value.may_have_acted
    assert len(bench.calls(bench.cloud.buy)) == len(bench.purchases()) == 1
    assert bench.provider.look(bench.reserve_request()).seen is Seen.DONE


def test_a_connection_that_breaks_before_is_looked_after_and_not_sent_again(bench: Bench) -> None:
    bench.fault(FaultKind.RESET_BEFORE, bench.cloud.buy)

    with pytest.raises(ProviderError) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert raised.value.may_have_acted
    assert len(bench.calls(bench.cloud.buy)) == 1
    assert bench.purchases() == []
    assert bench.provider.look(bench.reserve_request()).seen is Seen.NOT_YET


def test_a_cloud_that_was_never_reached_has_done_nothing(bench: Bench) -> None:
    bench.sandbox.stop()

    with pytest.raises(Unreachable) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert not raised.value.may_have_acted


def test_a_full_zone_is_unfilled_and_leaves_nothing(bench: Bench) -> None:
    bench.sandbox.market.set_capacity(PoolRule(capacity=1))

    with pytest.raises(Unfilled) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert raised.value.code
    assert len(bench.calls(bench.cloud.buy)) == 1
    assert bench.held() == 0


def test_a_quota_that_is_used_up_is_told_from_a_full_zone(bench: Bench) -> None:
    name, units = bench.cloud.quota
    bench.sandbox.market.set_quota(QuotaRule(provider=bench.cloud.place.scope.provider, quota=name, limit=units))

    with pytest.raises(QuotaExceeded):
        bench.provider.reserve(bench.reserve_request())

    assert bench.held() == 0


def test_who_may_not_is_denied_with_the_clouds_own_words(bench: Bench) -> None:
    status, code = bench.cloud.denied
    bench.fault(FaultKind.ERROR, bench.cloud.buy, status=status, code=code, message="you may not")

    with pytest.raises(Denied) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert raised.value.code == code
    assert "you may not" in raised.value.message
    assert len(bench.calls(bench.cloud.buy)) == 1


def test_a_throttled_purchase_is_a_no_and_not_sent_again(bench: Bench) -> None:
    bench.fault(FaultKind.THROTTLE, bench.cloud.buy, retry_after_s=1)

    with pytest.raises(Throttled) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert not raised.value.may_have_acted
    assert len(bench.calls(bench.cloud.buy)) == 1
    assert bench.held() == 0


def test_fields_that_are_new_to_us_lose_no_purchase(bench: Bench) -> None:
    bench.fault(FaultKind.UNKNOWN_FIELD, "*", times=None)

    bought = bench.provider.reserve(bench.reserve_request())

    assert (bought.count, bought.state) == (2, ReservationState.ACTIVE)
    assert list(bench.listed()) == [bought.id]


def test_what_is_visible_only_later_is_not_yet_and_then_done(bench: Bench) -> None:
    bench.fault(FaultKind.HIDDEN, bench.cloud.buy, delay_s=120)
    bench.fault(FaultKind.REPLY_LOST, bench.cloud.buy)
    with pytest.raises(ProviderError):
        bench.provider.reserve(bench.reserve_request())

    assert bench.provider.look(bench.reserve_request()).seen is Seen.NOT_YET
    bench.advance(121)
    assert bench.provider.look(bench.reserve_request()).seen is Seen.DONE
    assert len(bench.purchases()) == 1


def test_what_is_accepted_and_fails_later_is_refused_and_costs_nothing(bench: Bench) -> None:
    bench.fault(FaultKind.FAILS_LATER, bench.cloud.buy, delay_s=60, code=bench.cloud.full, message="none left")

    try:
        assert bench.provider.reserve(bench.reserve_request()).state in (
            ReservationState.PENDING,
            ReservationState.UNKNOWN,
        )
    except ProviderError as error:
        assert error.may_have_acted or isinstance(error, Unfilled)
    bench.advance(61)

    sighting = bench.provider.look(bench.reserve_request())
    assert sighting.seen is Seen.REFUSED
    assert sighting.error is not None
    assert not sighting.error.may_have_acted
    assert bench.held() == 0
    assert bench.sandbox.market.bill() == []
    assert len(bench.calls(bench.cloud.buy)) == 1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_wrong_by_an_hour_changes_nothing(bench: Bench, hours: int) -> None:
    wrong = FixedClock(bench.sandbox.clock.now() + timedelta(hours=hours))
    provider = bench.cloud.connect(bench.sandbox, wrong, bench.waits.append, 5.0)

    bought = provider.reserve(bench.reserve_request())

    sighting = provider.look(bench.reserve_request())
    assert (sighting.seen, bought.state) == (Seen.DONE, ReservationState.ACTIVE)
    assert len(bench.purchases()) == 1


def test_two_decisions_are_two_purchases(bench: Bench) -> None:
    first = bench.provider.reserve(bench.reserve_request("k1"))
    second = bench.provider.reserve(bench.reserve_request("k2"))

    assert first.id != second.id
    assert set(bench.listed()) == {first.id, second.id}


def test_a_provider_error_says_the_operation_and_survives_being_shown(bench: Bench) -> None:
    bench.sandbox.market.set_capacity(PoolRule(capacity=0))

    with pytest.raises(Unfilled) as raised:
        bench.provider.reserve(bench.reserve_request())

    assert raised.value.operation
    assert raised.value.code in str(raised.value)
    assert msgspec.json.encode(bench.reserve_request())
