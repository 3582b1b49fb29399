"""The parts of the configuration that say how clouds are reached."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from broker.config import schema
from broker.config.reader import Reader
from broker.config.schema import Section
from broker.config.types import Config, SandboxSettings
from broker.model.place import ProviderName
from providers.settings import (
    AwsAccount,
    AwsSettings,
    AzureSettings,
    AzureSubscription,
    GcpProject,
    GcpSettings,
    ProviderSettings,
)


class _Cloud(NamedTuple):
    """`holds` is the field of `settings` that lists the `entry` values read from the section's inner tables."""

    section: Section
    settings: Any
    holds: str
    entry: Any


_CLOUDS = {
    ProviderName.AWS: _Cloud(schema.AWS, AwsSettings, "accounts", AwsAccount),
    ProviderName.GCP: _Cloud(schema.GCP, GcpSettings, "projects", GcpProject),
    ProviderName.AZURE: _Cloud(schema.AZURE, AzureSettings, "subscriptions", AzureSubscription),
}


def sandbox(reader: Reader, document: Mapping[str, Any], base: Path) -> SandboxSettings | None:
    if "sandbox" not in document:
        return None
    fields = reader.one(schema.SANDBOX, document["sandbox"], "sandbox")
    endpoints = tuple((name, fields[name.value]) for name in ProviderName if fields[name.value])
    if bool(fields["world"]) == bool(endpoints) and not reader.doubted("sandbox"):
        reader.problem("sandbox", "give either a world or the addresses of running clouds (aws, gcp, azure)")
    return SandboxSettings(world=base / fields["world"] if fields["world"] else None, endpoints=endpoints)


def providers(
    reader: Reader, document: Mapping[str, Any], sandboxed: SandboxSettings | None
) -> tuple[ProviderSettings, ...]:
    """The clouds whose sections are there, in a fixed order."""
    return tuple(
        _provider(reader, document[name.value], name, sandboxed) for name in ProviderName if name.value in document
    )


def at_endpoints(config: Config, endpoints: Mapping[ProviderName, str]) -> Config:
    """The same with each cloud at the address on which an embedded sandbox listens."""
    return msgspec.structs.replace(
        config,
        providers=tuple(
            msgspec.structs.replace(settings, endpoint=endpoints[name_of(settings)]) for settings in config.providers
        ),
    )


def name_of(settings: ProviderSettings) -> ProviderName:
    return next(name for name, cloud in _CLOUDS.items() if isinstance(settings, cloud.settings))


def entries(settings: ProviderSettings) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(account, regions) of each account, project or subscription."""
    match settings:
        case AwsSettings():
            return tuple((account.name, account.regions) for account in settings.accounts)
        case GcpSettings():
            return tuple((project.project, project.regions) for project in settings.projects)
        case AzureSettings():
            return tuple((entry.subscription, entry.regions) for entry in settings.subscriptions)


def _provider(reader: Reader, raw: Any, name: ProviderName, sandboxed: SandboxSettings | None) -> ProviderSettings:
    cloud = _CLOUDS[name]
    fields = reader.one(cloud.section, raw, name.value)
    (inner,) = cloud.section.inner
    found = tuple(cloud.entry(**entry) for _, _, entry in reader.many(inner, raw, name.value))
    if not found and not reader.doubted(f"{name.value}.{inner.name}"):
        reader.problem(name.value, f"names no {inner.name}; write [[{name.value}.{inner.name}]]")
    endpoint = dict(sandboxed.endpoints).get(name) if sandboxed else None
    if sandboxed and sandboxed.endpoints and not endpoint:
        reader.problem(f"sandbox.{name.value}", f"is missing: [{name.value}] is configured, so where is its sandbox?")
    settings: ProviderSettings = cloud.settings(
        **fields, **{cloud.holds: found}, endpoint=endpoint, sandbox=sandboxed is not None
    )
    return settings
