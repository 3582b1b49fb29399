"""What went wrong, typed by what to do next: from AWS's error codes, and from what botocore itself raises."""

from typing import Any

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

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
    "InsufficientInstanceCapacity": Unfilled,
    "InstanceLimitExceeded": QuotaExceeded,
    "VcpuLimitExceeded": QuotaExceeded,
    "RequestLimitExceeded": Throttled,
    "EC2ThrottledException": Throttled,
    "Throttling": Throttled,
    "ThrottlingException": Throttled,
    "TooManyRequestsException": Throttled,
    "UnauthorizedOperation": Denied,
    "AuthFailure": Denied,
    "OptInRequired": Denied,
    "PendingVerification": Denied,
    "RequestExpired": Denied,
    "Blocked": Denied,
    "AccessDenied": Denied,
    "AccessDeniedException": Denied,
    "ExpiredToken": Denied,
    "ExpiredTokenException": Denied,
    "InvalidClientTokenId": Denied,
    "UnrecognizedClientException": Denied,
    "SignatureDoesNotMatch": Denied,
    "IdempotentParameterMismatch": Conflict,
    "IncorrectState": Conflict,
    "InvalidCapacityReservationId.NotFound": NotFound,
    "NoSuchResourceException": NotFound,
}
_CLOCK = ("RequestExpired", "SignatureDoesNotMatch")
_NOT_SENT = (sdk.EndpointConnectionError, sdk.ConnectTimeoutError, sdk.ProxyConnectionError)
_NO_CREDENTIALS = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.ProfileNotFound,
    sdk.TokenRetrievalError,
    sdk.UnauthorizedSSOTokenError,
    sdk.SSOError,
    sdk.InvalidConfigError,
)
_INVALID = (sdk.ParamValidationError, sdk.NoRegionError, sdk.UnknownServiceError, sdk.InvalidRegionError)


def of_call(operation: str, error: Exception) -> ProviderError:
    """What an exception out of a client's method means. What we do not know may have happened."""
    if isinstance(error, sdk.ClientError):
        return _of_reply(operation, error)
    return _of_sdk(type(error))(operation, code=type(error).__name__, message=str(error)[:500])


def retry_after_s(error: BaseException | None) -> float:
    """How long the cloud asked to wait, 0 where it did not."""
    cause = error.__cause__ if isinstance(error, ProviderError) else None
    headers = cause.response["ResponseMetadata"].get("HTTPHeaders", {}) if isinstance(cause, sdk.ClientError) else {}
    try:
        return float(headers.get("retry-after", 0.0))
    except ValueError:
        return 0.0


def not_sent(error: ProviderError) -> ProviderError:
    """The same, where it came from reading before the request that matters was sent: nothing can have happened."""
    if not error.may_have_acted:
        return error
    return Unreachable(error.operation, code=error.code, message=error.message, request_id=error.request_id)


def _of_reply(operation: str, error: sdk.ClientError) -> ProviderError:
    reply: dict[str, Any] = error.response
    metadata = reply.get("ResponseMetadata", {})
    code, message = str(reply.get("Error", {}).get("Code", "")), str(reply.get("Error", {}).get("Message", ""))
    kind = _kind(code, int(metadata.get("HTTPStatusCode", 0)))
    if code in _CLOCK:
        message += " (is this machine's clock right?)"
    return kind(operation, code=code, message=message, request_id=str(metadata.get("RequestId", "")))


def _kind(code: str, status: int) -> type[ProviderError]:
    """A 5xx that is none of the known codes may have acted; a 4xx has not."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if code.startswith("InvalidCapacityReservationState"):
        return Conflict
    if status == 429:
        return Throttled
    return Unsupported if 400 <= status < 500 and status != 408 else Ambiguous


def _of_sdk(raised: type[Exception]) -> type[ProviderError]:
    kinds = (
        (_NOT_SENT, Unreachable),
        (_NO_CREDENTIALS, Denied),
        (_INVALID, Unsupported),
        ((ResponseParserError,), BrokenReply),
    )
    return next((kind for group, kind in kinds if issubclass(raised, group)), Ambiguous)
