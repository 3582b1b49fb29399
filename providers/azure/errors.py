"""What the SDK raises -> what to do next.

The class of the SDK's exception says little (every HTTP 409 is a `ResourceExistsError`, a failed long-running
operation has status 200): the error's code decides, then the HTTP status.
"""

import re
from typing import Any

from azure.core import exceptions as sdk
from azure.core.polling.base_polling import OperationFailed
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

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

UNFILLED = frozenset(
    {
        "AllocationFailed",
        "ZonalAllocationFailed",
        "OverconstrainedAllocationRequest",
        "OverconstrainedZonalAllocationRequest",
        "SkuNotAvailable",
    }
)
ABSENT = frozenset({"ResourceNotFound", "ParentResourceNotFound", "ResourceGroupNotFound"})
"""Only these say that what was asked for is not there. Any other 404 (a subscription that the credentials cannot see,
a proxy in between) says nothing about it.
"""

_BY_CODE: dict[str, type[ProviderError]] = {
    **dict.fromkeys(UNFILLED, Unfilled),
    **dict.fromkeys(ABSENT, NotFound),
    "SubscriptionNotFound": Denied,
    "QuotaExceeded": QuotaExceeded,
    "NotSupported": Unsupported,
    "TooManyRequests": Throttled,
    "MissingSubscriptionRegistration": Denied,
}
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: Denied,
    403: Denied,
    404: ProviderError,
    408: Ambiguous,
    409: Conflict,
    412: Conflict,
    429: Throttled,
}
_QUOTA = re.compile(r"\bquota\b", re.IGNORECASE)


def typed(operation: str, code: str, message: str, status: int, request_id: str = "") -> ProviderError:
    """The error for what the cloud itself said no to. `status` is HTTP's, 200 for a failed operation."""
    return _kind(code, message, status)(operation, code=code, message=message, request_id=request_id)


def _kind(code: str, message: str, status: int) -> type[ProviderError]:
    if status == 429:
        return Throttled
    if code == "OperationNotAllowed":
        return QuotaExceeded if _QUOTA.search(message) else Conflict
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status >= 500:
        return Ambiguous
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Unsupported if 400 <= status < 500 else ProviderError


def translated(operation: str, error: sdk.AzureError) -> ProviderError:
    """The error for one request: what was sent, and whether it can have acted."""
    if isinstance(error, sdk.DecodeError | sdk.IncompleteReadError):
        return BrokenReply(operation, message=_first_line(error), request_id=request_id(error))
    if isinstance(error, sdk.HttpResponseError) and error.status_code is not None:
        return _answered(operation, error)
    if isinstance(error, sdk.ClientAuthenticationError):
        return Denied(operation, code=type(error).__name__, message=_first_line(error))
    if isinstance(error, sdk.ServiceRequestError) and _never_left(error):
        return Unreachable(operation, message=_first_line(error))
    return Ambiguous(operation, code=type(error).__name__, message=_first_line(error))


def _never_left(error: Any) -> bool:
    """Whether there was no connection to send it over. The SDK's word for that covers more than this."""
    inner = error.inner_exception
    if inner is None or isinstance(error, sdk.ServiceRequestTimeoutError):
        return True
    reason = getattr(inner.args[0] if inner.args else None, "reason", inner)
    return isinstance(reason, NewConnectionError | ConnectTimeoutError)


def _answered(operation: str, error: Any) -> ProviderError:
    if error.status_code < 400 and not failed_operation(error):
        return BrokenReply(operation, message=_first_line(error), request_id=request_id(error))
    code, message = said(error)
    return typed(operation, code, message, error.status_code, request_id(error))


def failed_operation(error: Exception) -> bool:
    """Whether the cloud's own record of a long-running operation says that it failed."""
    return isinstance(getattr(error, "inner_exception", None), OperationFailed)


def said(error: Any) -> tuple[str, str]:
    """The provider's own code and message."""
    stated = error.error
    if stated is None or not stated.code:
        return "", _first_line(error)
    return str(stated.code), str(stated.message or "")


def request_id(error: Any) -> str:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return str(headers.get("x-ms-request-id") or headers.get("x-ms-correlation-request-id") or "")


def retry_after_s(error: ProviderError) -> float | None:
    """What the cloud asked to be waited for, in seconds."""
    headers = getattr(getattr(error.__cause__, "response", None), "headers", None) or {}
    try:
        return float(headers["Retry-After"])
    except (KeyError, ValueError):
        return None


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "message", "")) or str(error)).split("\n", 1)[0][:300]
