"""Who the credentials are for."""

import base64
import binascii
import json
from typing import Any

from broker.model.place import Scope
from providers.azure.calls import Calls
from providers.azure.client import ARM_SCOPE
from providers.base import Identity

_PRINCIPAL_CLAIMS = ("upn", "unique_name", "appid", "oid")


def identity(calls: Calls, scope: Scope) -> Identity:
    """Shown by the subscription answering at all; the principal is what the token says of itself, "" if nothing."""
    calls.read("usage.list", lambda client: next(iter(client.usage.list(scope.region)), None))
    token = calls.once("token", lambda _client: calls.credential.get_token(ARM_SCOPE).token)
    claims = _claims(token)
    principal = next((str(claims[name]) for name in _PRINCIPAL_CLAIMS if claims.get(name)), "")
    return Identity(account=scope.account, principal=principal)


def _claims(token: str) -> dict[str, Any]:
    """The middle part of a JWT, which is not checked: Azure has just accepted it."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}
