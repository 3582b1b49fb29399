"""A request for GPUs, in the one normal form that every queue is read into."""

from datetime import datetime
from enum import StrEnum

import msgspec


class JobState(StrEnum):
    """GONE: a queue no longer lists it; how it ended is not known."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    PREEMPTED = "preempted"
    GONE = "gone"
    UNKNOWN = "unknown"

    @property
    def live(self) -> bool:
        """Whether the job may still need GPUs."""
        return self in _LIVE


_LIVE = frozenset({JobState.PENDING, JobState.HELD, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN})


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Times are aware UTC; `gpus` is for the whole job; unknown is None, never "any" or 0.

    `end` is set only in terminal states. `gpus_per_node` and `nodes` are None where the source does not say;
    a job with neither fits on any set of nodes in one zone. `min_gpus` and `max_gpus` differ from `gpus` only for
    elastic jobs. `gang` means all or nothing at one time. `node_names` says where a running job runs. `submit` is of
    the first attempt where the source knows it; `requeued` is when a later one was put back into the queue. `uid` is
    what the source calls this attempt for good, where ids may come again (Slurm's SLUID).
    No value of a job can lead back to it, so the cycle collector leaves jobs out: there may be a million of them.
    """

    id: str
    tenant: str
    submit: datetime
    state: JobState
    gpus: int
    attempt: int = 1
    cluster: str = ""
    user: str | None = None
    name: str | None = None
    queue: str | None = None
    requeued: datetime | None = None
    eligible: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    min_gpus: int | None = None
    max_gpus: int | None = None
    gpu_model: str | None = None
    gpus_per_node: int | None = None
    nodes: int | None = None
    time_limit_s: int | None = None
    time_min_s: int | None = None
    priority: int = 0
    depends_on: tuple[str, ...] = ()
    not_before: datetime | None = None
    deadline: datetime | None = None
    gang: bool = True
    preemptible: bool = False
    node_names: tuple[str, ...] = ()
    constraint: str | None = None
    uid: str | None = None
    source: str = ""
    raw_ref: str = ""
