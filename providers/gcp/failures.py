"""What went wrong, typed by what to do next: from HTTP errors, from failed operations, and from the wire itself."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import google.auth.exceptions
import requests.exceptions
import urllib3.exceptions
from google.api_core.exceptions import GoogleAPICallError
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

_BY_CODE: dict[str, type[ProviderError]] = {
    "zoneresourcepoolexhausted": Unfilled,
    "zoneresourcepoolexhaustedwithdetails": Unfilled,
    "quotaexceeded": QuotaExceeded,
    "ratelimitexceeded": Throttled,
    "userratelimitexceeded": Throttled,
    "alreadyexists": Conflict,
    "resourceinusebyanotherresource": Conflict,
    "resourcenotready": Conflict,
    "conditionnotmet": Conflict,
    "notfound": NotFound,
    "forbidden": Denied,
    "required": Denied,
    "autherror": Denied,
    "invalid": Unsupported,
    "badrequest": Unsupported,
}
"""Reasons of HTTP errors (`alreadyExists`) and codes of operations (`QUOTA_EXCEEDED`), without case and underscores."""

_BY_STATUS: dict[int, type[ProviderError]] = {
    HTTPStatus.UNAUTHORIZED: Denied,
    HTTPStatus.FORBIDDEN: Denied,
    HTTPStatus.REQUEST_TIMEOUT: Ambiguous,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.PRECONDITION_FAILED: Conflict,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}
_NEVER_SENT = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)


def of_call(operation: str, error: Exception, request_id: str = "") -> ProviderError:
    """What an exception out of a client's method means. `request_id` is the one that was sent, if any."""
    if isinstance(error, GoogleAPICallError):
        return _of_http(operation, error, request_id)
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        return _of_sign_in(operation, error, request_id)
    if isinstance(error, requests.exceptions.RequestException):
        kind = Unreachable if _was_never_sent(error) else Ambiguous
        return kind(operation, code=type(error).__name__, message=str(error), request_id=request_id)
    return BrokenReply(operation, code=type(error).__name__, message=str(error)[:500], request_id=request_id)


def of_operation(operation: str, raw: compute_v1.Operation) -> ProviderError | None:
    """Why a finished operation failed; None if it did not. Its name is what support asks for.

    An error that we do not know is ambiguous: whether something was left behind is seen by looking.
    """
    if not raw.error.errors and not raw.http_error_status_code:
        return None
    first = raw.error.errors[0] if raw.error.errors else compute_v1.Errors()
    code = first.code or str(raw.http_error_status_code)
    kind = _kind(code) or _BY_STATUS.get(raw.http_error_status_code, Ambiguous)
    message = first.message or raw.http_error_message
    hints = [_zones(detail.error_info.metadatas) for detail in first.error_details]
    return _made(kind, operation, code, message, raw.name, tuple(zone for zones in hints for zone in zones))


def unseen(error: ProviderError) -> ProviderError:
    """The same, from looking after the effect of a call that the cloud had accepted: it may well have happened."""
    if error.may_have_acted:
        return error
    return Ambiguous(error.operation, code=error.code, message=error.message, request_id=error.request_id)


def _of_http(operation: str, error: GoogleAPICallError, request_id: str) -> ProviderError:
    body = _body(error)
    status = int(error.code or 0)
    reasons = [str(entry.get("reason", "")) for entry in body.get("errors", ()) if isinstance(entry, dict)]
    code = next(filter(None, reasons), str(body.get("status", "")))
    kind = _kind(code) or _kind_of_status(status, understood=bool(body))
    told = _details(body, "RequestInfo").get("requestId", "") or request_id
    hints = _zones(_details(body, "ErrorInfo").get("metadata", {}))
    return _made(kind, operation, code or f"HTTP {status}", str(error.message), told, hints)


def _body(error: GoogleAPICallError) -> dict[str, Any]:
    """The `error` object of the reply; {} where something else than Compute Engine answered."""
    try:
        body = error.response.json()["error"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def _details(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    found = (d for d in body.get("details", ()) if isinstance(d, dict) and str(d.get("@type", "")).endswith(kind))
    return next(found, {})


def _kind(code: str) -> type[ProviderError] | None:
    return _BY_CODE.get(code.replace("_", "").lower())


def _kind_of_status(status: int, *, understood: bool) -> type[ProviderError]:
    """A 404 that is not Compute Engine's own says nothing about a reservation."""
    if status == HTTPStatus.NOT_FOUND:
        return NotFound if understood else BrokenReply
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Unsupported if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR else Ambiguous


def _made(
    kind: type[ProviderError], operation: str, code: str, message: str, request_id: str, hints: tuple[str, ...]
) -> ProviderError:
    if kind is Unfilled:
        return Unfilled(operation, code=code, message=message, request_id=request_id, hints=hints)
    return kind(operation, code=code, message=message, request_id=request_id)


def _zones(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Where else there is some, as a stock-out may say."""
    return tuple(zone.strip() for zone in str(metadata.get("zonesAvailable", "")).split(",") if zone.strip())


def _of_sign_in(operation: str, error: google.auth.exceptions.GoogleAuthError, request_id: str) -> ProviderError:
    """Signing in comes before the request, or in answer to a 401: either way nothing happened."""
    passing = isinstance(error, google.auth.exceptions.TransportError) or bool(getattr(error, "retryable", False))
    kind = Unreachable if passing else Denied
    return kind(operation, code=type(error).__name__, message=str(error), request_id=request_id)


def _was_never_sent(error: BaseException | None) -> bool:
    """Whether no connection came about, as the chain of causes tells."""
    if isinstance(error, requests.exceptions.ConnectionError) and error.args:
        reason = getattr(error.args[0], "reason", error.args[0])
        return isinstance(reason, _NEVER_SENT)
    return False
