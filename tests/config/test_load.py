from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from broker.config import Config, Origin, at_endpoints, load, name_of, parse
from broker.config.reference import reference
from broker.config.starter import sandbox_starter, starter
from broker.errors import ConfigError
from broker.model.place import ProviderName
from broker.model.policy import Mode, PlaceRule
from providers.settings import AwsSettings, AzureSettings, GcpSettings

ROOT = Path(__file__).resolve().parents[2]
FULL = """
mode = "observe"
state = "ledger/state.db"
prices = "prices.csv"
lock_timeout = "45s"
protect = ["cr-1", "cr-2"]
[[queue]]
name = "slurm"
command = ["squeue", "--json"]
pools = ["h100"]
timezone = "Europe/Zurich"
max_age = "1h30m"
max_size = "10MiB"
[[queue]]
name = "files"
file = ["a.csv", "/srv/b.csv"]
precedence = 2
[[pool]]
name = "h100"
gpu = ["H100", "nvidia_gh200"]
min_gpus = 8
max_gpus = 64
match = { tenancy = "default" }
[[pool.place]]
provider = "aws"
account = "main"
region = "us-east-1"
zone = "use1-az1"
[[pool.own]]
nodes = 2
gpus_per_node = 8
node_patterns = ["gpu-*"]
[[pool]]
name = "a100"
gpu = "a100-80gb"
default = true
[[tenant]]
name = "vision"
weight = 2
budget_usd_per_month = "1200.50"
entitlements = { h100 = 16 }
[purchase]
default_runtime = "6h"
tags = { team = "ml" }
[guards]
max_usd_per_hour = 98.32
max_usd_per_month = 20000
[aws]
timeout = "20s"
[[aws.account]]
name = "main"
regions = ["us-east-1", "us-west-2"]
profile = "capacity"
[[gcp.project]]
project = "p"
regions = ["us-central1"]
end_settable = true
[[azure.subscription]]
subscription = "s"
regions = "eastus"
resource_group = "g"
"""
TENANT = """\
[[tenant]]
name = "vision"
weight = 2
budget_usd_per_month = "1200.50"
entitlements = { h100 = 16 }
"""


def read(text: str, **flags: str) -> Config:
    return parse(text, Path("/etc/broker/broker.toml"), flags=flags, env={})


