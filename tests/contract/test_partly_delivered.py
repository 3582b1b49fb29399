"""A cloud that takes an order and delivers a part of it: what is not there is no supply, and nothing of it is lost."""

from datetime import timedelta

import pytest

from broker.apply.outcomes import PARTLY, after_yes
from broker.model.intent import IntentStatus
from broker.model.reservation import ReservationState
from providers.base import Seen
from providers.sandbox.faults import FaultKind
from tests.contract.cloud import Bench


@pytest.mark.parametrize("delivered", [0, 1])
@pytest.mark.parametrize("later", [False, True], ids=["at once", "after it was pending"])
def test_what_is_not_delivered_is_no_supply(bench: Bench, delivered: int, later: bool) -> None:
    if later:
        bench.sandbox.market.set_provisioning(bench.cloud.place.scope.provider, timedelta(seconds=60))
    bench.fault(FaultKind.PARTLY, bench.cloud.buy, count=delivered)
    request = bench.reserve_request(count=2)

    bought = bench.provider.reserve(request)

    if later:
        assert (bought.count, bought.missing) == (2, 0), "pending may yet become whole"
        assert after_yes(request, bought, bench.sandbox.clock.now()).code == ""
    else:
        assert bought.count - bought.missing == delivered
    bench.advance(61)
    (listed,) = bench.listed().values()
    assert (listed.state, listed.owner) == (ReservationState.ACTIVE, bought.owner)
    assert listed.count - listed.missing == delivered
    sighting = bench.provider.look(request)
    assert sighting.seen is Seen.DONE
    assert sighting.reservation is not None
    assert sighting.reservation.count - sighting.reservation.missing == delivered
    outcome = after_yes(request, listed, bench.sandbox.clock.now())
    assert (outcome.status, outcome.code) == (IntentStatus.DONE, PARTLY)
    assert f"{delivered} of 2 instances" in outcome.message


def test_growth_that_is_delivered_in_part_is_no_whole_supply(bench: Bench) -> None:
    """From 1 to 4, of which 2 of the 3 new ones come. The count that was set before stays supply throughout."""
    bought = bench.provider.reserve(bench.reserve_request(count=1))
    bench.fault(FaultKind.PARTLY, bench.cloud.grow, count=2)
    request = bench.resize_request(bought.id, 1, 4)

    grown = bench.provider.resize(request)

    (listed,) = bench.listed().values()
    assert (listed.count - listed.missing, listed.state) == (3, ReservationState.ACTIVE)
    if grown.missing:
        assert after_yes(request, grown, bench.sandbox.clock.now()).code == PARTLY
    shrunk = bench.provider.resize(bench.resize_request(bought.id, listed.count, 2, "k9"))
    assert shrunk.count == 2


def test_what_is_delivered_whole_is_whole(bench: Bench) -> None:
    request = bench.reserve_request(count=2)
    bought = bench.provider.reserve(request)
    (listed,) = bench.listed().values()
    assert (bought.missing, listed.missing) == (0, 0)
    assert after_yes(request, bought, bench.sandbox.clock.now()).code == ""
