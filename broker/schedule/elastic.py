"""Elastic jobs: what each is promised, how many GPUs it is to use, and what it has done on those that the queue shows.

A job counts as fast on more GPUs as `schedule.elastic_power` says, and only on those that it is seen to hold. If it is
really faster, nobody is later for it; if it is slower, those behind it in its tenant's queue may be.
"""

from typing import NamedTuple

from broker.model.job import Job
from broker.schedule.memory import Known, Order
from broker.sia import following
from broker.sia.columns import RESIZING, RUNNING, speed_of
from broker.sia.columns import Job as Record
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


def service_s(machine: Machine, known: Known, shown: int, span: tuple[float, float]) -> float:
    """Seconds of work at what is promised, at the end of `span`, which began at the last look.

    Nothing counts while it is to give slots back and shows them still, nor for a reclaim time after it was seen to have
    grown. A change of size that the allocator did not reckon with costs a restore too: a growth that was followed late.
    """
    last, now = span
    record, goal = machine.state.jobs[machine.known[known.name]], following.size(machine, known.name)
    if shown > goal:
        return record.service
    changed = known.shown > 0 and shown != known.shown
    reckoned = record.state == RESIZING and (shown > known.shown or following.shrinks(machine, known.name))
    lost = record.restore_s if changed and not reckoned else 0.0
    since = record.since if record.state == RUNNING else last if shown < goal else now
    return max(0.0, record.service - lost + max(0.0, now - max(since, known.rests)) * _speed(record, shown))


def _speed(record: Record, shown: int) -> float:
    used = min(shown, record.target if record.state == RESIZING else record.held)
    return speed_of(used, record.gpus, record.speed_power) if used >= record.gpus else used / record.gpus


def resize(machine: Machine, known: Known, shown: int, now: float) -> None:
    """What the queue shows of a change of size: slots given back are free, and growing stops it when it is seen."""
    goal, record = following.size(machine, known.name), machine.state.jobs[machine.known[known.name]]
    grew = shown > known.shown > 0
    if grew:
        known.rests = now + record.reclaim_s
    following.holds_all(machine, known.name, shown)
    if following.shrinks(machine, known.name):
        if shown <= goal:
            following.gives_back_at(machine, known.name, now)
    elif record.state == RESIZING and (grew or shown < goal):
        following.gives_back_at(machine, known.name, now + record.reclaim_s)


def order(machine: Machine, known: Known, shown: int, now: float) -> Order | None:
    """What is to be done until the queue shows the job on the GPUs that it is to use."""
    goal = following.size(machine, known.name)
    if shown == goal:
        return None
    kinds = ("expand",) if shown < goal else ("shrink", "restart")
    if known.order is not None and known.order.kind in kinds:
        return known.order
    return Order(kind=kinds[0], at=now, reason=f"the queue shows it on {shown} GPUs instead of {goal}")
