"""What is particular to EC2; what all clouds have in common is in the contract."""

import threading
from datetime import timedelta

import pytest

from broker.model.place import Place, ProviderName, Scope
from broker.model.reservation import ReservationState
from providers.aws.adapter import Aws
from providers.base import Conflict, NotFound, ProviderError, QuotaExceeded, Seen, Throttled, Unreachable, Unsupported
from providers.sandbox.faults import FaultKind
from providers.sandbox.holdings import Holding
from providers.sandbox.local import Sandbox
from providers.sandbox.terms import QuotaRule
from tests.providers.aws.conftest import (
    CANCEL,
    CREATE,
    DESCRIBE,
    MODIFY,
    PLACE,
    SCOPE,
    adapter,
    end_request,
    release_request,
    reserve_request,
    resize_request,
)

LAB = Scope(ProviderName.AWS, "lab", "us-east-1")


def holding(sandbox: Sandbox) -> Holding:
    (only,) = sandbox.market.holdings()
    return only


def test_the_key_is_the_token_so_that_even_a_repeat_buys_once(aws: Aws, sandbox: Sandbox) -> None:
    first = aws.reserve(reserve_request())
    again = adapter(sandbox).reserve(reserve_request())

    assert again.id == first.id
    assert len(sandbox.record.purchases()) == 1
    assert {call.parameters["ClientToken"] for call in sandbox.record.calls} == {"k1"}


def test_all_that_was_asked_for_is_on_it(aws: Aws, sandbox: Sandbox) -> None:
    end = sandbox.clock.now() + timedelta(hours=24)
    match = (("platform", "Red Hat Enterprise Linux"), ("tenancy", "dedicated"))

    bought = aws.reserve(reserve_request(end=end, targeted=False, match=match))

    assert (bought.ends, bought.targeted, bought.match) == (end, False, match)
    assert holding(sandbox).ends == end
    assert holding(sandbox).details["criteria"] == "open"
    assert holding(sandbox).tags["team"] == "vision lab"


def test_a_zone_may_be_known_by_its_id_alone(aws: Aws) -> None:
    bought = aws.reserve(reserve_request(place=Place(SCOPE, "", "use1-az2")))
    assert (bought.place.zone, bought.place.zone_id) == ("us-east-1b", "use1-az2")


def test_each_account_has_its_own_zones_and_its_own_reservations(aws: Aws, sandbox: Sandbox) -> None:
    place = next(o.place for o in aws.offers(LAB, ("h100",)) if o.place.zone_id == "use1-az1")
    bought = aws.reserve(reserve_request(place=place))

    assert aws.identify(LAB).account == "210987654321"
    assert [r.id for r in aws.reservations(LAB)] == [bought.id]
    assert aws.reservations(SCOPE) == ()
    assert holding(sandbox).account == "210987654321"
    assert sandbox.record.operations().count("AssumeRole") == 1


def test_a_count_that_somebody_changed_is_not_overwritten(aws: Aws, sandbox: Sandbox) -> None:
    bought = aws.reserve(reserve_request())
    sandbox.market.resize(holding(sandbox), 5)

    with pytest.raises(Conflict):
        aws.resize(resize_request(bought.id, 2, 3))

    assert holding(sandbox).count == 5
    assert MODIFY not in sandbox.record.operations()


def test_a_read_that_fails_before_growth_has_bought_nothing(aws: Aws, sandbox: Sandbox) -> None:
    bought = aws.reserve(reserve_request())
    sandbox.fault(FaultKind.RESET_BEFORE, DESCRIBE, times=None)

    with pytest.raises(Unreachable) as raised:
        aws.resize(resize_request(bought.id, 2, 3))

    assert not raised.value.may_have_acted
    assert MODIFY not in sandbox.record.operations()


def test_shrinking_is_safe_to_repeat_and_growth_is_not(aws: Aws, sandbox: Sandbox) -> None:
    bought = aws.reserve(reserve_request(count=4))
    sandbox.fault(FaultKind.ERROR, MODIFY, status=503)
    assert aws.resize(resize_request(bought.id, 4, 2)).count == 2
    sandbox.record.clear()
    sandbox.fault(FaultKind.THROTTLE, MODIFY)
    with pytest.raises(Throttled):
        aws.resize(resize_request(bought.id, 2, 4, "k5"))
    assert sandbox.record.operations().count(MODIFY) == 1


