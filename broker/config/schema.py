"""Every key of `broker.toml`: its parser, its meaning and its default. The reader and the documentation follow this."""

from typing import Any, NamedTuple

from broker.config import values
from broker.config.types import EntitlementSource, QueueSource, ScheduleSettings
from broker.config.values import Parser
from broker.model.place import ProviderName
from broker.model.policy import Guards, Mode, Pool, Purchase, Tenant
from providers.settings import Reach


class Required(NamedTuple):
    """The key must be there; `stand_in` is used to go on looking for further mistakes when it is not."""

    stand_in: Any = ""


class Key(NamedTuple):
    """`field` names the field that the value fills, where it is not called as the key."""

    name: str
    parse: Parser
    meaning: str
    default: Any = None
    field: str = ""


class Section(NamedTuple):
    """A table; `many` tables of that name make a list. `inner` tables are sections of their own."""

    name: str
    meaning: str
    keys: tuple[Key, ...]
    inner: tuple["Section", ...] = ()
    many: bool = False


FORMATS = (
    "auto", "kubernetes", "ray", "skypilot", "aws-batch", "sagemaker", "vertex", "azure-ml", "sacct-json", "squeue",
    "scontrol", "sacct", "swf", "helios", "philly", "parquet", "csv", "jsonl",
)  # fmt: skip

LIVE = ("kubernetes", "aws-batch", "sagemaker", "vertex", "azure-ml")
ENTITLEMENT_FORMATS = ("auto", "sacctmgr", "clusterqueue")
_SOURCE = QueueSource(name="")
_ENTITLEMENTS = EntitlementSource(pool="")
_POOL = Pool(name="", gpu_models=(), places=())
_TENANT = Tenant(name="")
_PURCHASE = Purchase()
_GUARDS = Guards()
_REACH = Reach()
_SCHEDULE = ScheduleSettings()

QUEUE = Section(
    "queue",
    "Where jobs are read from. Several may be given; each is a file (or files), a command or a service.",
    (
        Key("name", values.text, "what messages call it", Required()),
        Key("file", values.some_texts, "path or paths of queue files; `.gz` is read as it is", (), "files"),
        Key("command", values.command, "program and arguments whose output is the queue; no shell is used", ()),
        Key(
            "url",
            values.url,
            "of a service that answers with the queue, such as slurmrestd's `/slurm/jobs`",
            "",
        ),
        Key("live", values.choice(LIVE), "a service that is asked through its own client", ""),
        Key(
            "at",
            values.text,
            "of a live source: context of the kubeconfig, region of AWS (none: the client's own), `PROJECT/REGION` of "
            "Vertex AI, `SUBSCRIPTION/RESOURCE-GROUP/WORKSPACE` of Azure ML",
            "",
        ),
        Key("format", values.choice(FORMATS), "how the source is written; `auto` finds out and says why", "auto"),
        Key("cluster", values.text, "the cluster of jobs that name none; part of a job's identity", ""),
        Key("tenant", values.text, "the tenant of jobs that name none", ""),
        Key("pools", values.texts, "the pools whose demand this source tells; empty: all", ()),
        Key("timezone", values.timezone, "of times that carry no zone; without it such times are refused"),
        Key(
            "columns",
            values.pairs(values.text),
            'of a CSV whose columns have other names: `{ id = "Job", gpus = "GPU count" }`; the rest keep theirs',
            (),
        ),
        Key("max_age", values.some_time, "older than this, the source is not believed", _SOURCE.max_age),
        Key("timeout", values.some_time, "longer than this, a command or service is not waited for", _SOURCE.timeout),
        Key("max_size", values.size, "more than this is not read", _SOURCE.max_bytes, "max_bytes"),
        Key("precedence", values.count, "of two sources with the same job, the higher is believed", 0),
        Key("procs_per_gpu", values.count, "processors that go with one GPU, for logs that count only those (SWF)", 0),
        Key("epoch", values.instant, "when a log began that counts its seconds from then and does not say so (SWF)"),
    ),
    many=True,
)

