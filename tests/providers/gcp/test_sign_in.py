"""Credentials come from the SDK's own chain; what is wrong with them is said, they themselves never are."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from providers.base import Denied
from providers.gcp.adapter import Gcp
from providers.gcp.wire import Wire
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.settings import GcpProject, GcpSettings
from tests.providers.gcp.conftest import PROJECT, REGION, SCOPE, reserve_request

EMAIL = "broker@research.iam.gserviceaccount.com"


def signed_in(sandbox: Sandbox) -> GcpSettings:
    """As against the real cloud: nothing made up."""
    return GcpSettings(endpoint=sandbox.endpoint, projects=(GcpProject(project=PROJECT, regions=(REGION,)),))


def test_missing_credentials_are_denied_before_a_call(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    gcp = Gcp(signed_in(sandbox))

    for act in (lambda: gcp.reservations(SCOPE), lambda: gcp.reserve(reserve_request())):
        with pytest.raises(Denied) as error:
            act()
        assert error.value.code == "DefaultCredentialsError"
    assert sandbox.record.calls == []


def test_refused_credentials_are_denied_and_the_key_is_not_told(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = private_key()
    file = tmp_path / "key.json"
    file.write_text(json.dumps(service_account(key)), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    settings = signed_in(sandbox)
    wire = Wire(settings)
    sandbox.fault(FaultKind.ERROR, "reservations.insert", status=401, code="authError", message="expired", times=None)

    with pytest.raises(Denied) as error:
        Gcp(settings, wire).reserve(reserve_request())

    assert error.value.code == "authError"
    assert wire.principal() == EMAIL
    assert key.splitlines()[1] not in str(error.value)
    assert sandbox.record.purchases() == []


def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def service_account(key: str) -> dict[str, str]:
    """It signs its own tokens, so that none is fetched."""
    return {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": key,
        "client_email": EMAIL,
        "token_uri": "https://oauth2.googleapis.com/token",
    }
