"""A listing that lags behind our own calls: within the window the ledger's word counts, after it the cloud's."""

from datetime import timedelta

import msgspec
import pytest

from broker.model.reservation import Reservation, ReservationState
from broker.model.snapshot import ScopeView, Trust
from state.entries import Holding
from state.lag import made_whole
from state.witness import Look
from tests.state.worlds import HOUR, MINUTE, T0, held, view

WINDOW = 5 * MINUTE


def known(reservation: Reservation) -> dict[str, Holding]:
    """As our own call left it at T0."""
    return {reservation.id: Holding(reservation=reservation, steps=(), confirmed=T0, changed=T0)}


def seen(listed: ScopeView, ours: Reservation) -> tuple[Reservation, ...]:
    at = listed.reservations_at or T0
    return made_whole(listed, known(ours), Look.of(listed, at, WINDOW)).reservations


LATER = pytest.mark.parametrize(("after", "lags"), [(WINDOW, True), (WINDOW + timedelta(seconds=1), False)])


@LATER
def test_a_purchase_that_is_not_listed_yet_is_held(after: timedelta, lags: bool) -> None:
    assert seen(view(at=T0 + after), held()) == ((held(),) if lags else ())


@LATER
def test_a_count_and_an_end_of_before_the_change_are_not_believed(after: timedelta, lags: bool) -> None:
    before, now = held(count=2, ends=T0 + HOUR, used=1), held(count=3, ends=T0 + 24 * HOUR)
    (shown,) = seen(view(before, at=T0 + after), now)
    assert shown == (msgspec.structs.replace(before, count=now.count, ends=now.ends) if lags else before)


@LATER
def test_what_was_given_back_is_gone_although_it_is_listed(after: timedelta, lags: bool) -> None:
    released = held(state=ReservationState.RELEASED)
    assert seen(view(held(), at=T0 + after), released) == ((released,) if lags else (held(),))
    assert seen(view(at=T0 + after), released) == ()


def test_what_the_cloud_says_is_gone_is_gone() -> None:
    expired = held(state=ReservationState.EXPIRED, count=2)
    assert seen(view(expired, at=T0), held(count=3)) == (expired,)


def test_a_listing_that_was_not_read_is_left_as_it_is() -> None:
    blind = view(at=T0, trust=Trust.UNKNOWN)
    assert seen(blind, held()) == ()
