"""Purchases whose answer is lost, late, broken or hidden: never sent again by the adapter, always found by looking."""

from datetime import timedelta

import pytest

from broker.model.place import ProviderName
from broker.model.reservation import ReservationState
from providers.base import (
    Ambiguous,
    BrokenReply,
    Denied,
    ProviderError,
    QuotaExceeded,
    Seen,
    Throttled,
    Unfilled,
    Unreachable,
)
from providers.gcp.adapter import Gcp
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from tests.providers.gcp.conftest import (
    END,
    SCOPE,
    ZONE,
    adapter,
    end_request,
    release_request,
    reserve_request,
    resize_request,
)

HAPPENED = [FaultKind.REPLY_LOST, FaultKind.RESET_AFTER, FaultKind.MALFORMED, FaultKind.ERROR_AFTER]
NOT_HAPPENED = [FaultKind.RESET_BEFORE, FaultKind.ERROR]


@pytest.mark.parametrize("kind", HAPPENED)
def test_a_purchase_that_happened_unseen_is_sent_once_and_found(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    sandbox.fault(kind, "reservations.insert")

    with pytest.raises(ProviderError) as error:
        gcp.reserve(reserve_request())

    assert error.value.may_have_acted
    assert sandbox.record.operations().count("reservations.insert") == 1
    sighting = gcp.look(reserve_request())
    assert sighting.seen is Seen.DONE
    assert sighting.reservation == gcp.reservations(SCOPE)[0]
    assert len(sandbox.record.purchases()) == 1


@pytest.mark.parametrize("kind", NOT_HAPPENED)
def test_a_purchase_that_did_not_happen_unseen_is_not_yet_there(gcp: Gcp, sandbox: Sandbox, kind: FaultKind) -> None:
    sandbox.fault(kind, "reservations.insert")

    with pytest.raises(Ambiguous):
        gcp.reserve(reserve_request())

    assert sandbox.record.operations().count("reservations.insert") == 1
    assert gcp.look(reserve_request()).seen is Seen.NOT_YET
    assert sandbox.record.purchases() == []


def test_growth_that_happened_unseen_is_sent_once_and_found(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.REPLY_LOST, "reservations.resize")
    growth = resize_request(bought.id, 2, 4)

    with pytest.raises(Ambiguous):
        gcp.resize(growth)

    assert sandbox.record.operations().count("reservations.resize") == 1
    sighting = gcp.look(growth)
    assert sighting.seen is Seen.DONE
    assert sighting.reservation is not None
    assert sighting.reservation.count == 4


def test_growth_that_did_not_happen_unseen_is_not_yet_there(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.RESET_BEFORE, "reservations.resize")
    growth = resize_request(bought.id, 2, 4)

    with pytest.raises(Ambiguous):
        gcp.resize(growth)

    assert gcp.look(growth).seen is Seen.NOT_YET


def test_an_operation_that_fails_at_once_is_not_called_bought(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.ERROR, "reservations.insert", code="ZONE_RESOURCE_POOL_EXHAUSTED", message="none left")

    with pytest.raises(Unfilled) as refusal:
        gcp.reserve(reserve_request())

    assert (refusal.value.code, refusal.value.message) == ("ZONE_RESOURCE_POOL_EXHAUSTED", "none left")


@pytest.mark.parametrize(
    ("code", "expected"), [("ZONE_RESOURCE_POOL_EXHAUSTED", Unfilled), ("QUOTA_EXCEEDED", QuotaExceeded)]
)
def test_an_operation_that_fails_while_it_is_waited_for_is_typed(
    gcp: Gcp, sandbox: Sandbox, code: str, expected: type[ProviderError]
) -> None:
    sandbox.fault(FaultKind.FAILS_LATER, "reservations.insert", code=code)

    with pytest.raises(expected):
        gcp.reserve(reserve_request())
    assert gcp.reservations(SCOPE) == ()


def test_an_operation_that_still_runs_is_pending_and_a_later_failure_is_seen(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.FAILS_LATER, "reservations.insert", code="ZONE_RESOURCE_POOL_EXHAUSTED", delay_s=600)

    pending = gcp.reserve(reserve_request())

    assert pending.state is ReservationState.PENDING
    assert gcp.reservations(SCOPE)[0].state is ReservationState.PENDING
    assert gcp.look(reserve_request()).seen is Seen.DONE
    sandbox.advance(timedelta(minutes=11))
    assert gcp.reservations(SCOPE) == ()
    sighting = gcp.look(reserve_request())
    assert sighting.seen is Seen.REFUSED
    assert isinstance(sighting.error, Unfilled)


def test_growth_that_still_runs_is_neither_yes_nor_no(gcp: Gcp, sandbox: Sandbox) -> None:
    bought = gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.FAILS_LATER, "reservations.resize", code="QUOTA_EXCEEDED", delay_s=600)
    growth = resize_request(bought.id, 2, 4)

    with pytest.raises(Ambiguous):
        gcp.resize(growth)
    with pytest.raises(Ambiguous):
        gcp.look(growth)

    sandbox.advance(timedelta(minutes=11))
    sighting = gcp.look(growth)
    assert sighting.seen is Seen.REFUSED
    assert isinstance(sighting.error, QuotaExceeded)


