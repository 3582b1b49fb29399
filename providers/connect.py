"""From settings to a provider. An adapter is imported when its cloud is asked for: an SDK takes seconds to import."""

from broker.clock import Clock
from providers.base import Provider
from providers.settings import AzureSettings, GcpSettings, ProviderSettings


def connect(settings: ProviderSettings, clock: Clock) -> Provider:
    """No call is made, and no credential is looked for, before the provider is used."""
    if isinstance(settings, GcpSettings):
        from providers.gcp.adapter import Gcp

        return Gcp(settings)
    if isinstance(settings, AzureSettings):
        from providers.azure.adapter import Azure

        return Azure(settings, clock)
    from providers.aws.adapter import Aws

    return Aws(settings, clock)
