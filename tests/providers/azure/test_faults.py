"""What goes wrong on the way: each failure has the type that says what to do, and money is spent at most once."""

import gc
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from azure.core.pipeline.policies import RetryPolicy

from broker.model.request import ReserveRequest, ResizeRequest
from broker.model.reservation import ReservationState
from providers.azure import client as azure_client
from providers.azure.adapter import Azure
from providers.azure.errors import typed
from providers.base import (
    Ambiguous,
    Conflict,
    Denied,
    NotFound,
    ProviderError,
    QuotaExceeded,
    Seen,
    Throttled,
    Unfilled,
    Unsupported,
)
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
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

LOST = [FaultKind.RESET_AFTER, FaultKind.REPLY_LOST, FaultKind.ERROR_AFTER]
GROUP_PUT = "capacityReservationGroups.createOrUpdate"


@pytest.mark.parametrize("kind", LOST)
def test_a_purchase_whose_answer_is_lost_may_have_happened_and_is_found(
    kind: FaultKind, azure: Azure, sandbox: Sandbox
) -> None:
    fault(sandbox, kind)

    with pytest.raises(ProviderError) as caught:
        azure.reserve(reserve_request())

    assert caught.value.may_have_acted
    sighting = azure.look(reserve_request())
    assert sighting.seen is Seen.DONE
    assert sighting.reservation in azure.reservations(SCOPE)
    assert bought(sandbox) == [(0, 2)]
    assert called(sandbox, PUT) == 1


@pytest.mark.parametrize("kind", LOST)
def test_a_growth_whose_answer_is_lost_may_have_happened_and_is_found(
    kind: FaultKind, azure: Azure, sandbox: Sandbox
) -> None:
    azure.reserve(reserve_request())
    fault(sandbox, kind, PATCH)

    with pytest.raises(ProviderError) as caught:
        azure.resize(resize_request(2, 3))

    assert caught.value.may_have_acted
    assert azure.look(resize_request(2, 3)).seen is Seen.DONE
    assert bought(sandbox) == [(0, 2), (2, 3)]
    assert called(sandbox, PATCH) == 1


def test_a_broken_body_does_not_matter_where_the_operation_can_be_followed(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.MALFORMED)
    fault(sandbox, FaultKind.MALFORMED, PATCH)

    assert azure.reserve(reserve_request()).state is ReservationState.ACTIVE
    assert azure.resize(resize_request(2, 3)).count == 3
    assert bought(sandbox) == [(0, 2), (2, 3)]


@pytest.mark.parametrize("operation", ["operations.get", "capacityReservations.get"])
def test_a_purchase_that_cannot_be_followed_for_broken_answers_may_have_happened(
    operation: str, azure: Azure, sandbox: Sandbox
) -> None:
    made = 1 if operation == "capacityReservations.get" else 0
    for nth in range(1 + made, 9 + made):
        fault(sandbox, FaultKind.MALFORMED, operation, nth=nth)

    with pytest.raises(ProviderError) as caught:
        azure.reserve(reserve_request())

    assert caught.value.may_have_acted
    assert bought(sandbox) == [(0, 2)]


@pytest.mark.parametrize("code", ["InternalServerError", "ServiceUnavailable"])
@pytest.mark.parametrize("operation", [PUT, PATCH])
def test_a_server_error_is_no_answer_and_nothing_is_sent_again(
    operation: str, code: str, azure: Azure, sandbox: Sandbox
) -> None:
    if operation == PATCH:
        azure.reserve(reserve_request())
    fault(sandbox, FaultKind.ERROR, operation, times=None, code=code)

    with pytest.raises(Ambiguous) as caught:
        azure.reserve(reserve_request()) if operation == PUT else azure.resize(resize_request(2, 3))

    assert caught.value.code == code
    assert caught.value.request_id.startswith("req-")
    sent = [call for call in sandbox.record.calls if call.operation == operation]
    assert len(sent) == 1


def test_a_connection_that_breaks_before_the_purchase_leaves_no_trace(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.RESET_BEFORE)

    with pytest.raises(Ambiguous):
        azure.reserve(reserve_request())

    assert azure.look(reserve_request()).seen is Seen.NOT_YET
    assert bought(sandbox) == []


def test_a_purchase_that_answers_too_late_is_looked_for(sandbox: Sandbox) -> None:
    azure = adapter(sandbox, timeout=timedelta(seconds=0.2))
    fault(sandbox, FaultKind.DELAY, delay_s=0.6)

    with pytest.raises(Ambiguous):
        azure.reserve(reserve_request())

    assert azure.look(reserve_request()).seen is Seen.DONE
    assert bought(sandbox) == [(0, 2)]


def test_a_purchase_that_is_not_visible_yet_is_found_later(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.HIDDEN, delay_s=120)
    try:
        azure.reserve(reserve_request())
    except ProviderError as error:
        assert error.may_have_acted

    assert azure.look(reserve_request()).seen is Seen.NOT_YET
    assert azure.reservations(SCOPE) == ()
    sandbox.advance(timedelta(minutes=2))
    assert azure.look(reserve_request()).seen is Seen.DONE
    assert bought(sandbox) == [(0, 2)]


def test_giving_something_back_that_is_not_visible_yet_cannot_take_its_group_away(
    azure: Azure, sandbox: Sandbox
) -> None:
    fault(sandbox, FaultKind.HIDDEN, delay_s=120)
    with pytest.raises(ProviderError):
        azure.reserve(reserve_request("hidden"))
    azure.reserve(reserve_request())

    azure.release(release_request())
    sandbox.advance(timedelta(minutes=2))

    (found,) = azure.reservations(SCOPE)
    assert (found.count, found.owner and found.owner.key) == (2, "hidden")