def problems(text: str, **flags: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        read(text, **flags)
    return caught.value.problems


def test_every_kind_of_key_is_read() -> None:
    config = read(FULL)
    assert config.policy.mode is Mode.OBSERVE
    assert (config.state, config.prices) == (Path("/etc/broker/ledger/state.db"), Path("/etc/broker/prices.csv"))
    assert config.lock_timeout == timedelta(seconds=45)
    assert config.policy.protect == {"cr-1", "cr-2"}
    slurm, files = config.queues
    assert (slurm.command, slurm.timezone) == (("squeue", "--json"), "Europe/Zurich")
    assert (slurm.max_age, slurm.max_bytes) == (timedelta(minutes=90), 10 * 2**20)
    assert (files.files, files.precedence) == ((Path("/etc/broker/a.csv"), Path("/srv/b.csv")), 2)
    assert config.policy.guards.max_usd_per_hour == Decimal("98.32")
    assert config.policy.purchase.tags == (("team", "ml"),)


def test_pools_and_tenants() -> None:
    policy = read(FULL).policy
    h100, a100 = policy.pools
    assert h100.gpu_models == ("h100", "gh200")
    assert h100.places == (PlaceRule(provider=ProviderName.AWS, account="main", region="us-east-1", zone="use1-az1"),)
    assert (h100.own[0].nodes, h100.own[0].node_patterns) == (2, ("gpu-*",))
    assert a100.default and [place.provider for place in a100.places] == list(ProviderName)
    assert policy.tenants[0].budget_usd_per_month == Decimal("1200.50")
    assert policy.tenants[0].entitlements == (("h100", 16),)


def test_the_clouds_and_their_reach() -> None:
    aws, gcp, azure = read(FULL).providers
    assert isinstance(aws, AwsSettings) and isinstance(gcp, GcpSettings) and isinstance(azure, AzureSettings)
    assert (aws.timeout, aws.accounts[0].profile, aws.endpoint) == (timedelta(seconds=20), "capacity", None)
    assert gcp.projects[0].end_settable
    assert (azure.subscriptions[0].regions, azure.sandbox) == (("eastus",), False)


def test_a_purchase_may_be_invisible_for_as_long_as_in_the_slowest_cloud() -> None:
    text = "[aws]\nvisibility_window = '7m'\n[[aws.account]]\nname = 'main'\nregions = ['us-east-1']\n"
    slower = "[gcp]\nvisibility_window = '20m'\n[[gcp.project]]\nproject = 'p'\nregions = ['us-central1']\n"
    assert read(text).policy.purchase.visibility_window == timedelta(minutes=7)
    assert read(text + slower).policy.purchase.visibility_window == timedelta(minutes=20)


def test_an_embedded_sandbox_gives_every_cloud_its_address() -> None:
    config = read(FULL + '[sandbox]\nworld = "world.json"\n')
    assert config.sandbox and config.sandbox.world == Path("/etc/broker/world.json")
    assert all(settings.sandbox and settings.endpoint is None for settings in config.providers)
    there = at_endpoints(config, {name: f"http://127.0.0.1:1/{name}" for name in ProviderName})
    assert [settings.endpoint for settings in there.providers] == [
        f"http://127.0.0.1:1/{name_of(settings)}" for settings in config.providers
    ]


def test_a_running_sandbox_must_be_on_this_machine() -> None:
    section = '[sandbox]\naws = "http://127.0.0.1:1"\ngcp = "http://localhost:2/"\nazure = "{}"\n'
    config = read(FULL + section.format("http://127.0.0.1:3"))
    assert [settings.endpoint for settings in config.providers] == [
        "http://127.0.0.1:1",
        "http://localhost:2",
        "http://127.0.0.1:3",
    ]
    first, *_ = problems(FULL + section.format("https://management.azure.com"))
    assert first.startswith("sandbox.azure: expected an address of this machine")


def test_every_mistake_is_reported_at_once_with_its_place() -> None:
    found = problems("""
mod = "act"
lock_timeout = 30
[[queue]]
name = "q"
comand = ["squeue"]
timezone = "Mars/Olympus"
[[queue]]
name = "q"
file = "a"
command = "squeue --json"
[[pool]]
name = "one"
gpu = "h10O"
min_gpus = -1
[[pool]]
name = "one"
gpu = []
[purchase]
lead = "24 parsecs"
[guards]
max_usd_per_hour = -3
[aws]
""")
    starts = [
        'mod: unknown key; did you mean "mode"?',
        'lock_timeout: has no unit (30); write "30s"',
        'queue[0].comand: unknown key; did you mean "command"?',
        'queue[0].timezone: does not know the time zone "Mars/Olympus"',
        'queue[1].command: expected a list such as ["squeue", "--json"]',
        'queue[1].name: "q" is the name of queue[0] already',
        'pool[0].gpu: does not know the GPU model "h10O"; did you mean "h100"?',
        "pool[0].min_gpus: is negative (-1)",
        'pool[1].name: "one" is the name of pool[0] already',
        "pool[1].gpu: is an empty list",
        'purchase.lead: does not know the unit "parsecs"',
        "guards.max_usd_per_hour: is negative (-3)",
        "aws: names no account",
    ]
    unseen = [start for start in starts if not any(problem.startswith(start) for problem in found)]
    assert not unseen, found
    assert len(found) == len(starts)
    assert all("\n" not in problem for problem in found)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("max_gpus = 64", "max_gpus = 4"),
        ("max_usd_per_month = 20000", "max_usd_per_month = 50"),
        ("entitlements = { h100 = 16 }", "entitlements = { h100 = 160 }"),
    ],
)
def test_limits_that_contradict_each_other(change: str, problem: str) -> None:
    assert any("more than" in line or "promised" in line for line in problems(FULL.replace(change, problem)))