PLACE = Section(
    "place",
    "Where the pool may be served; none means everywhere that is configured.",
    (
        Key("provider", values.choice(ProviderName), "the cloud", Required(None)),
        Key("account", values.text, "AWS account by its name here, GCP project or Azure subscription; none: any"),
        Key("region", values.text, "none: any of the account's regions"),
        Key("zone", values.text, "zone name or zone id; none: any zone of the region"),
    ),
    many=True,
)

OWN = Section(
    "own",
    "Capacity that no reservation holds: on-premises nodes, committed VMs.",
    (
        Key("nodes", values.count, "how many whole nodes", Required(0)),
        Key("gpus_per_node", values.positive, "GPUs in each", Required(1)),
        Key("node_patterns", values.texts, "shell patterns of the names of these nodes, such as `gpu-*`", ()),
    ),
    many=True,
)

POOL = Section(
    "pool",
    "What demand is grouped by: GPU models, and the places allowed to serve them.",
    (
        Key("name", values.text, "unique", Required()),
        Key("gpu", values.some_texts, "GPU model or models that serve this pool", Required(()), "gpu_models"),
        Key("machine_types", values.texts, "empty: every machine type with that GPU", ()),
        Key("queues", values.texts, "only jobs of these queues (partitions); empty: all", ()),
        Key("tenants", values.texts, "only jobs of these tenants; empty: all", ()),
        Key(
            "constraints",
            values.texts,
            "only jobs that insist on one of these node labels (`name=value`) or features; shell patterns; empty: all",
            (),
        ),
        Key("default", values.flag, "jobs that name no GPU model belong here", _POOL.default),
        Key("min_gpus", values.count, "never hold fewer", _POOL.min_gpus),
        Key("max_gpus", values.count, "never hold more; none: no limit", _POOL.max_gpus),
        Key("match", values.pairs(values.text), "what supply must have equal in order to count", ()),
    ),
    (PLACE, OWN),
    many=True,
)

TENANT = Section(
    "tenant",
    "Who is promised capacity.",
    (
        Key("name", values.text, "as in the queue (account, namespace)", Required()),
        Key("weight", values.number, "share of what belongs to nobody", _TENANT.weight),
        Key("budget_usd_per_month", values.usd, "none: no limit of its own"),
        Key("entitlements", values.pairs(values.count), "GPUs per pool", ()),
        Key("lends", values.flag, "`broker schedule` lends what it leaves idle to others", _TENANT.lends),
        Key("borrows", values.flag, "its jobs may start early on what others leave idle", _TENANT.borrows),
        Key(
            "max_lent", values.pairs(values.count), "GPUs per pool lent at most; none for a pool: all that is idle", ()
        ),
    ),
    many=True,
)

ENTITLEMENTS = Section(
    "entitlements",
    "Where entitlements are read from at each `broker schedule`. What a `[[tenant]]` states for the pool wins.",
    (
        Key("pool", values.text, "the pool in which they are promised", Required()),
        Key("path", values.text, "file that holds them"),
        Key("command", values.command, "program and arguments whose output they are; no shell is used", ()),
        Key(
            "format",
            values.choice(ENTITLEMENT_FORMATS),
            "`sacctmgr -p show assoc`, or Kueue's ClusterQueues and LocalQueues as JSON or YAML",
            "auto",
        ),
        Key("timeout", values.some_time, "longer than this, a command is not waited for", _ENTITLEMENTS.timeout),
        Key("max_size", values.size, "more than this is not read", _ENTITLEMENTS.max_bytes, "max_bytes"),
    ),
    many=True,
)

