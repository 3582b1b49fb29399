"""Every mishap at every call on the way: what the adapter says of money is never wrong."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from broker.model.place import ProviderName
from broker.model.reservation import ReservationState
from providers.azure.adapter import Azure
from providers.base import ProviderError, Seen
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from tests.providers.azure.conftest import (
    PATCH,
    PUT,
    SCOPE,
    adapter,
    bought,
    called,
    fault,
    release_request,
    reserve_request,
    resize_request,
)

KINDS = [kind for kind in FaultKind if kind not in (FaultKind.DELAY, FaultKind.DELAY_BEFORE)]
MAKE_GROUP = "capacityReservationGroups.createOrUpdate"
DROP_GROUP = "capacityReservationGroups.delete"
LIST_GROUPS = "capacityReservationGroups.listBySubscription"
GET = "capacityReservations.get"
DELETE = "capacityReservations.delete"
FOLLOW = "operations.get"
TIMES = [1, pytest.param(None, marks=pytest.mark.deep)]
VISIBLE_AFTER = timedelta(minutes=3)


def strike(sandbox: Sandbox, kind: FaultKind, operation: str, times: int | None) -> None:
    rest: dict[str, Any] = {}
    if kind in (FaultKind.UNKNOWN_ENUM, FaultKind.MISSING_FIELD):
        rest |= {"field": "provisioningState"}
    if kind is FaultKind.FAILS_LATER:
        rest |= {"code": "AllocationFailed"}
    if kind is FaultKind.PARTLY and operation == PUT:
        rest |= {"count": 1}
    fault(sandbox, kind, operation, times=times, delay_s=60, **rest)


def held(sandbox: Sandbox) -> int:
    with sandbox.world.lock:
        sandbox.market.settle()
        return sum(h.billed for h in sandbox.market.state.holdings if h.state.live)


def calm(sandbox: Sandbox) -> Azure:
    """The mishaps are over, and everything is visible; another run looks."""
    with sandbox.world.lock:
        sandbox.world.faults.clear()
    sandbox.advance(VISIBLE_AFTER)
    return adapter(sandbox)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("operation", [MAKE_GROUP, GET, PUT, FOLLOW])
@pytest.mark.parametrize("kind", KINDS)
def test_a_purchase(kind: FaultKind, operation: str, times: int | None, sandbox: Sandbox) -> None:
    strike(sandbox, kind, operation, times)
    said: ProviderError | None = None
    try:
        adapter(sandbox).reserve(reserve_request())
    except ProviderError as error:
        said = error

    if said is not None and not said.may_have_acted:
        assert held(sandbox) == 0
    assert called(sandbox, PUT) <= 1
    sighting = calm(sandbox).look(reserve_request())
    assert (sighting.seen is Seen.DONE) is (held(sandbox) > 0), "a part of it is bought as well"
    assert held(sandbox) <= 2
    assert len(bought(sandbox)) <= 1


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("operation", [MAKE_GROUP, GET, PUT, FOLLOW, DELETE, DROP_GROUP])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.deep
def test_a_purchase_into_a_full_zone(kind: FaultKind, operation: str, times: int | None, sandbox: Sandbox) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=1))
    strike(sandbox, kind, operation, times)

    with suppress(ProviderError):
        assert adapter(sandbox).reserve(reserve_request()).state is not ReservationState.ACTIVE

    later = calm(sandbox)
    assert later.look(reserve_request()).seen in (Seen.REFUSED, Seen.NOT_YET)
    assert held(sandbox) == sum(r.count for r in later.reservations(SCOPE) if r.state.supplies) == 0
    sandbox.market.clear_capacity()
    assert later.reserve(reserve_request("k2")).count == held(sandbox) == 2


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("operation", [GET, PATCH, FOLLOW])
@pytest.mark.parametrize("kind", KINDS)
def test_a_growth(kind: FaultKind, operation: str, times: int | None, sandbox: Sandbox) -> None:
    adapter(sandbox).reserve(reserve_request())
    strike(sandbox, kind, operation, times)
    said: ProviderError | None = None
    try:
        adapter(sandbox).resize(resize_request(2, 3))
    except ProviderError as error:
        said = error

    if said is not None and not said.may_have_acted:
        assert held(sandbox) == 2
    sighting = calm(sandbox).look(resize_request(2, 3))
    assert (sighting.seen is Seen.DONE) is (held(sandbox) == 3)
    assert held(sandbox) in (2, 3)
    assert bought(sandbox) in ([(0, 2)], [(0, 2), (2, 3)])


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("operation", [GET, DELETE, DROP_GROUP, LIST_GROUPS, FOLLOW])
@pytest.mark.parametrize("kind", KINDS)
def test_a_release(kind: FaultKind, operation: str, times: int | None, sandbox: Sandbox) -> None:
    adapter(sandbox).reserve(reserve_request())
    strike(sandbox, kind, operation, times)
    said = None
    with suppress(ProviderError):
        said = adapter(sandbox).release(release_request()).state

    if said is ReservationState.RELEASED:
        assert held(sandbox) == 0
    later = calm(sandbox)
    assert (later.look(release_request()).seen is Seen.DONE) is (later.reservations(SCOPE) == ())
    assert later.release(release_request()).state is ReservationState.RELEASED
    assert (held(sandbox), later.reservations(SCOPE)) == (0, ())
    assert sandbox.record.purchases(ProviderName.AZURE)[1:] == []
