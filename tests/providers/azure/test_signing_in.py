"""Credentials: the SDK's own chain outside of the sandbox, never sent over plain http, never shown."""

from typing import Any

import msgspec
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CredentialUnavailableError, DefaultAzureCredential

from providers.azure import calls as azure_calls
from providers.azure.adapter import Azure
from providers.azure.client import credential_for
from providers.base import Denied, ProviderError
from providers.sandbox.local import Sandbox
from tests.providers.azure.conftest import SCOPE, called, reserve_request, settings

SECRET = "eyJ-very-secret"


class Failing:
    """A credential that cannot be had."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        raise self._error


class Given:
    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(SECRET, 4102444800)


def signed_in(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, credential: Any, scheme: str = "https") -> Azure:
    """The adapter as it is outside of the sandbox, with this credential."""
    monkeypatch.setattr(azure_calls, "credential_for", lambda _settings: credential)
    endpoint = sandbox.endpoint.replace("http", scheme)
    real = msgspec.structs.replace(settings(sandbox), sandbox=False, endpoint=endpoint)
    return Azure(real, sandbox.clock, wait=lambda _seconds: None)


def test_the_sdks_own_chain_signs_in(sandbox: Sandbox) -> None:
    credential = credential_for(msgspec.structs.replace(settings(sandbox), sandbox=False))

    assert isinstance(credential, DefaultAzureCredential)
    credential.close()


@pytest.mark.parametrize(
    "error",
    [CredentialUnavailableError("please run az login"), ClientAuthenticationError("expired: please run az login")],
)
def test_without_credentials_nothing_is_sent(
    error: Exception, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure = signed_in(sandbox, monkeypatch, Failing(error))

    with pytest.raises(Denied) as caught:
        azure.reserve(reserve_request())

    assert "az login" in caught.value.message
    assert not caught.value.may_have_acted
    assert sandbox.record.calls == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_real_token_is_sent_to_no_plain_or_unproven_address(
    scheme: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure = signed_in(sandbox, monkeypatch, Given(), scheme)

    with pytest.raises(ProviderError) as caught:
        azure.reservations(SCOPE)

    assert SECRET not in f"{caught.value}{caught.value!r}{caught.value.__cause__!r}"
    assert called(sandbox, "capacityReservationGroups.listBySubscription") == 0
