"""A folder with a configuration, a queue and a state, and the broker's commands run on it in this process."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from broker.apply.apply import ApplyResult, apply
from broker.apply.boundary import Boundary
from broker.apply.settle import Settled, settle
from broker.commands import acting, care, planning
from broker.commands.acting import Limits
from broker.commands.workplace import Workplace
from broker.config import load
from broker.errors import BrokerError, Exit
from broker.model.place import ProviderName
from broker.model.plan import Plan
from broker.model.request import ResizeRequest
from providers.base import Provider
from providers.connect import connect
from providers.sandbox.local import Sandbox
from state.store import Store
from state.upkeep import backup
from tests.crash.clouds import CLOUDS

GPUS_A_JOB = 8
MAX_NEW = 4
MAX_RELEASED = 3
MAX_USD_PER_HOUR = 600
MAX_NODES = 9
CONFIG = f"""
mode = "act"
state = "state.db"
prices = "prices.csv"
freeze_file = "FREEZE"
lock_timeout = "1s"
[sandbox]
aws = "{{endpoint}}"
gcp = "{{endpoint}}"
azure = "{{endpoint}}"
[[queue]]
name = "queue"
file = "queue.csv"
max_age = "20m"
[[pool]]
name = "h100"
gpu = ["h100"]
default = true
max_gpus = {MAX_NODES * GPUS_A_JOB}
machine_types = ["p5.48xlarge", "a3-highgpu-8g", "Standard_ND96isr_H100_v5"]
[guards]
max_new_instances = {MAX_NEW}
max_released_instances = {MAX_RELEASED}
max_usd_per_hour = {MAX_USD_PER_HOUR}
[purchase]
cooldown = "10m"
minimum_hold = "30m"
reacquire = "30m"
release_grace = "5m"
[aws]
read_attempts = 1
[[aws.account]]
name = "main"
regions = ["us-east-1"]
[gcp]
read_attempts = 1
[[gcp.project]]
project = "research"
regions = ["us-central1"]
[azure]
read_attempts = 1
[[azure.subscription]]
subscription = "00000000-0000-0000-0000-000000000001"
regions = ["eastus"]
resource_group = "capacity"
"""
COLUMNS = "id,tenant,submit,start,state,gpus,gpu_type,nodes,time_limit_s"
PRICE_COLUMNS = "provider,region,machine_type,usd_per_hour,as_of"


class Killed(BaseException):
    """The process died here: nothing catches it, and no boundary is passed after it."""


class QueueFile(StrEnum):
    FRESH = "fresh"
    MISSING = "missing"
    CUT_OFF = "cut off"
    STALE = "not written any more"
    GARBAGE = "an error message instead"
    EMPTY = "empty"


class Job(msgspec.Struct):
    """`instance` is what it runs on; "" while it waits."""

    id: int
    submitted: datetime
    started: datetime | None = None
    instance: str = ""


class Ran(msgspec.Struct, kw_only=True):
    """How a command ended: `decided` are plans that were carried out, each with how many effects came before it."""

    what: str
    code: int | None = None
    error: str = ""
    decided: list[tuple[Plan, int]] = []
    events: list[str] = []

    def __str__(self) -> str:
        return f"{self.what}: {'killed' if self.code is None else self.code} {self.error}".strip()


class SkewedClock:
    """The sandbox's time, as a machine with a wrong clock tells it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.off = timedelta(0)
        self._sandbox = sandbox

    def now(self) -> datetime:
        return self._sandbox.clock.now() + self.off


class Watched:
    """A provider that counts how often each purchase was sent."""

    def __init__(self, provider: Provider, sent: Counter[str]) -> None:
        self._provider = provider
        self._sent = sent

        self._offers: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def offers(self, *which: Any) -> Any:
        """What is sold does not change here; asking for it takes most of a run."""
        if which not in self._offers:
            self._offers[which] = self._provider.offers(*which)
        return self._offers[which]

    def reserve(self, request: Any) -> Any:
        self._sent[request.key] += 1
        return self._provider.reserve(request)

    def resize(self, request: ResizeRequest) -> Any:
        self._sent[request.key] += request.grows
        return self._provider.resize(request)