def test_it_does_not_shrink_below_what_is_in_use(aws: Aws, sandbox: Sandbox) -> None:
    bought = aws.reserve(reserve_request())
    for name in ("i-1", "i-2"):
        sandbox.market.launch(holding(sandbox).pool, holding(sandbox).account, id=name, holding=holding(sandbox))

    (seen,) = aws.reservations(SCOPE)
    assert seen.used == 2
    with pytest.raises(Unsupported):
        aws.resize(resize_request(bought.id, 2, 1))
    assert holding(sandbox).count == 2


def test_what_is_still_pending_is_bought_all_the_same(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.AWS, timedelta(minutes=2))
    bought = aws.reserve(reserve_request())
    assert (bought.state, bought.count, bought.used) == (ReservationState.PENDING, 2, 0)
    assert aws.look(reserve_request()).seen is Seen.DONE
    sandbox.advance(timedelta(minutes=2))
    assert aws.reservations(SCOPE)[0].state is ReservationState.ACTIVE


def test_what_could_not_be_provided_is_refused(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.FAILS_LATER, CREATE, delay_s=60, code="x")
    aws.reserve(reserve_request())
    sandbox.advance(timedelta(minutes=1))

    sighting = aws.look(reserve_request())

    assert sighting.seen is Seen.REFUSED
    assert sighting.error is not None
    assert sandbox.market.bill() == []


def test_another_lineage_with_the_same_key_is_not_ours(aws: Aws, sandbox: Sandbox) -> None:
    aws.reserve(reserve_request())
    holding(sandbox).tags["broker:lineage"] = "ffffffffffff"
    assert aws.look(reserve_request()).seen is Seen.NOT_YET


def test_what_ended_by_itself_is_given_back_already(aws: Aws, sandbox: Sandbox) -> None:
    bought = aws.reserve(reserve_request(end=sandbox.clock.now() + timedelta(hours=1)))
    sandbox.advance(timedelta(hours=2))

    assert aws.release(release_request(bought.id)).state is ReservationState.EXPIRED
    assert aws.look(release_request(bought.id)).seen is Seen.DONE
    assert CANCEL not in sandbox.record.operations()
    with pytest.raises(Conflict):
        aws.set_end(end_request(bought.id, sandbox.clock.now() + timedelta(hours=9)))


def test_a_reservation_past_its_end_date_is_held_until_aws_ends_it(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.market.set_end_lag(ProviderName.AWS, timedelta(hours=1))
    end = sandbox.clock.now() + timedelta(hours=1)
    aws.reserve(reserve_request(end=end))
    sandbox.advance(timedelta(hours=1, seconds=1))

    (past,) = aws.reservations(SCOPE)
    assert (past.state, past.count, past.usable_until) == (ReservationState.ACTIVE, 2, end)
    sandbox.advance(timedelta(hours=1))
    (gone,) = aws.reservations(SCOPE)
    assert (gone.state, gone.billed_until) == (ReservationState.EXPIRED, None)


def test_an_end_of_what_is_not_there_is_not_found(aws: Aws, sandbox: Sandbox) -> None:
    with pytest.raises(NotFound):
        aws.set_end(end_request("cr-0", sandbox.clock.now() + timedelta(hours=9)))


@pytest.mark.parametrize("field", ["reservationType", "state"])
def test_a_prepaid_block_is_never_cancelled(aws: Aws, sandbox: Sandbox, field: str) -> None:
    bought = aws.reserve(reserve_request(end=sandbox.clock.now() + timedelta(hours=24)))
    sandbox.fault(FaultKind.UNKNOWN_ENUM, DESCRIBE, field="reservationType", value="capacity-block", times=None)
    if field == "state":
        sandbox.fault(FaultKind.UNKNOWN_ENUM, DESCRIBE, field="state", value="scheduled", times=None)

    with pytest.raises(Unsupported, match="runs to its end"):
        aws.release(release_request(bought.id))

    assert CANCEL not in sandbox.record.operations()


def test_a_quota_of_nothing_hides_nothing_that_is_held(aws: Aws, sandbox: Sandbox) -> None:
    aws.reserve(reserve_request())
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.AWS, quota="L-417A185B", limit=0))

    assert [r.count for r in aws.reservations(SCOPE)] == [2]
    offers = aws.offers(SCOPE, ("h100",))
    assert {offer.quota_left for offer in offers} == {0}
    with pytest.raises(QuotaExceeded):
        aws.reserve(reserve_request("k2"))


