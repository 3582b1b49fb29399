"""How each cloud is reached: plain values, read from the configuration. No credential is ever among them."""

from datetime import timedelta

import msgspec

from providers.base import VISIBILITY_WINDOW


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What the three clouds have in common.

    `endpoint` replaces the cloud's own address; it is set for the sandbox only, and then `sandbox` is true and the
    adapter signs in with made-up credentials instead of the SDK's default chain. `timeout` bounds one call.
    """

    endpoint: str | None = None
    sandbox: bool = False
    timeout: timedelta = timedelta(seconds=60)
    read_attempts: int = 4
    visibility_window: timedelta = VISIBILITY_WINDOW


class AwsAccount(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is ours; `profile` names one of the AWS configuration, `role_arn` is assumed from it (None: neither)."""

    name: str
    regions: tuple[str, ...]
    profile: str | None = None
    role_arn: str | None = None


class AwsSettings(Reach, frozen=True, kw_only=True):
    accounts: tuple[AwsAccount, ...]


class GcpProject(msgspec.Struct, frozen=True, kw_only=True):
    """`end_settable` is the operator's word that changing a reservation's end works for this project."""

    project: str
    regions: tuple[str, ...]
    end_settable: bool = False


class GcpSettings(Reach, frozen=True, kw_only=True):
    projects: tuple[GcpProject, ...]


class AzureSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """`resource_group` is where our reservation groups are made; it must exist."""

    subscription: str
    regions: tuple[str, ...]
    resource_group: str


class AzureSettings(Reach, frozen=True, kw_only=True):
    subscriptions: tuple[AzureSubscription, ...]


ProviderSettings = AwsSettings | GcpSettings | AzureSettings
