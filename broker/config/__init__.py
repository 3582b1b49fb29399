"""`broker.toml` -> `Config`; every mistake is reported at once, with its path and a suggestion."""

from broker.config.clouds import at_endpoints, name_of
from broker.config.load import load, parse
from broker.config.types import (
    Config,
    EntitlementSource,
    HistorySettings,
    Origin,
    QueueSource,
    SandboxSettings,
    ScheduleSettings,
    Setting,
)

__all__ = [
    "Config",
    "EntitlementSource",
    "HistorySettings",
    "Origin",
    "QueueSource",
    "SandboxSettings",
    "ScheduleSettings",
    "Setting",
    "at_endpoints",
    "load",
    "name_of",
    "parse",
]
