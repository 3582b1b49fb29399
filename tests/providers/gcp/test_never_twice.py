"""Whatever goes wrong and in whatever combination, what was bought is never called not bought, nor bought again."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.reservation import Reservation
from providers.base import ProviderError, Seen
from providers.gcp.adapter import Gcp
from providers.sandbox.faults import FaultKind, Rule
from providers.sandbox.local import Sandbox
from tests.providers.gcp.conftest import SCOPE, adapter, release_request, reserve_request, resize_request

FIELDS = ["name", "status", "error", "specificReservation", "count", "targetLink", "items", "zone"]
_numbers = count()


@pytest.fixture(scope="module")
def world() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def rules(change: str) -> st.SearchStrategy[list[Rule]]:
    """Server errors stand for all errors: a cloud that acts and then says "forbidden" cannot be understood."""
    rule = st.builds(
        Rule,
        kind=st.sampled_from([kind for kind in FaultKind if kind not in (FaultKind.DELAY, FaultKind.DELAY_BEFORE)]),
        operation=st.sampled_from([change, change, "zoneOperations.wait", "reservations.get"]),
        delay_s=st.sampled_from([0.0, 60.0]),
        retry_after_s=st.just(0),
        field=st.sampled_from(FIELDS),
        times=st.sampled_from([1, 2, None]),
    )
    return st.lists(rule, max_size=4)


@settings(max_examples=60)
@given(faults=rules("reservations.insert"))
def test_purchases(world: Sandbox, faults: list[Rule]) -> None:
    buy(world, faults)


@settings(max_examples=40)
@given(faults=rules("reservations.resize"))
def test_growth(world: Sandbox, faults: list[Rule]) -> None:
    grow(world, faults)


@pytest.mark.deep
@settings(max_examples=1500)
@given(faults=rules("reservations.insert"))
def test_many_purchases(world: Sandbox, faults: list[Rule]) -> None:
    buy(world, faults)


@pytest.mark.deep
@settings(max_examples=1000)
@given(faults=rules("reservations.resize"))
def test_much_growth(world: Sandbox, faults: list[Rule]) -> None:
    grow(world, faults)


def buy(world: Sandbox, faults: list[Rule]) -> None:
    request = reserve_request(f"n{next(_numbers)}", 1)
    gcp = start(world, faults)

    outcome = outcome_of(lambda: gcp.reserve(request))

    assert world.record.operations().count("reservations.insert") == 1
    bought = len(world.record.purchases())
    assert bought <= 1
    if bought and not failed_later(world):
        assert isinstance(outcome, Reservation) or outcome.may_have_acted
        assert found_again(world, lambda: gcp.look(request).seen is Seen.DONE)
    wind_down(world, gcp)


def grow(world: Sandbox, faults: list[Rule]) -> None:
    number = next(_numbers)
    gcp = start(world, [])
    bought = gcp.reserve(reserve_request(f"n{number}", 1))
    growth = resize_request(bought.id, 1, 3, key=f"g{number}")
    start(world, faults)

    outcome = outcome_of(lambda: gcp.resize(growth))

    assert world.record.operations().count("reservations.resize") == 1
    if world.record.purchases():
        assert isinstance(outcome, Reservation) or outcome.may_have_acted
        assert found_again(world, lambda: gcp.look(growth).seen is Seen.DONE)
    else:
        assert not isinstance(outcome, Reservation)
    wind_down(world, gcp)


def start(world: Sandbox, faults: list[Rule]) -> Gcp:
    """The adapter on a world with these faults, and nothing recorded yet."""
    world.record.clear()
    world.world.faults.clear()
    for rule in faults:
        world.world.faults.add(rule)
    return adapter(world)


def outcome_of(act: Callable[[], Reservation]) -> Reservation | ProviderError:
    try:
        return act()
    except ProviderError as error:
        return error


def failed_later(world: Sandbox) -> bool:
    return any(holding.failure for holding in world.market.state.holdings)


def found_again(world: Sandbox, look: Callable[[], bool]) -> bool:
    """Once everything has become visible and no call fails any more."""
    world.world.faults.clear()
    world.advance(timedelta(minutes=2))
    return look()


def wind_down(world: Sandbox, gcp: Gcp) -> None:
    world.world.faults.clear()
    world.advance(timedelta(minutes=2))
    for reservation in gcp.reservations(SCOPE):
        gcp.release(release_request(reservation.id))
    world.market.state.holdings.clear()
    world.record.clear()
