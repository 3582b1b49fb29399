"""Which face answers a request. A face is imported with its first request: botocore's model takes its time."""

from importlib import import_module
from typing import cast

from broker.model.place import ProviderName
from providers.sandbox.wire import Face, Request

WHERE = {
    ProviderName.AWS: ("providers.sandbox.aws", "AwsFace"),
    ProviderName.GCP: ("providers.sandbox.gcp", "GcpFace"),
    ProviderName.AZURE: ("providers.sandbox.azure", "AzureFace"),
}
GCP_PATHS = ("/compute/",)
AZURE_PATHS = ("/subscriptions", "/providers", "/tenants")


def cloud_of(request: Request) -> ProviderName | None:
    """By path alone, whatever the host. AWS sends everything to `/` (EC2, STS, Service Quotas)."""
    if request.path.startswith(GCP_PATHS):
        return ProviderName.GCP
    if request.path.lower().startswith(AZURE_PATHS):
        return ProviderName.AZURE
    return ProviderName.AWS if request.path in ("", "/") else None


class Faces:
    def __init__(self) -> None:
        self._faces: dict[ProviderName, Face] = {}

    def get(self, provider: ProviderName) -> Face:
        if provider not in self._faces:
            module, name = WHERE[provider]
            self._faces[provider] = cast(Face, getattr(import_module(module), name)())
        return self._faces[provider]
