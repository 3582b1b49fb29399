"""The real Azure client, with nothing between it and the wire that could send a request twice or elsewhere.

The client's own pipeline would retry (PATCH too, on 500, 503 and 504), follow redirects and register resource
providers by itself. This one does none of that: a request that is handed to it is sent once.
"""

import time
from typing import Any

from azure.core.credentials import AccessToken
from azure.core.pipeline import policies
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

from providers.settings import AzureSettings

ARM_SCOPE = "https://management.azure.com/.default"
SANDBOX_TOKEN = "e30.eyJ1cG4iOiJzYW5kYm94In0.x"  # noqa: S105 - opens nothing: {"upn": "sandbox"}, not signed
CONNECT_TIMEOUT_S = 10.0


class SandboxCredential:
    """Signs in to the sandbox, which lets everybody in."""

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(SANDBOX_TOKEN, int(time.time()) + 3600)


def credential_for(settings: AzureSettings) -> Any:
    """The SDK's own default chain, or made-up credentials for the sandbox."""
    if settings.sandbox:
        return SandboxCredential()
    from azure.identity import DefaultAzureCredential  # takes its time, and the sandbox does without

    return DefaultAzureCredential()


def compute_client(settings: AzureSettings, subscription: str, credential: Any) -> Any:
    """A `ComputeManagementClient` for one subscription; `settings.timeout` bounds each of its calls."""
    return ComputeManagementClient(
        credential,
        subscription,
        base_url=settings.endpoint,
        policies=_policies(settings, credential),
        connection_timeout=min(CONNECT_TIMEOUT_S, settings.timeout.total_seconds()),
        read_timeout=settings.timeout.total_seconds(),
        use_env_settings=not settings.sandbox,
    )


def sdk_retries() -> Any:
    """What the SDK may repeat by itself: nothing."""
    return policies.RetryPolicy.no_retries()


def _policies(settings: AzureSettings, credential: Any) -> list[Any]:
    return [
        policies.RequestIdPolicy(),
        policies.UserAgentPolicy(sdk_moniker="gpu-capacity-broker"),
        policies.ProxyPolicy(),
        policies.CustomHookPolicy(),
        policies.ContentDecodePolicy(),
        sdk_retries(),
        _authentication(settings, credential),
    ]


def _authentication(settings: AzureSettings, credential: Any) -> Any:
    """The SDK's own policy refuses to send a token over plain http, which is what the sandbox speaks."""
    if settings.sandbox:
        return policies.HeadersPolicy({"Authorization": f"Bearer {SANDBOX_TOKEN}"})
    return ARMChallengeAuthenticationPolicy(credential, ARM_SCOPE)
