"""Elastic jobs: what each is promised, how many GPUs it is to use, and what it has done on those that the queue shows.

A job counts as fast on more GPUs as `schedule.elastic_power` says, and only on those that it is seen to hold. If it is
really faster, nobody is later for it; if it is slower, those behind it in its tenant's queue may be.
"""

from typing import NamedTuple

from broker.model.job import Job
from broker.schedule.memory import Known, Order
from broker.sia import following
from broker.sia.columns import RUNNING, speed_of
from broker.sia.machine import Machine

RESIZES = frozenset({"expand", "shrink"})


class Span(NamedTuple):
    """`gpus` are promised. `most` is what it can use; 0: it is rigid."""

    gpus: int
    most: int = 0


def span_of(job: Job, entitlement: int, power: float, *, holds: int | None) -> Span:
    """It starts on what it asks for, or on its least where its tenant is promised less than it asks.

    `holds` is what one that runs already was promised or holds, and keeps.
    """
    least, most = job.min_gpus or job.gpus, max(job.max_gpus or 0, job.gpus)
    if holds is not None:
        return Span(holds, most if power > 0 and most > holds else 0)
    gpus = least if least <= entitlement < job.gpus else job.gpus
    grows = power > 0 and most > gpus
    return Span(gpus, most if grows or gpus < job.gpus else 0)


def service_s(machine: Machine, known: Known, shown: int, now: float) -> float:
    """Seconds of work at what is promised, of which none is done while it changes size."""
    record = machine.state.jobs[machine.known[known.name]]
    if record.state != RUNNING:
        return record.service
    used = min(shown, record.held)
    speed = speed_of(used, record.gpus, record.speed_power) if used >= record.gpus else used / record.gpus
    return record.service + max(0.0, now - record.since) * speed


def order(machine: Machine, known: Known, shown: int, now: float) -> Order | None:
    """What is to be done until the queue shows the job on the GPUs that it is to use."""
    goal = following.size(machine, known.name)
    if shown == goal:
        return None
    kind = "expand" if shown < goal else "shrink"
    if known.order is not None and known.order.kind == kind:
        return known.order
    return Order(kind=kind, at=now, reason=f"the queue shows it on {shown} GPUs instead of {goal}")
