"""`broker run` as cron starts it, whole: queue, three clouds, decision, guards. Killed while jobs and faults change."""

import random
from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from broker.apply.apply import apply
from broker.apply.boundary import Boundary, Checkpoint
from broker.apply.settle import settle
from broker.clock import FixedClock
from broker.commands import acting
from broker.commands.acting import Limits
from broker.commands.workplace import Workplace
from broker.config import load
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from state.store import Store
from tests.crash.clouds import CLOUDS
from tests.crash.process import Ended, in_process, killed_after
from tests.crash.truth import held_by_ledger, money_is_right, open_intents, sent_again

MOST_JOBS = 6
GPUS_A_JOB = 8

CONFIG = """
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
[[pool]]
name = "h100"
gpu = ["h100"]
default = true
[guards]
max_data_age = "3650d"
[purchase]
cooldown = "1m"
minimum_hold = "5m"
reacquire = "5m"
[[aws.account]]
name = "main"
regions = ["us-east-1"]
[[gcp.project]]
project = "research"
regions = ["us-central1"]
[[azure.subscription]]
subscription = "00000000-0000-0000-0000-000000000001"
regions = ["eastus"]
resource_group = "capacity"
"""


class Site:
    """A folder with a configuration and a queue, and the clouds."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.config = folder / "broker.toml"
        self.config.write_text(CONFIG.format(endpoint=sandbox.endpoint), encoding="utf-8")
        self.state = folder / "state.db"
        Store.create(self.state, now=self.now).close()
        self._queued: list[int] = []
        self._submitted = 0

    @property
    def now(self) -> datetime:
        return self.sandbox.clock.now()

    @property
    def held(self) -> int:
        """Instances, as they really are; each serves one job."""
        with self.sandbox.world.lock:
            self.sandbox.market.settle()
            return sum(h.count for h in self.sandbox.market.state.holdings if h.state.live)

    @property
    def jobs(self) -> int:
        return len(self._queued)

    def queue(self, jobs: int) -> None:
        """Jobs leave the end of the queue, or new ones join it."""
        del self._queued[jobs:]
        while len(self._queued) < jobs:
            self._submitted += 1
            self._queued.append(self._submitted)
        rows = [f"{job},vision,{self.now:%Y-%m-%dT%H:%M:%SZ},pending,{GPUS_A_JOB},h100,1,86400" for job in self._queued]
        header = "id,tenant,submit,state,gpus,gpu_type,nodes,time_limit_s"
        (self.folder / "queue.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")

    def run(self, checkpoint: Checkpoint) -> None:
        """In a process of its own: what is patched here is patched there alone."""
        vars(acting).update(
            carry_out=partial(apply, checkpoint=checkpoint), settle=partial(settle, checkpoint=checkpoint)
        )
        config = load(self.config, flags={}, env={})
        with ExitStack() as closing:
            place = Workplace(config, FixedClock(self.now), closing, read_only=False)
            acting.run(place, lambda event: None, Limits())

    def whole_run(self) -> None:
        ended = in_process(self.run)
        assert ended.exit == 0

    def get_well(self) -> None:
        with self.sandbox.world.lock:
            self.sandbox.world.faults.clear()
            self.sandbox.market.clear_capacity()


def trouble(site: Site, draw: random.Random) -> None:
    cloud = draw.choice(CLOUDS)
    kind = draw.choice((FaultKind.REPLY_LOST, FaultKind.RESET_BEFORE, FaultKind.HIDDEN, FaultKind.MALFORMED))
    operation = draw.choice((cloud.reserve, cloud.resize, cloud.release))
    site.sandbox.fault(kind, operation, cloud.name, delay_s=draw.uniform(0, 240), times=2)
    if draw.random() < 0.3:
        with site.sandbox.world.lock:
            site.sandbox.market.set_capacity(PoolRule(provider=cloud.name, capacity=draw.randint(0, 3)))


def killed(site: Site, draw: random.Random) -> Ended:
    if draw.random() < 0.5:
        return killed_after(
            site.run, first=Boundary.AFTER_INTENT, last=Boundary.BEFORE_APPLIED, wait_s=draw.uniform(0, 0.02)
        )
    inside = (Boundary.AFTER_INTENT, Boundary.AFTER_CALL, Boundary.BEFORE_OUTCOME, Boundary.BEFORE_SETTLED)
    return in_process(site.run, die_at=draw.choice(inside))


def live(site: Site, *, kills: int, seed: int) -> int:
    """A history of kills, each followed by less or more time; how many there were."""
    draw, seen = random.Random(seed), 0
    for _ in range(40 * kills):
        if seen >= kills:
            return seen
        site.queue(draw.randint(0, MOST_JOBS))
        site.get_well()
        trouble(site, draw)
        before = site.held
        seen += killed(site, draw).killed
        assert site.held <= max(before, site.jobs), "bought what was held or under way already"
        site.sandbox.advance(timedelta(seconds=draw.choice((1, 60, 200, 700, 4000))))
    raise AssertionError(f"only {seen} kills")


def settle_down(site: Site, jobs: int) -> None:
    site.get_well()
    site.queue(jobs)
    for _ in range(8):
        site.sandbox.advance(timedelta(minutes=12))
        site.whole_run()


def must_be_whole(site: Site) -> None:
    """What is wanted from here on is held once, and the books agree with the clouds."""
    for jobs in (4, 0):
        settle_down(site, jobs)
        assert site.held == jobs, "duplicate, leak or loss"
        assert open_intents(site.state) == 0
        assert sum(held_by_ledger(site.state).values()) == jobs
    assert [again for cloud in CLOUDS for again in sent_again(site.sandbox, cloud)] == []
    money_is_right(site.sandbox, site.state, site.now)


def survive(site: Site, *, kills: int, seed: int) -> int:
    seen = live(site, kills=kills, seed=seed)
    must_be_whole(site)
    return seen


def test_broker_run_is_killed_a_few_times(sandbox: Sandbox, tmp_path: Path) -> None:
    assert survive(Site(sandbox, tmp_path), kills=3, seed=3)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(6))
def test_broker_run_is_killed_all_the_time(seed: int, sandbox: Sandbox, tmp_path: Path, tally: Counter[str]) -> None:
    tally["kills"] += survive(Site(sandbox, tmp_path), kills=10, seed=seed)
