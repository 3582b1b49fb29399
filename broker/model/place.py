"""Where capacity can be: provider, account, region, zone."""

from enum import StrEnum

import msgspec


class ProviderName(StrEnum):
    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"


class Scope(msgspec.Struct, frozen=True, order=True):
    """The unit in which a cloud is listed, believed and doubted: one account in one region.

    `account` is the AWS account's configured name, the GCP project or the Azure subscription.
    """

    provider: ProviderName
    account: str
    region: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.account}/{self.region}"


class Place(msgspec.Struct, frozen=True, order=True):
    """A zone within a scope. `zone` is what the provider calls it in this account; "" is regional (Azure).

    `zone_id` is the provider's account-independent name where it has one (AWS `use1-az1`).
    """

    scope: Scope
    zone: str
    zone_id: str | None = None

    def __str__(self) -> str:
        region = self.scope.region
        within = self.zone if self.zone.startswith(region) else f"{region}/{self.zone}"
        return f"{self.scope.provider} {within if self.zone else region}"
