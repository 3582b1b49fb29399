"""Demand in the form that packing understands, and the door through which a forecast enters."""

from datetime import datetime
from enum import IntEnum
from typing import Protocol

import msgspec

from broker.model.job import Job
from broker.model.policy import Policy
from broker.model.snapshot import Snapshot


class Standing(IntEnum):
    """What a need may do to supply, in the order in which needs are placed."""

    RUNNING = 0
    """Occupies what is in use already. It runs, so nothing is bought for it."""

    WAITING = 1
    """Is served from what is free, else bought for."""

    DOUBTFUL = 2
    """May need capacity (state not known): holds on to what is free, and nothing is bought for it."""


class Need(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One indivisible demand: `nodes` nodes with `gpus_per_node` each, at one time, in one zone of one cloud.

    `gpus_per_node` 0 means that any nodes of one zone will do that hold `gpus` together. `model` None takes any GPU
    of the pool. `own` is the entry of the pool's own nodes on which it runs. `job` "" is demand without a job yet.
    """

    pool: str
    standing: Standing
    begins: datetime
    ends: datetime
    gpus: int
    nodes: int
    gpus_per_node: int
    tenant: str
    job: str = ""
    model: str | None = None
    preemptible: bool = False
    priority: int = 0
    submit: datetime
    own: int | None = None


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """All needs, and the live jobs that no pool serves."""

    needs: tuple[Need, ...]
    unserved: tuple[Job, ...] = ()


class DemandModel(Protocol):
    """Says what will be needed and when. Pure: the same snapshot gives the same demand."""

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Demand: ...