class Site:
    """`lineage` is fixed, so that the same history has the same keys."""

    def __init__(self, sandbox: Sandbox, folder: Path, lineage: str) -> None:
        self.sandbox, self.folder, self.lineage = sandbox, folder, lineage
        self.clock = SkewedClock(sandbox)
        self.sent: Counter[str] = Counter()
        self.consoles: dict[ProviderName, Provider] = {
            cloud.name: connect(cloud.settings(sandbox.endpoint), self.clock) for cloud in CLOUDS
        }
        self.providers = {name: Watched(provider, self.sent) for name, provider in self.consoles.items()}
        self.state, self.plan = folder / "state.db", folder / "plan.json"
        self.file = QueueFile.FRESH
        self._written = self.now
        self.jobs: list[Job] = []
        self.told_jobs = 0
        self.prices: dict[tuple[str, str, str], str] = {}
        self.prices_readable = True
        self._path = folder / "broker.toml"
        self._path.write_text(CONFIG.format(endpoint=sandbox.endpoint), encoding="utf-8")
        self._config = load(self._path, flags={}, env={})
        Store.restore(self.state, now=self.now, lineage=lineage).close()
        self.write_prices()

    @property
    def now(self) -> datetime:
        return self.sandbox.clock.now()

    @property
    def frozen(self) -> bool:
        return (self.folder / "FREEZE").exists()

    def freeze(self, yes: bool) -> None:
        (self.folder / "FREEZE").touch() if yes else (self.folder / "FREEZE").unlink(missing_ok=True)

    # -- files

    def write_queue(self) -> None:
        """As whatever exports the queue does it every minute, unless that is broken."""
        target = self.folder / "queue.csv"
        if self.file is QueueFile.STALE and target.exists():
            self._date(target)
            return
        self._written, self.told_jobs = self.now, len(self.jobs)
        whole = "\n".join([COLUMNS, *(self._row(job) for job in self.jobs), ""])
        text = {QueueFile.CUT_OFF: whole[:-4], QueueFile.GARBAGE: "slurm_load_jobs error\n", QueueFile.EMPTY: ""}
        target.write_text(text.get(self.file, whole), encoding="utf-8")
        self._date(target)
        if self.file is QueueFile.MISSING:
            target.unlink()

    def _date(self, file: Path) -> None:
        """Files are dated by this machine's clock: as long before its now as the site's time has gone on."""
        os.utime(file, (time.time() - (self.now - self._written).total_seconds(),) * 2)

    def _row(self, job: Job) -> str:
        started = f"{job.started:%Y-%m-%dT%H:%M:%SZ}" if job.started else ""
        state = "running" if job.started else "pending"
        return f"{job.id},vision,{job.submitted:%Y-%m-%dT%H:%M:%SZ},{started},{state},{GPUS_A_JOB},h100,1,864000"

    @property
    def queue_known(self) -> bool:
        """A file that is not written any more is believed until it is too old."""
        if self.file is not QueueFile.STALE:
            return self.file is QueueFile.FRESH
        return self.now - self._written <= timedelta(minutes=19)

    def write_prices(self) -> None:
        rows = [f"{','.join(which)},{usd},2026-03-01" for which, usd in self.prices.items()]
        text = "\n".join([PRICE_COLUMNS, *rows, ""]) if self.prices_readable else "provider;region\n\x00"
        (self.folder / "prices.csv").write_text(text, encoding="utf-8")

    # -- commands

    def run(self, die: tuple[Boundary, int] | None = None) -> Ran:
        return self._command("run", die, lambda place, tell: acting.run(place, tell, Limits()))

    def save_plan(self) -> Ran:
        def saved(place: Workplace, tell: Any) -> Exit:
            planning.plan(place, planning.EVERYTHING, out=self.plan)
            return Exit.OK

        return self._command("plan --out", None, saved, read_only=True)

    def apply_plan(self, die: tuple[Boundary, int] | None = None) -> Ran:
        def applied(place: Workplace, tell: Any) -> Exit:
            return acting.apply_file(place, tell, lambda plan, made: True, Limits(), self.plan)

        return self._command("apply plan.json", die, applied)

    def release(self, ids: tuple[str, ...] = (), die: tuple[Boundary, int] | None = None, *, force: str = "") -> Ran:
        limits = Limits(force=frozenset(force.split()))

        def released(place: Workplace, tell: Any) -> Exit:
            return acting.release(place, tell, lambda plan, made: True, limits, ids, all_ours=not ids)

        return self._command(f"release {' '.join(ids) or '--all-ours'}", die, released)

    def adopt(self) -> Ran:
        def adopted(place: Workplace, tell: Any) -> Exit:
            return care.exit_code(care.adopt_all(place, self.lineage))

        return self._command("state adopt", None, adopted)

    def back_up(self) -> None:
        backup(self.state, self.folder / "copy.db")

    def put_back(self) -> None:
        """As a person does it: with the copy in the file's place, and what SQLite kept beside it gone."""
        self.lose()
        self.state.write_bytes((self.folder / "copy.db").read_bytes())

    def lose(self) -> None:
        for beside in ("", "-wal", "-shm"):
            self.state.with_name(self.state.name + beside).unlink(missing_ok=True)

    def store(self) -> Store:
        return Store.open(self.state, read_only=True)

    def _command(
        self,
        what: str,
        die: tuple[Boundary, int] | None,
        body: Callable[[Workplace, Any], Exit],
        *,
        read_only: bool = False,
    ) -> Ran:
        self.write_queue()
        ran = Ran(what=what)
        with self._instrumented(ran, die), ExitStack() as closing:
            place = Workplace(self._config, self.clock, closing, read_only=read_only)
            vars(place)["providers"] = self.providers
            with contextlib.suppress(Killed):
                try:
                    ran.code = body(place, lambda event: ran.events.append(str(event)))
                except BrokerError as error:
                    ran.code, ran.error = error.exit, f"{type(error).__name__}: {error}"
        return ran

    @contextlib.contextmanager
    def _instrumented(self, ran: Ran, die: tuple[Boundary, int] | None) -> Iterator[None]:
        """One action at a time, so that a history is the same each time; every decision noted; death where asked."""
        checkpoint = _Deadly(die)

        def carried_out(plan: Plan, *rest: Any, **more: Any) -> ApplyResult:
            ran.decided.append((plan, len(self.sandbox.record.effects)))
            return apply(plan, *rest, **more, checkpoint=checkpoint, parallel=1)

        def settled(*rest: Any, **more: Any) -> tuple[Settled, ...]:
            return settle(*rest, **more, checkpoint=checkpoint, parallel=1)

        with patch.object(acting, "carry_out", carried_out), patch.object(acting, "settle", settled):
            yield


class _Deadly:
    """Dies the nth time that a boundary is passed; what has died passes nothing any more."""

    def __init__(self, die: tuple[Boundary, int] | None) -> None:
        self._at = die[0] if die else None
        self._left = die[1] if die else 0
        self._dead = False

    def __call__(self, boundary: Boundary) -> None:
        self._left -= boundary is self._at
        self._dead |= self._at is not None and boundary is self._at and self._left <= 0
        if self._dead:
            raise Killed
