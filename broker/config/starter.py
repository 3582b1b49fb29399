"""The configuration that `broker init` writes: short, commented, and ready to be edited."""

STARTER = """\
# What the broker reads, what it may buy, and where. Every key: docs/configuration.md.
# It only watches until you let it act.
mode = "observe"                    # "act" lets `apply` and `run` buy, change and release
state = "state.db"
freeze_file = "FREEZE"              # while this file exists, nothing is bought, changed or released

# Where jobs are read from: a command or files; several [[queue]] tables may stand side by side.
[[queue]]
name = "slurm"
command = ["squeue", "--json"]      # or: file = "queue.json"
# format = "auto"                   # auto, squeue, sacct, csv, jsonl
# timezone = "Europe/Zurich"        # for formats whose times carry no zone

# What demand is grouped by. Without [[pool.place]], every configured account and region may serve it.
[[pool]]
name = "h100"
gpu = ["h100"]
default = true                      # jobs that name no GPU model belong here
# max_gpus = 64

# [[pool.place]]
# provider = "aws"
# region = "us-east-1"

# [[tenant]]
# name = "vision"                   # as in the queue: Slurm account, namespace
# weight = 2.0
# budget_usd_per_month = 20000
# entitlements = { h100 = 16 }
# lends = false                     # what it leaves idle is not lent; max_lent = { h100 = 4 } caps it
# borrows = false                   # its jobs never start early on what others leave idle

[guards]
max_usd_per_hour = 100              # over everything held
max_usd_per_month = 20000
max_new_instances = 4               # in one run

[purchase]
default_runtime = "24h"             # how long a job without a time limit is taken to run
# tags = { team = "ml-platform" }   # put on everything that is bought

# The clouds. Credentials come from each SDK's own default chain and are never written here.
# [[aws.account]]
# name = "main"
# regions = ["us-east-1", "us-west-2"]
# profile = "capacity"

# [[gcp.project]]
# project = "my-project"
# regions = ["us-central1"]

# [[azure.subscription]]
# subscription = "00000000-0000-0000-0000-000000000000"
# regions = ["eastus"]
# resource_group = "gpu-capacity"
"""

SANDBOX_STARTER = """\
# The built-in clouds: no account, no network, no money. Every key: docs/configuration.md.
mode = "act"
state = "state.db"

[sandbox]
world = "world.json"                # the three clouds as they stand; every command serves them to itself

[[queue]]
name = "queue"
file = "queue.csv"                  # edit it, then look at `broker plan`
max_age = "3650d"                   # the file is yours to edit: it does not grow stale

[[pool]]
name = "h100"
gpu = ["h100"]
default = true

[[pool]]
name = "a100"
gpu = ["a100-80gb"]

[[tenant]]
name = "vision"
weight = 2.0
entitlements = { h100 = 16 }

[[tenant]]
name = "nlp"
entitlements = { h100 = 8 }

[guards]
max_usd_per_hour = 2000
max_usd_per_month = 500000
max_new_instances = 32
max_data_age = "3650d"              # as above: acts on the queue file however old it is

[purchase]
default_runtime = "6h"
tags = { team = "ml-platform" }

[[aws.account]]
name = "main"
regions = ["us-east-1", "us-west-2"]

[[gcp.project]]
project = "sandbox-project"
regions = ["us-central1", "europe-west4"]

[[azure.subscription]]
subscription = "00000000-0000-0000-0000-000000000000"
regions = ["eastus", "westeurope"]
resource_group = "gpu-capacity"
"""

SANDBOX_QUEUE = """\
id,tenant,user,submit,state,gpus,gpu_type,nodes,time_limit_s,priority
1001,vision,ana,2026-03-04T08:00:00Z,pending,16,h100,2,21600,10
1002,vision,bo,2026-03-04T08:20:00Z,pending,8,h100,1,14400,5
1003,nlp,cy,2026-03-04T08:30:00Z,pending,8,h100,1,7200,5
1004,nlp,dee,2026-03-04T09:00:00Z,pending,4,a100-80gb,1,7200,1
"""
"""A queue to go with the sandbox: two tenants, jobs on one node and on two."""


def starter() -> str:
    """`broker.toml` for real clouds: reads Slurm, watches, buys nothing."""
    return STARTER


def sandbox_starter(aws_regions: tuple[str, ...] = (), gcp_regions: tuple[str, ...] = (),
                    azure_regions: tuple[str, ...] = ()) -> str:  # fmt: skip
    """`broker.toml` for the built-in clouds; regions that are given replace the usual ones."""
    text = SANDBOX_STARTER
    for usual, given in (
        ('"us-east-1", "us-west-2"', aws_regions),
        ('"us-central1", "europe-west4"', gcp_regions),
        ('"eastus", "westeurope"', azure_regions),
    ):
        text = text.replace(usual, ", ".join(f'"{region}"' for region in given)) if given else text
    return text