def test_instances_outside_of_reservations_use_the_quota_too(aws: Aws, sandbox: Sandbox) -> None:
    aws.reserve(reserve_request())
    inside = holding(sandbox)
    sandbox.market.launch(inside.pool, inside.account, id="i-1", holding=inside)
    sandbox.market.launch(inside.pool, inside.account, id="i-2")

    quota = next(quota for quota in aws.quotas(SCOPE) if quota.name == "L-417A185B")

    assert quota.used == 3 * 192
    assert quota.used == sandbox.market.quota_used(ProviderName.AWS, inside.account, "us-east-1", "L-417A185B")


@pytest.mark.parametrize("operation", ["GetServiceQuota", "DescribeInstances"])
@pytest.mark.parametrize(("status", "code"), [(403, "AccessDeniedException"), (500, "InternalError"), (503, "x")])
def test_where_quotas_cannot_be_read_offers_are_still_offers(
    aws: Aws, sandbox: Sandbox, operation: str, status: int, code: str
) -> None:
    sandbox.fault(FaultKind.ERROR, operation, status=status, code=code, times=None)
    offers = aws.offers(SCOPE, ("h100",))
    assert offers
    assert {offer.quota_left for offer in offers} == {None}
    with pytest.raises(ProviderError):
        aws.quotas(SCOPE)


def test_a_quota_that_the_region_does_not_have_is_unknown(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.ERROR, "GetServiceQuota", status=400, code="NoSuchResourceException", times=None)
    assert {quota.limit for quota in aws.quotas(SCOPE)} == {None}


def test_offers_are_where_the_type_is_sold(aws: Aws, sandbox: Sandbox) -> None:
    offers = aws.offers(SCOPE)
    sold = {(m.name, zone) for m in sandbox.market.catalogue.on_sale(ProviderName.AWS, "us-east-1") for zone in m.zones}
    assert {(offer.shape.machine_type, offer.place.zone_id) for offer in offers} == sold
    assert all(offer.end_settable and offer.price is None for offer in offers)


def test_an_account_that_was_throttled_to_the_end_is_left_alone_for_a_minute(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.THROTTLE, DESCRIBE, times=None)
    calls = []
    for _ in range(3):
        before = len(sandbox.record.calls)
        with pytest.raises(Throttled):
            aws.reservations(SCOPE)
        calls.append(len(sandbox.record.calls) - before)
    assert calls == [4, 1, 1]
    sandbox.advance(timedelta(minutes=2))
    sandbox.world.faults.clear()
    assert aws.reservations(SCOPE) == ()


def test_many_threads_share_one_adapter(aws: Aws, sandbox: Sandbox) -> None:
    done: list[str] = []

    def buy(number: int) -> None:
        done.append(aws.reserve(reserve_request(f"k{number}", 1, machine_type="g6.xlarge", place=PLACE)).id)

    threads = [threading.Thread(target=buy, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(done)) == 8
    assert sandbox.record.operations() == [CREATE] * 8


def test_an_endless_list_is_broken(aws: Aws, sandbox: Sandbox) -> None:
    for number in range(3):
        aws.reserve(reserve_request(f"k{number}", 1))
    sandbox.page_size(ProviderName.AWS, 1)
    sandbox.fault(FaultKind.UNKNOWN_ENUM, DESCRIBE, field="nextToken", value="page-1", times=None)
    with pytest.raises(Exception, match="already read"):
        aws.reservations(SCOPE)
