"""Every refusal is typed by what to do next, and keeps AWS's code, message and request id."""

import pytest
from botocore import exceptions as sdk
from botocore.config import Config

from providers.aws import failures
from providers.aws.adapter import Aws
from providers.aws.wire import Wire
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
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.settings import AwsAccount, AwsSettings
from tests.providers.aws.conftest import ACCOUNTS, CREATE, DESCRIBE, MODIFY, SCOPE, reserve_request, resize_request

CODES = [
    ("InsufficientInstanceCapacity", 500, Unfilled),
    ("InstanceLimitExceeded", 400, QuotaExceeded),
    ("VcpuLimitExceeded", 400, QuotaExceeded),
    ("RequestLimitExceeded", 503, Throttled),
    ("RequestLimitExceeded", 400, Throttled),
    ("EC2ThrottledException", 503, Throttled),
    ("UnauthorizedOperation", 403, Denied),
    ("AuthFailure", 401, Denied),
    ("OptInRequired", 401, Denied),
    ("PendingVerification", 400, Denied),
    ("RequestExpired", 400, Denied),
    ("Blocked", 403, Denied),
    ("IdempotentParameterMismatch", 400, Conflict),
    ("InvalidCapacityReservationState.PendingActivation", 400, Conflict),
    ("InvalidCapacityReservationId.NotFound", 400, NotFound),
    ("InvalidParameterValue", 400, Unsupported),
    ("MissingParameter", 400, Unsupported),
    ("Unsupported", 400, Unsupported),
    ("UnsupportedOperation", 400, Unsupported),
    ("SomethingThatIsNew", 400, Unsupported),
    ("InternalError", 500, Ambiguous),
    ("ServiceUnavailable", 503, Ambiguous),
    ("Unavailable", 503, Ambiguous),
    ("SomethingThatIsNew", 500, Ambiguous),
]


@pytest.mark.parametrize(("code", "status", "kind"), CODES)
def test_a_purchase_that_is_refused_is_sent_once(
    aws: Aws, sandbox: Sandbox, waits: list[float], code: str, status: int, kind: type[ProviderError]
) -> None:
    sandbox.fault(FaultKind.ERROR, CREATE, status=status, code=code, message="because", times=None)

    with pytest.raises(ProviderError) as raised:
        aws.reserve(reserve_request())

    error = raised.value
    assert type(error) is kind
    assert (error.operation, error.code, error.request_id) == (CREATE, code, "req-0-1")
    assert error.message.startswith("because")
    assert (sandbox.record.operations(), waits) == ([CREATE], [])


def test_a_request_that_expired_points_at_the_clock(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.ERROR, CREATE, status=400, code="RequestExpired")
    with pytest.raises(Denied, match="clock"):
        aws.reserve(reserve_request())


def test_a_page_of_something_else_is_a_broken_reply(aws: Aws, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.MISSING_FIELD, CREATE, field="capacityReservationId")
    with pytest.raises(BrokenReply):
        aws.reserve(reserve_request())
    sandbox.fault(FaultKind.MISSING_FIELD, CREATE, field="capacityReservation")
    with pytest.raises(BrokenReply):
        aws.reserve(reserve_request("k2"))


def test_a_missing_list_is_not_an_empty_one(aws: Aws, sandbox: Sandbox) -> None:
    aws.reserve(reserve_request())
    sandbox.fault(FaultKind.MISSING_FIELD, DESCRIBE, field="capacityReservationSet", times=None)
    with pytest.raises(BrokenReply):
        aws.reservations(SCOPE)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sdk.NoCredentialsError(), Denied),
        (sdk.ProfileNotFound(profile="p"), Denied),
        (sdk.EndpointConnectionError(endpoint_url="u"), Unreachable),
        (sdk.ConnectTimeoutError(endpoint_url="u"), Unreachable),
        (sdk.ReadTimeoutError(endpoint_url="u"), Ambiguous),
        (sdk.ConnectionClosedError(endpoint_url="u"), Ambiguous),
        (sdk.ParamValidationError(report="r"), Unsupported),
        (RuntimeError("what is this"), Ambiguous),
        (KeyError("what is this"), Ambiguous),
    ],
)
def test_what_the_sdk_raises_is_typed_too(error: Exception, kind: type[ProviderError]) -> None:
    assert type(failures.of_call(CREATE, error)) is kind


def test_missing_credentials_are_said_and_nothing_is_sent(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    accounts = (AwsAccount(name="main", regions=("us-east-1",)),)
    settings = AwsSettings(endpoint=sandbox.endpoint, accounts=accounts)

    with pytest.raises(Denied, match="credentials"):
        Aws(settings, sandbox.clock).reserve(reserve_request())

    assert sandbox.record.calls == []


def test_a_profile_that_is_not_there_is_said(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/none")
    accounts = (AwsAccount(name="main", regions=("us-east-1",), profile="nobody"),)

    with pytest.raises(Denied, match="nobody"):
        Aws(AwsSettings(endpoint=sandbox.endpoint, accounts=accounts), sandbox.clock).reservations(SCOPE)


def test_what_went_wrong_before_the_request_cannot_have_acted() -> None:
    error = failures.not_sent(Ambiguous(DESCRIBE, code="c", message="m", request_id="r"))
    assert not error.may_have_acted
    assert (error.operation, error.code, error.message, error.request_id) == (DESCRIBE, "c", "m", "r")
    denied = Denied(DESCRIBE)
    assert failures.not_sent(denied) is denied


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_retries_of_the_sdk_are_off_whatever_the_environment_says(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Left on, one purchase that is answered with a server error would be three."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    monkeypatch.setenv("AWS_RETRY_MODE", mode)
    settings = AwsSettings(
        endpoint=sandbox.endpoint, sandbox=True, accounts=(AwsAccount(name="main", regions=("us-east-1",)),)
    )
    sandbox.fault(FaultKind.ERROR_AFTER, CREATE, status=500, times=None)

    with pytest.raises(Ambiguous):
        Aws(settings, sandbox.clock).reserve(reserve_request())

    assert len(sandbox.record.purchases()) == 1


def test_with_the_retries_of_the_sdk_one_growth_would_be_several(sandbox: Sandbox, aws: Aws) -> None:
    """Why they are off: growth has no token, so that nothing on the cloud's side stops the second."""
    bought = aws.reserve(reserve_request())
    settings = AwsSettings(endpoint=sandbox.endpoint, sandbox=True, accounts=ACCOUNTS)
    wire = Wire(settings, sandbox.clock)
    wire._config = Config(retries={"total_max_attempts": 3, "mode": "standard"})
    sandbox.record.clear()
    sandbox.fault(FaultKind.ERROR_AFTER, MODIFY, status=500, times=None)

    with pytest.raises(Ambiguous):
        Aws(settings, sandbox.clock, wire).resize(resize_request(bought.id, 2, 4))

    assert sandbox.record.operations().count(MODIFY) == 3