PURCHASE = Section(
    "purchase",
    "How buying and giving back is decided.",
    (
        Key(
            "default_runtime",
            values.some_time,
            "how long a job without a time limit is taken to run",
            _PURCHASE.default_runtime,
        ),
        Key(
            "runtime_quantile",
            values.part,
            "a job is taken to run no longer than this part of its user's finished jobs did, whatever its limit; "
            "0 believes every limit",
            _PURCHASE.runtime_quantile,
        ),
        Key("lead", values.duration, "how far ahead demand must be covered", _PURCHASE.lead),
        Key("minimum_hold", values.duration, "never released earlier after purchase", _PURCHASE.minimum_hold),
        Key("cooldown", values.duration, "how long an offer that was out of stock is left alone", _PURCHASE.cooldown),
        Key("reacquire", values.duration, "how long getting capacity back is set to take", _PURCHASE.reacquire),
        Key(
            "end_ahead",
            values.some_time,
            "the end that a purchase gets where the cloud can move it; renewed when less than half is left",
            _PURCHASE.end_ahead,
        ),
        Key(
            "release_grace",
            values.duration,
            "how long the jobs that caused a reservation may be gone before it is a candidate for release",
            _PURCHASE.release_grace,
        ),
        Key("drain_margin", values.duration, "kept free before a reservation's end", _PURCHASE.drain_margin),
        Key("max_price_age", values.some_time, "an older price counts as missing", _PURCHASE.max_price_age),
        Key("warn_price_age", values.some_time, "an older price is warned about", _PURCHASE.warn_price_age),
        Key("targeted", values.flag, "only jobs that name the reservation may use it", _PURCHASE.targeted),
        Key("plan_lifetime", values.some_time, "a saved plan is refused when older", _PURCHASE.plan_lifetime),
        Key("tags", values.pairs(values.text), "put on everything that is bought (GCP: into its description)", ()),
    ),
)

SCHEDULE = Section(
    "schedule",
    "What `broker schedule` assumes of jobs until it has seen how they behave.",
    (
        Key(
            "reclaim",
            values.some_time,
            "time from calling a job back until its slots are free; a slower class of jobs does not borrow",
            _SCHEDULE.reclaim,
        ),
        Key(
            "restore",
            values.duration,
            "work that a called-back job does again, until that was measured for its class",
            _SCHEDULE.restore,
        ),
        Key(
            "held_jobs_wait",
            values.flag,
            "jobs that are held in the queue wait for a grant; false: they are not looked at",
            _SCHEDULE.held_jobs_wait,
        ),
        Key(
            "preemptible_queues",
            values.texts,
            "shell patterns of queues (partitions) whose jobs can be called back, as can those that say so themselves",
            (),
        ),
        Key(
            "firm_misses",
            values.part,
            "share of loans to jobs that cannot be called back that may be in the way of their owner; 0: none are made",
            _SCHEDULE.firm_misses,
        ),
        Key(
            "elastic_power",
            values.part,
            "elastic jobs on a times their GPUs are at least a ** this times as fast; 0: given no more than asked",
            _SCHEDULE.elastic_power,
        ),
    ),
)

GUARDS = Section(
    "guards",
    "Limits that no plan passes. The hour and the month cover everything held, not only what a plan adds.",
    (
        Key("max_usd_per_run", values.usd, "idle cost at worst that one run may add; none: no limit"),
        Key("max_usd_per_hour", values.usd, "none: no limit"),
        Key("max_usd_per_month", values.usd, "per calendar month (UTC); none: no limit"),
        Key("max_new_instances", values.count, "per run; none: no limit"),
        Key(
            "max_released_instances",
            values.count,
            "per run; none: no limit. A reservation of more is given back only with `--force max_released_instances`",
        ),
        Key("max_data_age", values.some_time, "nothing is done on older observations", _GUARDS.max_data_age),
        Key("allow_irreversible", values.flag, "purchases that cannot be undone", _GUARDS.allow_irreversible),
    ),
)

_REACH_KEYS = (
    Key("timeout", values.some_time, "bounds one call", _REACH.timeout),
    Key("read_attempts", values.positive, "how often a read is tried; a purchase is sent once", _REACH.read_attempts),
    Key(
        "visibility_window",
        values.some_time,
        "how long a purchase may stay invisible before an unknown outcome counts as failed; longer is safer",
        _REACH.visibility_window,
    ),
)

