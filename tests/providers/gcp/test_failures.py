"""Every way in which a call goes wrong is typed by what to do next, with the cloud's own words."""

import json
from collections.abc import Callable

import google.auth.exceptions
import pytest
import requests
import urllib3.exceptions
from google.api_core import exceptions
from google.cloud import compute_v1

from providers.base import (
    Ambiguous,
    BrokenReply,
    Conflict,
    Denied,
    NotFound,
    ProviderError,
    QuotaExceeded,
    Throttled,
    Unfilled,
    Unreachable,
    Unsupported,
)
from providers.gcp import failures

HTTP: list[tuple[int, str, type[ProviderError]]] = [
    (400, "invalid", Unsupported),
    (400, "badRequest", Unsupported),
    (400, "resourceInUseByAnotherResource", Conflict),
    (400, "resourceNotReady", Conflict),
    (401, "required", Denied),
    (401, "authError", Denied),
    (403, "forbidden", Denied),
    (403, "somethingNew", Denied),
    (403, "quotaExceeded", QuotaExceeded),
    (429, "QUOTA_EXCEEDED", QuotaExceeded),
    (403, "rateLimitExceeded", Throttled),
    (403, "userRateLimitExceeded", Throttled),
    (429, "rateLimitExceeded", Throttled),
    (429, "", Throttled),
    (404, "notFound", NotFound),
    (409, "alreadyExists", Conflict),
    (412, "conditionNotMet", Conflict),
    (500, "internalError", Ambiguous),
    (503, "backendError", Ambiguous),
    (503, "ZONE_RESOURCE_POOL_EXHAUSTED", Unfilled),
    (504, "gatewayTimeout", Ambiguous),
    (418, "somethingNew", Unsupported),
]


@pytest.mark.parametrize(("status", "reason", "expected"), HTTP)
def test_http_errors(status: int, reason: str, expected: type[ProviderError]) -> None:
    body = {"error": {"code": status, "message": "why", "errors": [{"reason": reason, "domain": "global"}]}}

    error = failures.of_call("reservations.insert", _http(status, json.dumps(body)), "sent-id")

    assert type(error) is expected
    assert (error.operation, error.message.endswith("why"), error.request_id) == (
        "reservations.insert",
        True,
        "sent-id",
    )
    assert error.code == (reason or f"HTTP {status}")


@pytest.mark.parametrize(
    ("status", "expected"), [(404, BrokenReply), (403, Denied), (400, Unsupported), (502, Ambiguous)]
)
def test_errors_that_are_not_the_cloud_s_own(status: int, expected: type[ProviderError]) -> None:
    assert type(failures.of_call("reservations.get", _http(status, "<html>a proxy</html>"))) is expected


def test_the_cloud_s_request_id_and_other_zones_are_kept() -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "their-id"},
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "resource_availability",
            "domain": "compute.googleapis.com",
            "metadata": {"zonesAvailable": "us-central1-a, us-central1-f"},
        },
    ]
    reason = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    body = {"error": {"code": 503, "message": "m", "errors": [{"reason": reason}], "details": details}}

    error = failures.of_call("reservations.insert", _http(503, json.dumps(body)), "sent-id")

    assert isinstance(error, Unfilled)
    assert (error.request_id, error.hints) == ("their-id", ("us-central1-a", "us-central1-f"))


def _refused() -> Exception:
    reason = urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]
    error: Exception = requests.exceptions.ConnectionError(urllib3.exceptions.MaxRetryError(None, "/", reason))  # type: ignore[arg-type]
    return error


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (_refused, Unreachable),
        (lambda: requests.exceptions.ConnectionError("reset"), Ambiguous),
        (lambda: requests.exceptions.ReadTimeout("slow"), Ambiguous),
        (lambda: requests.exceptions.ChunkedEncodingError("cut off"), Ambiguous),
        (lambda: google.auth.exceptions.DefaultCredentialsError("none found"), Denied),
        (lambda: google.auth.exceptions.RefreshError("expired"), Denied),
        (lambda: google.auth.exceptions.TransportError("no route to the token"), Unreachable),
        (lambda: ValueError("not JSON"), BrokenReply),
    ],
)
def test_the_wire_and_signing_in(made: Callable[[], Exception], expected: type[ProviderError]) -> None:
    assert type(failures.of_call("reservations.insert", made())) is expected


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", 503, Unfilled),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", 503, Unfilled),
        ("QUOTA_EXCEEDED", 403, QuotaExceeded),
        ("SOMETHING_NEW", 400, Ambiguous),
        ("SOMETHING_NEW", 500, Ambiguous),
        ("SOMETHING_NEW", 403, Denied),
    ],
)
def test_failed_operations(code: str, status: int, expected: type[ProviderError]) -> None:
    raw = compute_v1.Operation(
        name="operation-1",
        http_error_status_code=status,
        error=compute_v1.Error(errors=[compute_v1.Errors(code=code, message="why")]),
    )

    error = failures.of_operation("reservations.insert", raw)

    assert type(error) is expected
    assert error is not None
    assert (error.code, error.message, error.request_id) == (code, "why", "operation-1")


def test_a_finished_operation_without_an_error_has_not_failed() -> None:
    assert failures.of_operation("reservations.insert", compute_v1.Operation(name="operation-1")) is None


def test_an_error_after_acceptance_is_never_a_no() -> None:
    for kind in (Denied, NotFound, Throttled, Unreachable, Unsupported):
        assert failures.unseen(kind("zoneOperations.wait", code="c")).may_have_acted


def _http(status: int, text: str) -> exceptions.GoogleAPICallError:
    response = requests.Response()
    response.status_code = status
    response._content = text.encode()
    response.request = requests.Request("POST", "http://cloud/x").prepare()
    made: exceptions.GoogleAPICallError = exceptions.from_http_response(response)
    return made
