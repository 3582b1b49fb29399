"""`broker plan` end to end against the built-in clouds over the wire, at the size of a large site."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.clock import FixedClock
from broker.config import load, name_of
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReserveRequest
from broker.observe.observe import observe
from providers.base import Provider
from providers.connect import connect
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from providers.sandbox.terms import QuotaRule
from state.store import Store
from tests.measures import Take

pytestmark = pytest.mark.bench
ROOT = Path(__file__).parents[2]
JOBS, PLENTY = 10_000, 1_000_000
POOLS = [(f"pool{number}", gpu) for number, gpu in enumerate(["l4", "a100-80gb", "h100", "a10g"] * 3)]
HEAD = """\
mode = "act"
state = "state.db"
[sandbox]
aws = "{endpoint}"
gcp = "{endpoint}"
azure = "{endpoint}"
[[queue]]
name = "queue"
file = "queue.csv"
max_age = "3650d"
[guards]
max_data_age = "3650d"
[[aws.account]]
name = "main"
regions = ["us-east-1"]
[[gcp.project]]
project = "research"
regions = ["us-central1"]
[[azure.subscription]]
subscription = "00000000-0000-0000-0000-000000000000"
regions = ["eastus"]
resource_group = "gpu-capacity"
"""
POOL = '[[pool]]\nname = "{name}"\ngpu = ["{gpu}"]\nqueues = ["{name}"]\n'
BOUGHT = [
    (Place(Scope(ProviderName.AWS, "main", "us-east-1"), "us-east-1a"), "g6.xlarge", 200),
    (Place(Scope(ProviderName.GCP, "research", "us-central1"), "us-central1-a"), "g2-standard-8", 150),
    (
        Place(Scope(ProviderName.AZURE, "00000000-0000-0000-0000-000000000000", "eastus"), ""),
        "Standard_NC24ads_A100_v4",
        150,
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Path]]:
    """10,000 queued jobs, 12 pools, 500 reservations of ours on three clouds."""
    folder = tmp_path_factory.mktemp("site")
    with Sandbox(seed=1) as sandbox:
        (folder / "broker.toml").write_text(
            HEAD.format(endpoint=sandbox.endpoint) + "".join(POOL.format(name=name, gpu=gpu) for name, gpu in POOLS)
        )
        (folder / "queue.csv").write_text("\n".join(_queue(sandbox)))
        with Store.create(folder / "state.db", now=sandbox.clock.now()) as store:
            _buy(sandbox, folder / "broker.toml", store.lineage)
        yield sandbox, folder / "broker.toml"


def _queue(sandbox: Sandbox) -> Iterator[str]:
    submit = f"{sandbox.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    yield "id,tenant,queue,submit,state,gpus,gpu_type,nodes,time_limit_s"
    for number in range(JOBS):
        name, gpu = POOLS[number % len(POOLS)]
        nodes = 1 + number % 3
        size = f"{nodes * (1 + number % 2)},{gpu},{nodes},{3600 * (1 + number % 5)}"
        yield f"{number},team{number % 7},{name},{submit},pending,{size}"


def _buy(sandbox: Sandbox, config: Path, lineage: str) -> None:
    sandbox.market.set_capacity(PoolRule(capacity=PLENTY))
    for provider, quota in {(t.provider, t.quota) for t in sandbox.world.catalogue.machine_types}:
        sandbox.market.set_quota(QuotaRule(provider=provider, quota=quota, limit=PLENTY))
    clouds = _clouds(sandbox, config)
    for place, machine_type, count in BOUGHT:
        for number in range(count):
            key = f"{place.scope.provider}{number:06}"
            clouds[place.scope.provider].reserve(
                ReserveRequest(key=key, lineage=lineage, place=place, machine_type=machine_type, count=1)
            )


def _clouds(sandbox: Sandbox, config: Path) -> dict[ProviderName, Provider]:
    clock = FixedClock(sandbox.clock.now())
    return {name_of(each): connect(each, clock) for each in load(config).providers}


def test_plan_of_a_large_site(site: tuple[Sandbox, Path], take: Take) -> None:
    command = [sys.executable, "-m", "broker", "plan", "--json", "-c", str(site[1])]
    with (
        (site[1].parent / "plan.json").open("w") as out,
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=out) as child,
    ):
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    document = (site[1].parent / "plan.json").read_text()
    assert '"queued_jobs": 10000' in document
    assert '"reservations": 500' in document
    size = "10,000 queued jobs, 12 pools, 500 reservations, 3 clouds"
    take(f"broker plan, {size}", usage.ru_utime + usage.ru_stime, 8, "s CPU")
    take(f"broker plan, {size}", usage.ru_maxrss / 1024, 500, "MB")


def test_listing_takes_as_long_as_the_slowest_cloud(site: tuple[Sandbox, Path], take: Take) -> None:
    """Each cloud's listing is held up by a second: together they take one second more, not three."""
    sandbox, config = site
    loaded, clouds, clock = load(config), _clouds(sandbox, config), FixedClock(sandbox.clock.now())
    operations = {
        ProviderName.AWS: "DescribeCapacityReservations",
        ProviderName.GCP: "reservations.*ist",
        ProviderName.AZURE: "capacityReservationGroups.listBySubscription",
    }
    with Store.open(config.parent / "state.db", read_only=True) as store:

        def seconds() -> float:
            began = time.perf_counter()
            snapshot = observe(loaded, store, clouds, clock)
            assert sum(len(view.reservations) for view in snapshot.scopes) == 500
            return time.perf_counter() - began

        seconds()
        plain = min(seconds() for _ in range(2))
        for provider, operation in operations.items():
            sandbox.fault(FaultKind.DELAY, operation, provider, delay_s=1.0)
        held_up = seconds()
        assert {call.provider for call in sandbox.record.calls if call.fault} == set(ProviderName)
    take("three clouds, each held up by 1 s: what it adds", held_up - plain, 1.6, "s")