ACCOUNT = Section(
    "account",
    "An AWS account. Credentials come from the SDK's own chain, never from here.",
    (
        Key("name", values.text, "what the account is called here", Required()),
        Key("regions", values.some_texts, "regions to use", Required(())),
        Key("profile", values.text, "profile of the AWS configuration; none: the default chain"),
        Key("role_arn", values.text, "role that is assumed; none: no role"),
    ),
    many=True,
)

PROJECT = Section(
    "project",
    "A GCP project.",
    (
        Key("project", values.text, "project id", Required()),
        Key("regions", values.some_texts, "regions to use", Required(())),
        Key("end_settable", values.flag, "your word that changing a reservation's end works in this project", False),
    ),
    many=True,
)

SUBSCRIPTION = Section(
    "subscription",
    "An Azure subscription.",
    (
        Key("subscription", values.text, "subscription id", Required()),
        Key("regions", values.some_texts, "regions to use", Required(())),
        Key("resource_group", values.text, "where reservation groups are made; it must exist", Required()),
    ),
    many=True,
)

AWS = Section("aws", "How AWS is reached.", _REACH_KEYS, (ACCOUNT,))
GCP = Section("gcp", "How GCP is reached.", _REACH_KEYS, (PROJECT,))
AZURE = Section("azure", "How Azure is reached.", _REACH_KEYS, (SUBSCRIPTION,))

SANDBOX = Section(
    "sandbox",
    "The built-in clouds instead of the real ones: a saved world, or the addresses of a `broker sandbox` that runs.",
    (
        Key("world", values.text, "file of a saved world; every command serves it to itself and saves it again"),
        Key("aws", values.loopback, "address of the AWS face"),
        Key("gcp", values.loopback, "address of the GCP face"),
        Key("azure", values.loopback, "address of the Azure face"),
    ),
)

HISTORY = Section(
    "history",
    "The jobs of the past, in a file beside the ledger.",
    (
        Key("feed", values.flag, "whether `broker run` adds what it sees in the queues", True),
        Key("keep_days", values.positive, "jobs that were over for longer are forgotten", 730),
        Key("hash_names", values.flag, "keep users and job names as aliases, from the first run on", False),
    ),
)

TOP = Section(
    "",
    "At the top of the file, before the first table.",
    (
        Key("mode", values.choice(Mode), "`observe` never buys, changes or releases", Mode.ACT),
        Key("state", values.text, "the ledger's file", "state.db"),
        Key("prices", values.text, "your own price file; it wins over the built-in table"),
        Key("forecast", values.text, "your own forecast of demand, which takes part in `broker forecast`"),
        Key("forecast_max_age", values.some_time, "an older one of yours is not used", values.duration("26h")),
        Key(
            "freeze_file",
            values.text,
            "while this file exists, nothing is bought, changed or released, from that moment on also by a run",
            "FREEZE",
        ),
        Key("lock_timeout", values.duration, "how long to wait for another run", values.duration("30s")),
        Key("protect", values.texts, "ids of reservations that are never changed or released", ()),
        Key("gpu_aliases", values.pairs(values.text), "your own names of GPUs in queues, and the models they mean", ()),
    ),
    (QUEUE, POOL, TENANT, ENTITLEMENTS, SCHEDULE, HISTORY, PURCHASE, GUARDS, AWS, GCP, AZURE, SANDBOX),
)

OVERRIDES = {
    "state": "state",
    "mode": "mode",
    "prices": "prices",
    "freeze_file": "freeze_file",
    "lock_timeout": "lock_timeout",
    "max_hourly": "guards.max_usd_per_hour",
}
"""What a flag (or `BROKER_` and the name in capitals) replaces: name of the flag -> key."""

FLAGS = frozenset({"state", "lock_timeout", "max_hourly"})
"""Those of `OVERRIDES` that the command line takes as well."""