@pytest.mark.parametrize(
    ("change", "to", "problem"),
    [
        ('provider = "aws"', 'provider = "aw"', 'pool[0].place[0].provider: does not know "aw"'),
        ('account = "main"', 'account = "mian"', 'pool[0].place[0].account: there is no aws account "mian"; did you'),
        ('region = "us-east-1"', 'region = "eu-west-1"', 'pool[0].place[0].region: "eu-west-1" is not among'),
        ('pools = ["h100"]', 'pools = ["h1000"]', 'queue[0].pools: there is no pool "h1000"; did you mean "h100"?'),
        ("entitlements = { h100", "entitlements = { b200", 'tenant[0].entitlements: there is no pool "b200"'),
        ("gpus_per_node = 8", "", "pool[0].own[0].gpus_per_node: is missing"),
        ('max_size = "10MiB"', "max_size = 10", "queue[0].max_size: expected a size"),
        ("weight = 2", "weight = nan", "tenant[0].weight: expected a number of 0 or more"),
        ("98.32", '"98,32"', "guards.max_usd_per_hour: expected an amount"),
        ("98.32", "inf", "guards.max_usd_per_hour: is not an amount"),
        ('"6h"', '"0h"', "purchase.default_runtime: is 0"),
        ("min_gpus = 8", "default = true", "pool[1].default: is set in pool[0] already"),
        ('[[aws.account]]', "[[aws.acount]]", 'aws.acount: unknown key; did you mean "account"?'),
        ('profile = "capacity"', 'Regions = []', 'aws.account[0].Regions: unknown key; did you mean "regions"?'),
    ],
)  # fmt: skip
def test_a_single_mistake(change: str, to: str, problem: str) -> None:
    assert change in FULL
    found = problems(FULL.replace(change, to))
    assert any(line.startswith(problem) for line in found), found


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text('mode = "observe"\nlock_timeout = "1m"\n')
    env = {"BROKER_LOCK_TIMEOUT": "2m", "BROKER_STATE": "there.db", "BROKER_MODE": ""}
    config = load(path, flags={"lock_timeout": "3m"}, env=env)
    origins = {setting.key: (setting.value, setting.origin) for setting in config.settings}
    assert config.lock_timeout == timedelta(minutes=3)
    assert origins["lock_timeout"] == ("3m", Origin.FLAG)
    assert origins["state"] == ("there.db", Origin.ENVIRONMENT)
    assert origins["mode"] == ("observe", Origin.FILE)
    assert origins["freeze_file"] == ("FREEZE", Origin.DEFAULT)
    assert origins["purchase.lead"] == ("1h", Origin.DEFAULT)
    assert (config.state, config.freeze_file) == (Path.cwd() / "there.db", tmp_path / "FREEZE")


def test_a_wrong_flag_is_named_as_it_was_typed() -> None:
    assert problems(FULL, lock_timeout="soon") == (
        '--lock-timeout: expected a duration such as "30m", "24h" or "90d", got "soon"',
    )


def test_a_flag_lowers_the_budget_and_never_raises_it() -> None:
    assert read(FULL, max_hourly="50").policy.guards.max_usd_per_hour == 50
    assert problems(FULL, max_hourly="99")[0].startswith("--max-hourly: 99 is more than guards.max_usd_per_hour 98.32")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "there is no configuration"),
        (b"\xff\xfea", "not UTF-8"),
        (b"mode = ", "not TOML"),
        (b"a\x00b", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, what: str) -> None:
    path = tmp_path / "broker.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=what) as caught:
        load(path)
    assert caught.value.next_step and "\n" not in str(caught.value)


def test_the_starters_are_valid_and_safe() -> None:
    real, sandbox = read(starter()), read(sandbox_starter())
    assert real.policy.mode is Mode.OBSERVE and not real.providers
    assert sandbox.sandbox and [name_of(settings) for settings in sandbox.providers] == list(ProviderName)
    uncommented = "\n".join(
        line.removeprefix("# ") if line.startswith(("# [[", "# name", "# provider", "# region", "# project", "# subscr",
                                                    "# resource", "# profile", "# weight", "# budget", "# entitle"))
        else line for line in starter().splitlines())  # fmt: skip
    assert len(read(uncommented).providers) == 3


def test_regions_of_the_sandbox_starter_can_be_chosen() -> None:
    aws = read(sandbox_starter(aws_regions=("eu-west-1",))).providers[0]
    assert isinstance(aws, AwsSettings) and aws.accounts[0].regions == ("eu-west-1",)


def test_the_documentation_names_every_key() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == reference(), (
        "write it anew: python -m broker.config.reference > docs/configuration.md"
    )


def test_lending_and_the_schedule() -> None:
    said = """
[[tenant]]
name = "vision"
entitlements = { h100 = 16 }
max_lent = { h100 = 4 }
[[tenant]]
name = "nlp"
lends = false
borrows = false
[schedule]
reclaim = "10m"
held_jobs_wait = true
"""
    config = read(f'forecast = "f.csv"\n{FULL.replace(TENANT, said)}')
    vision, nlp = config.policy.tenants
    assert (vision.lends, vision.borrows, vision.max_lent) == (True, True, (("h100", 4),))
    assert (nlp.lends, nlp.borrows) == (False, False)
    assert (config.schedule.reclaim, config.schedule.held_jobs_wait) == (timedelta(minutes=10), True)
    assert config.forecast is not None
    assert config.forecast.name == "f.csv"


def test_lending_that_contradicts_itself_is_named() -> None:
    wrong = TENANT + "lends = false\nmax_lent = { h100 = 17, h200 = 1 }\n"
    with pytest.raises(ConfigError) as refused:
        read(FULL.replace(TENANT, wrong))
    assert [line.partition(": ")[2].split(",")[0] for line in refused.value.problems] == [
        'there is no pool "h200"; did you mean "h100"?',
        "17 of h100 is more than the entitlement of 16",
        "1 of h200 is more than the entitlement of 0",
        "says how much is lent",
    ]
