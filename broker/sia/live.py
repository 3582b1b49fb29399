"""One live step: the observed queue in, grants, loans and reclaims out.

The queue shows jobs that wait and jobs that run, in any order; it is told to the machine as the events that led there.
Jobs that ended before are not in it. So the shadow may start jobs earlier than the static schedule would have done,
which errs on the side of the owed; a machine that is saved and fed from step to step has no such gap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.model.job import Job, JobState
from broker.sia.machine import Decision, Machine, Request, Terms
from broker.sia.state import Rules

NO_FORECAST = (0.0, float("inf"))
_RUNNING = frozenset({JobState.RUNNING, JobState.SUSPENDED})
Forecasts = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`left_out`: (job, reason) of live jobs that are not scheduled."""

    machine: Machine
    decisions: tuple[Decision, ...]
    left_out: tuple[tuple[str, str], ...]


def schedule(
    jobs: Iterable[Job],
    terms: Mapping[str, Terms],
    capacity: int,
    now_s: float,
    rules: Rules,
    hold: int = 0,
    forecasts: Forecasts | None = None,
) -> Step:
    """Decide for the queue as it is. `forecasts`: job id -> (10% quantile, typical duration), in seconds."""
    machine = Machine.new(dict(terms), capacity, rules)
    machine.hold_back(hold)
    live, left_out = _usable(jobs, terms, now_s)
    known = forecasts or {}
    for at, order, job in sorted(_events(live, now_s), key=lambda event: event[:2]):
        if order % 2:
            machine.start(at, _name(job))
        else:
            machine.submit(at, _request(job, known.get(job.id, NO_FORECAST)))
    return Step(machine=machine, decisions=tuple(machine.tick(now_s)), left_out=tuple(left_out))


def _usable(jobs: Iterable[Job], terms: Mapping[str, Terms], now_s: float) -> tuple[list[Job], list[tuple[str, str]]]:
    kept: dict[str, Job] = {}
    left_out = []
    for job in jobs:
        reason = _unusable(job, terms, now_s)
        if reason:
            left_out.append((_name(job), reason))
        elif _name(job) in kept:
            left_out.append((_name(job), "listed twice"))
        else:
            kept[_name(job)] = job
    return list(kept.values()), left_out


def _unusable(job: Job, terms: Mapping[str, Terms], now_s: float) -> str:
    if not job.state.live:
        return f"is {job.state.value}"
    if job.state is JobState.HELD:
        return "is held"
    if job.tenant not in terms:
        return f"tenant {job.tenant!r} has no entitlement"
    if job.gpus <= 0:
        return "asks for no GPUs"
    if job.not_before is not None and job.not_before.timestamp() > now_s:
        return "begins later"
    return ""


def _events(jobs: list[Job], now_s: float) -> Iterable[tuple[float, int, Job]]:
    """Submits are even, starts odd, so that events of one instant keep the queue's order, submit before start."""
    for order, job in enumerate(sorted(jobs, key=lambda job: (job.submit, job.id))):
        submit = min(now_s, (job.eligible or job.submit).timestamp())
        yield submit, 2 * order, job
        if job.state in _RUNNING:
            start = now_s if job.start is None else job.start.timestamp()
            yield max(submit, min(now_s, start)), 2 * order + 1, job


def _name(job: Job) -> str:
    return job.id if job.attempt == 1 else f"{job.id}#{job.attempt}"


def _request(job: Job, forecast: tuple[float, float]) -> Request:
    quick_s, typical_s = forecast
    return Request(
        id=_name(job),
        tenant=job.tenant,
        gpus=job.gpus,
        most=job.max_gpus or 0,
        preemptible=job.preemptible,
        quick_s=quick_s,
        typical_s=typical_s,
    )
