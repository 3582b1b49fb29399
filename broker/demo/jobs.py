"""The jobs of the demo's day, and a plain first-come scheduler that starts them on what the broker holds."""

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import msgspec

from providers.sandbox.holdings import Holding, HoldingState, Instance
from providers.sandbox.local import Sandbox

MORNING = datetime(2026, 3, 4, 8, tzinfo=UTC)
_GPUS = {"p5.48xlarge": ("h100", 8), "a3-highgpu-8g": ("h100", 8), "Standard_NC96ads_A100_v4": ("a100-80gb", 4)}


def at(hours: float) -> datetime:
    return MORNING + timedelta(hours=hours)


class Job(msgspec.Struct, kw_only=True):
    """`begins` is hours after the morning at which it is submitted; `hours` how long it runs."""

    id: str
    tenant: str
    gpus: int
    model: str
    nodes: int
    begins: float
    hours: float
    start: datetime | None = None
    instances: list[Instance] = []

    @property
    def submit(self) -> datetime:
        return at(self.begins)

    @property
    def end(self) -> datetime | None:
        return self.start + timedelta(hours=self.hours) if self.start else None


def day() -> list[Job]:
    """Three tenants want more at once than any of them has alone."""
    return [
        Job(id="1001", tenant="vision", gpus=16, model="h100", nodes=2, begins=-0.5, hours=9),
        Job(id="1002", tenant="vision", gpus=8, model="h100", nodes=1, begins=-0.4, hours=8),
        Job(id="1003", tenant="nlp", gpus=8, model="h100", nodes=1, begins=-0.3, hours=7),
        Job(id="1004", tenant="research", gpus=4, model="a100-80gb", nodes=1, begins=-0.2, hours=9),
        Job(id="1005", tenant="nlp", gpus=16, model="h100", nodes=2, begins=2, hours=8),
        Job(id="1006", tenant="vision", gpus=8, model="h100", nodes=1, begins=4, hours=14),
        Job(id="1007", tenant="nlp", gpus=8, model="h100", nodes=1, begins=6, hours=5),
        Job(id="1008", tenant="research", gpus=8, model="h100", nodes=1, begins=9.5, hours=6),
        Job(id="1009", tenant="vision", gpus=16, model="h100", nodes=2, begins=11, hours=7),
        Job(id="1010", tenant="vision", gpus=8, model="h100", nodes=1, begins=22, hours=12),
        Job(id="1011", tenant="research", gpus=4, model="a100-80gb", nodes=1, begins=23.9, hours=3),
    ]


class Cluster:
    """The jobs as the queue shows them and as the clouds' instances run them."""

    def __init__(self, sandbox: Sandbox, queue: Path) -> None:
        self._sandbox = sandbox
        self._queue = queue
        self._jobs = day()
        self._launched = 0

    def step(self) -> None:
        """End what is over, start what fits, write the queue as it stands."""
        now = self._sandbox.clock.now()
        with self._sandbox.world.lock:
            self._sandbox.market.settle()
            for job in self._jobs:
                if job.end and job.end <= now:
                    self._stop(job)
            for job in self._jobs:
                if job.start is None and job.submit <= now:
                    self._start(job, now)
        self._write(now)

    def waiting(self) -> list[Job]:
        now = self._sandbox.clock.now()
        return [job for job in self._jobs if job.start is None and job.submit <= now]

    def _stop(self, job: Job) -> None:
        for instance in job.instances:
            self._sandbox.market.terminate(instance)
        job.instances = []

    def _start(self, job: Job, now: datetime) -> None:
        for holding in self._sandbox.market.state.holdings:
            if self._fits(job, holding):
                job.instances = [self._launch(holding, job) for _ in range(job.nodes)]
                job.start = now
                return

    def _fits(self, job: Job, holding: Holding) -> bool:
        model, gpus = _GPUS.get(holding.machine_type, ("", 0))
        free = holding.count - len(self._sandbox.market.consumers(holding))
        active = holding.state is HoldingState.ACTIVE
        return active and model == job.model and gpus * job.nodes >= job.gpus and free >= job.nodes

    def _launch(self, holding: Holding, job: Job) -> Instance:
        self._launched += 1
        name = f"job-{job.id}-{self._launched}"
        return self._sandbox.market.launch(
            holding.pool,
            holding.account,
            id=f"i-{self._launched:017x}",
            holding=holding,
            name=name,
            details=_details(holding, name),
        )

    def _write(self, now: datetime) -> None:
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "tenant", "submit", "start", "state", "gpus", "gpu_type", "nodes", "time_limit_s"])
        for job in self._jobs:
            if job.submit <= now and not (job.end and job.end <= now):
                writer.writerow(_row(job))
        self._queue.write_text(out.getvalue(), encoding="utf-8")


def _row(job: Job) -> list[str]:
    start = job.start.isoformat() if job.start else ""
    state = "running" if job.start else "pending"
    size = [str(job.gpus), job.model, str(job.nodes), str(int(job.hours * 3600))]
    return [job.id, job.tenant, job.submit.isoformat(), start, state, *size]


def _details(holding: Holding, name: str) -> dict[str, str]:
    """What Azure's face shows of a VM: its own id and that of the group it is in."""
    machine = f"/subscriptions/{holding.account}/resourceGroups/gpu-capacity/providers/Microsoft.Compute"
    return {
        "id": f"{machine}/virtualMachines/{name}",
        "group": holding.id.partition("/capacityReservations/")[0],
    }
