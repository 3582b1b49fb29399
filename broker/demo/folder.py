"""The folder that the demo plays in and leaves behind: never over somebody's files."""

from pathlib import Path

from broker.errors import UsageError

MARK = ".made-by-broker-demo"
QUEUE = "queue.csv"
STATE = "state.db"
WORLD = "world.json"
CONFIG = "broker.toml"
LIVE = "live.toml"

_CONFIG = """\
# Left by `broker demo`: three built-in clouds, as they stand at the end of its day. Go on with it:
#   broker status -c {config}
#   broker plan -c {config}
mode = "act"
state = "state.db"

[sandbox]
{clouds}

[[queue]]
name = "queue"
file = "queue.csv"                  # edit it, then look at `broker plan`
max_age = "3650d"

[[pool]]
name = "h100"
gpu = ["h100"]
machine_types = ["p5.48xlarge", "a3-highgpu-8g"]
default = true

[[pool.place]]
provider = "aws"
zone = "us-east-1a"

[[pool.place]]
provider = "aws"
zone = "us-east-1b"

[[pool.place]]
provider = "gcp"

[[pool]]
name = "a100"
gpu = ["a100-80gb"]
machine_types = ["Standard_NC96ads_A100_v4"]

[[pool.place]]
provider = "azure"

[guards]
max_usd_per_hour = 1500
max_usd_per_month = 100000
max_new_instances = 16
max_data_age = "3650d"

[purchase]
default_runtime = "6h"
cooldown = "6h"                     # how long a place that was full is not tried again
tags = {{ team = "ml-platform" }}

[[aws.account]]
name = "main"
regions = ["us-east-1"]

[[gcp.project]]
project = "sandbox-project"
regions = ["us-central1"]

[[azure.subscription]]
subscription = "00000000-0000-0000-0000-000000000000"
regions = ["eastus"]
resource_group = "gpu-capacity"
"""


class Folder:
    """Paths in it. `live` is the configuration while the demo itself serves the clouds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queue = path / QUEUE
        self.state = path / STATE
        self.world = path / WORLD
        self.config = path / CONFIG
        self.live = path / LIVE

    def write_live(self, endpoint: str) -> None:
        clouds = "\n".join(f'{name} = "{endpoint}"' for name in ("aws", "gcp", "azure"))
        self.live.write_text(_CONFIG.format(config=self.config, clouds=clouds), encoding="utf-8")

    def write_final(self) -> None:
        clouds = 'world = "world.json"                # every command serves them to itself'
        self.config.write_text(_CONFIG.format(config=self.config, clouds=clouds), encoding="utf-8")
        self.live.unlink()


def fresh(path: Path) -> tuple[Folder, Path | None]:
    """An empty folder, and where the one of an earlier demo was moved to. Raises UsageError for any other folder."""
    moved = _moved(path) if path.exists() else None
    try:
        path.mkdir(parents=True)
        (path / MARK).touch()
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}", next_step="Give another --dir") from None
    return Folder(path), moved


def _moved(path: Path) -> Path | None:
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
        return None
    if not (path / MARK).is_file():
        raise UsageError(f"{path} exists and was not made by a demo", next_step="Give another folder with --dir")
    number = 1
    while (free := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    path.rename(free)
    return free