def test_a_throttled_purchase_is_not_repeated(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.THROTTLE, times=None)

    with pytest.raises(Throttled) as caught:
        azure.reserve(reserve_request())

    assert not caught.value.may_have_acted
    assert (caught.value.code, called(sandbox, PUT)) == ("TooManyRequests", 1)


def test_a_group_that_cannot_be_made_buys_nothing(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.REPLY_LOST, GROUP_PUT, times=None)

    with pytest.raises(ProviderError) as caught:
        azure.reserve(reserve_request())

    assert not caught.value.may_have_acted
    assert called(sandbox, PUT) == 0


def test_making_the_group_is_repeated_because_that_is_safe(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.REPLY_LOST, GROUP_PUT, times=2)

    assert azure.reserve(reserve_request()).count == 2
    assert bought(sandbox) == [(0, 2)]


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AuthorizationFailed", None, Denied),
        ("InvalidAuthenticationToken", None, Denied),
        ("ResourceGroupNotFound", None, NotFound),
        ("SubscriptionNotFound", None, Denied),
        ("MissingSubscriptionRegistration", 409, Denied),
        ("NeverSeenBefore", 404, ProviderError),
        ("AllocationFailed", None, Unfilled),
        ("ZonalAllocationFailed", None, Unfilled),
        ("OverconstrainedAllocationRequest", None, Unfilled),
        ("OverconstrainedZonalAllocationRequest", None, Unfilled),
        ("SkuNotAvailable", None, Unfilled),
        ("QuotaExceeded", None, QuotaExceeded),
        ("NotSupported", None, Unsupported),
        ("InvalidParameter", None, Unsupported),
        ("Conflict", None, Conflict),
        ("AnotherOperationInProgress", None, Conflict),
        ("PreconditionFailed", None, Conflict),
        ("OperationNotAllowed", 429, Throttled),
        ("GatewayTimeout", 504, Ambiguous),
    ],
)
def test_the_code_decides_what_to_do(
    code: str, status: int | None, expected: type[ProviderError], azure: Azure, sandbox: Sandbox
) -> None:
    fault(sandbox, FaultKind.ERROR, code=code, status=status, message="why not")

    with pytest.raises(expected) as caught:
        azure.reserve(reserve_request())

    assert type(caught.value) is expected
    assert (caught.value.code, caught.value.message, caught.value.operation) == (code, "why not", PUT)
    assert bought(sandbox) == []


def test_a_refusal_that_is_not_about_quota_is_a_conflict() -> None:
    quota = "Operation could not be completed as it results in exceeding approved Cores quota."

    assert type(typed("op", "OperationNotAllowed", quota, 409)) is QuotaExceeded
    assert type(typed("op", "OperationNotAllowed", "VMs are associated.", 409)) is Conflict
    assert type(typed("op", "NeverSeenBefore", "", 409)) is Conflict
    assert type(typed("op", "NeverSeenBefore", "", 200)) is ProviderError


def test_a_failed_clean_up_does_not_hide_why_nothing_was_bought(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR, code="AllocationFailed")
    fault(sandbox, FaultKind.ERROR, "capacityReservationGroups.delete", times=None, code="AuthorizationFailed")

    with pytest.raises(Unfilled) as caught:
        azure.reserve(reserve_request())

    assert "AuthorizationFailed" in caught.value.__notes__[0]


def test_an_answer_that_breaks_while_the_operation_is_followed_may_have_happened(
    azure: Azure, sandbox: Sandbox
) -> None:
    fault(sandbox, FaultKind.ERROR, "operations.get", times=None, code="AuthorizationFailed")

    with pytest.raises(Ambiguous):
        azure.reserve(reserve_request())

    assert azure.look(reserve_request()).seen is Seen.DONE


def test_trouble_while_following_an_operation_is_waited_out(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.RESET_BEFORE, "operations.get")
    fault(sandbox, FaultKind.ERROR, "operations.get", nth=2, code="ServiceUnavailable")

    assert azure.reserve(reserve_request()).state is ReservationState.ACTIVE


def _grow(azure: Azure) -> Any:
    return azure.resize(resize_request(2, 3))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("operation", "buy"), [(PUT, lambda a: a.reserve(reserve_request("new"))), (PATCH, _grow)])
def test_with_the_sdks_own_retries_a_purchase_would_be_sent_again(
    operation: str, buy: Callable[[Azure], Any], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(sandbox).reserve(reserve_request())
    sandbox.record.clear()
    retrying = RetryPolicy(retry_backoff_factor=0.001)
    monkeypatch.setattr(azure_client, "sdk_retries", lambda: retrying)
    fault(sandbox, FaultKind.ERROR, operation, times=None)

    with pytest.raises(Ambiguous):
        buy(adapter(sandbox))

    assert called(sandbox, operation) == 4
    # The SDK drops the responses between its tries unread; their connections are closed here, not in a later test.
    gc.collect()


def test_no_credential_is_shown_in_an_error(azure: Azure, sandbox: Sandbox) -> None:
    fault(sandbox, FaultKind.ERROR, times=None)

    with pytest.raises(ProviderError) as caught:
        azure.reserve(reserve_request())

    assert "Bearer" not in f"{caught.value!r}{caught.value}{json.dumps(caught.value.__dict__, default=str)}"


def test_requests_are_what_the_ledger_can_hold() -> None:
    for request in (reserve_request(), resize_request(2, 3)):
        back = msgspec.json.decode(msgspec.json.encode(request), type=ReserveRequest | ResizeRequest)
        assert back == request
