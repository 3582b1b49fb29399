"""What a `broker.toml` says, as values."""

from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec

from broker.model.place import ProviderName
from broker.model.policy import Policy
from providers.settings import ProviderSettings


class Origin(StrEnum):
    """Where a value comes from; an earlier one wins."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Setting(msgspec.Struct, frozen=True):
    """One key as it holds, for `check -v`: `value` is for the eye, `toml` is what the file may say; "" for none."""

    key: str
    value: str
    origin: Origin
    toml: str = ""


class QueueSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where jobs are read from: `files`, a `command`, the `url` of a service, or `live` (with `at`); only one of them.

    `pools` are those whose demand the source tells (empty: all): while it cannot be read, they are not known.
    `timezone` is for times that carry none; without it such times are refused. `max_age` bounds how old the source's
    own word may be, `timeout` how long a command or service may take, `max_bytes` how much is read. `precedence`: of
    two sources that report the same job the higher one is believed, and the earlier one among equals. `gpu_aliases`:
    lower-case names of GPUs -> models; they are the configuration's, the same for all sources. `columns`: fields of
    ours -> what a table (CSV) calls them.
    """

    name: str
    files: tuple[Path, ...] = ()
    command: tuple[str, ...] = ()
    url: str = ""
    live: str = ""
    at: str = ""
    format: str = "auto"
    cluster: str = ""
    tenant: str = ""
    pools: tuple[str, ...] = ()
    timezone: str | None = None
    max_age: timedelta = timedelta(minutes=30)
    timeout: timedelta = timedelta(seconds=60)
    max_bytes: int = 256 * 2**20
    precedence: int = 0
    procs_per_gpu: int = 0
    epoch: datetime | None = None
    gpu_aliases: tuple[tuple[str, str], ...] = ()
    columns: tuple[tuple[str, str], ...] = ()


class EntitlementSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is written who is promised what in `pool`: the file at `path`, or a `command`; only one of them.

    `timeout` bounds a command, `max_bytes` what is read.
    """

    pool: str
    path: Path | None = None
    command: tuple[str, ...] = ()
    format: str = "auto"
    timeout: timedelta = timedelta(seconds=60)
    max_bytes: int = 16 * 2**20


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`reclaim`: from calling a job back until its slots are free; slower classes of jobs do not borrow. `restore`:
    work that a called-back job does again, until it was measured. `held_jobs_wait`: held jobs wait for a grant. Jobs of
    `preemptible_queues` (shell patterns) can be called back, as can those that say so themselves. Others borrow only
    with `firm_misses` > 0, the share of such loans that may be in the way of their owner. Elastic jobs are given more
    than they ask for with `elastic_power` > 0: on a times as many GPUs they are a ** `elastic_power` times as fast.
    """

    reclaim: timedelta = timedelta(minutes=5)
    restore: timedelta = timedelta(minutes=5)
    held_jobs_wait: bool = False
    preemptible_queues: tuple[str, ...] = ()
    firm_misses: float = 0.0
    elastic_power: float = 0.0


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """`feed`: runs add what they see in queues. `hash_names`: users and job names are kept as aliases."""

    feed: bool = True
    keep_days: int = 730
    hash_names: bool = False


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The built-in clouds: either a saved `world` that the command itself serves, or `endpoints` that already run."""

    world: Path | None = None
    endpoints: tuple[tuple[ProviderName, str], ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Paths are absolute. `settings` holds every key with its value and origin.

    With a sandbox `world`, the providers' endpoints stay None until `broker.config.at_endpoints` fills them in.
    """

    path: Path
    policy: Policy
    queues: tuple[QueueSource, ...]
    providers: tuple[ProviderSettings, ...]
    state: Path
    freeze_file: Path
    lock_timeout: timedelta
    prices: Path | None = None
    forecast: Path | None = None
    entitlements: tuple[EntitlementSource, ...] = ()
    forecast_max_age: timedelta = timedelta(hours=26)
    schedule: ScheduleSettings = ScheduleSettings()
    history: HistorySettings = HistorySettings()
    sandbox: SandboxSettings | None = None
    settings: tuple[Setting, ...] = ()
    gpu_aliases: tuple[tuple[str, str], ...] = ()