def test_slow_provisioning_is_pending_and_billed_from_its_start(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.market.set_provisioning(ProviderName.GCP, timedelta(minutes=3))

    pending = gcp.reserve(reserve_request())
    sandbox.advance(timedelta(minutes=5))
    (ready,) = gcp.reservations(SCOPE)

    assert (pending.id, pending.state, pending.count) == (ready.id, ReservationState.PENDING, 2)
    assert pending.billed_from is None
    assert ready.state is ReservationState.ACTIVE
    assert [ready.billed_from] == [line.start for line in sandbox.market.bill()]


def test_what_is_bought_and_not_visible_yet_is_pending(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.HIDDEN, "reservations.insert", delay_s=120)

    bought = gcp.reserve(reserve_request())

    assert (bought.state, bought.count) == (ReservationState.PENDING, 2)
    assert gcp.reservations(SCOPE) == ()
    sandbox.advance(timedelta(minutes=3))
    (seen,) = gcp.reservations(SCOPE)
    assert (seen.id, seen.owner, seen.tags) == (bought.id, bought.owner, bought.tags)


def test_a_lost_reply_and_a_late_appearance_are_not_yet_and_then_done(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.HIDDEN, "reservations.insert", delay_s=120)
    sandbox.fault(FaultKind.REPLY_LOST, "reservations.insert")

    with pytest.raises(Ambiguous):
        gcp.reserve(reserve_request())

    assert gcp.look(reserve_request()).seen is Seen.NOT_YET
    sandbox.advance(timedelta(minutes=3))
    assert gcp.look(reserve_request()).seen is Seen.DONE


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_accepted_purchase_whose_operation_cannot_be_read_is_unknown(
    gcp: Gcp, sandbox: Sandbox, status: int
) -> None:
    code = {403: "forbidden", 404: "notFound", 500: "internalError"}[status]
    sandbox.fault(FaultKind.ERROR, "zoneOperations.wait", status=status, code=code, times=None)

    with pytest.raises(Ambiguous) as error:
        gcp.reserve(reserve_request())

    assert error.value.code == code
    assert gcp.look(reserve_request()).seen is Seen.DONE


def test_a_purchase_stays_bought_though_it_cannot_be_read_back(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.ERROR, "reservations.get", times=None)

    bought = gcp.reserve(reserve_request())

    assert (bought.state, bought.count) == (ReservationState.PENDING, 2)
    assert len(sandbox.record.purchases()) == 1


def test_looking_needs_the_record_of_operations_only_where_nothing_is_seen(gcp: Gcp, sandbox: Sandbox) -> None:
    gcp.reserve(reserve_request())
    sandbox.fault(FaultKind.ERROR, "zoneOperations.list", status=403, code="forbidden", times=None)

    assert gcp.look(reserve_request()).seen is Seen.DONE
    with pytest.raises(Denied):
        gcp.look(reserve_request("other"))


def test_looking_does_without_a_filter_where_the_cloud_does_not_take_it(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.FAILS_LATER, "reservations.insert", code="QUOTA_EXCEEDED")
    with pytest.raises(QuotaExceeded):
        gcp.reserve(reserve_request())
    sandbox.fault(
        FaultKind.ERROR, "zoneOperations.list", where={"filter": "client*"}, status=400, code="invalid", times=None
    )

    assert gcp.look(reserve_request()).seen is Seen.REFUSED


def test_looking_for_ends_and_releases_asks_the_reservation(gcp: Gcp) -> None:
    bought = gcp.reserve(reserve_request(end=END))
    later = END.replace(hour=12)

    assert gcp.look(end_request(bought.id, later)).seen is Seen.NOT_YET
    gcp.set_end(end_request(bought.id, later))
    assert gcp.look(end_request(bought.id, later)).seen is Seen.DONE
    assert gcp.look(release_request(bought.id)).seen is Seen.NOT_YET
    gcp.release(release_request(bought.id))
    assert gcp.look(release_request(bought.id)).seen is Seen.DONE


def test_a_throttled_purchase_is_refused_unread(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.THROTTLE, "reservations.insert")

    with pytest.raises(Throttled) as refusal:
        gcp.reserve(reserve_request())

    assert not refusal.value.may_have_acted
    assert refusal.value.request_id.startswith("req-")
    assert sandbox.record.operations().count("reservations.insert") == 1


def test_a_cloud_that_does_not_answer_at_all_was_not_reached(sandbox: Sandbox) -> None:
    away = adapter(sandbox)
    sandbox.stop()
    with pytest.raises(Unreachable):
        away.reserve(reserve_request())


def test_a_purchase_that_takes_too_long_is_unknown_and_found(sandbox: Sandbox) -> None:
    hasty = adapter(sandbox, timeout=timedelta(seconds=0.2))
    sandbox.fault(FaultKind.DELAY, "reservations.insert", delay_s=0.6)

    with pytest.raises(Ambiguous) as error:
        hasty.reserve(reserve_request())

    assert error.value.code == "ReadTimeout"
    assert sandbox.record.operations().count("reservations.insert") == 1
    assert hasty.look(reserve_request()).seen is Seen.DONE


@pytest.mark.parametrize("field", ["name", "status"])
def test_a_reply_without_what_matters_is_not_taken_for_a_yes(gcp: Gcp, sandbox: Sandbox, field: str) -> None:
    sandbox.fault(FaultKind.MISSING_FIELD, "reservations.insert", field=field)
    sandbox.fault(FaultKind.MISSING_FIELD, "zoneOperations.wait", field=field)

    if field == "name":
        with pytest.raises(BrokenReply):
            gcp.reserve(reserve_request())
    else:
        assert gcp.reserve(reserve_request()).state is ReservationState.PENDING
    assert gcp.look(reserve_request()).seen is Seen.DONE


def test_unknown_fields_and_values_lose_nothing(gcp: Gcp, sandbox: Sandbox) -> None:
    for operation in ("reservations.*", "zoneOperations.*"):
        sandbox.fault(FaultKind.UNKNOWN_FIELD, operation, times=None)
    sandbox.fault(FaultKind.UNKNOWN_ENUM, "reservations.aggregatedList", field="status", value="SUSPENDED")

    bought = gcp.reserve(reserve_request())
    (odd,) = gcp.reservations(SCOPE)

    assert (bought.state, odd.state, odd.raw_state) == (ReservationState.ACTIVE, ReservationState.UNKNOWN, "SUSPENDED")
    assert odd.state.supplies
    assert "SUSPENDED" in odd.notes[0]
    assert ZONE in odd.id
