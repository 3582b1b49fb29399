"""Microsoft's Philly `cluster_job_log`: a JSON array of jobs, each with its attempts one after the other.

What surprised us: GPUs are only known from where an attempt ran (`detail[].gpus`), so that a job without attempts asks
for nobody knows how many. `status` is how the last attempt ended. Times are local and carry no zone.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from broker.model.job import Job, JobState
from broker.queues import words
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable, Unwanted, latest
from broker.queues.times import moment

_JOBS = msgspec.json.Decoder(list[msgspec.Raw])


class _Attempt(msgspec.Struct):
    start_time: Any = None
    end_time: Any = None
    detail: list[Any] | None = None


class _Job(msgspec.Struct):
    jobid: str
    submitted_time: Any
    vc: str = ""
    user: str | None = None
    status: str = ""
    attempts: list[_Attempt] | None = None


_JOB = msgspec.json.Decoder(_Job)


def suits(head: str) -> str:
    """Why this looks like a Philly log, "" if it does not."""
    own = head.startswith("[") and '"jobid"' in head
    return 'it is a JSON array of objects with "jobid", as Philly has' if own else ""


def read(text: str, context: Context) -> Parsed:
    """Each attempt is a row, and so is a job without any. Raises Unreadable."""
    try:
        raws = _JOBS.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"is not complete JSON ({error}): cut off, or still being written") from None
    parsed = Parsed()
    parsed.jobs = latest(list(_jobs(raws, context, parsed)), parsed)
    return parsed


def _jobs(raws: list[msgspec.Raw], context: Context, parsed: Parsed) -> Iterator[Job]:
    for index, raw in enumerate(raws):
        try:
            found = _JOB.decode(raw)
            if not found.attempts:
                raise Unwanted("never ran, so that its GPUs are not known")
        except (msgspec.DecodeError, RecursionError) as error:
            parsed.quarantine(f"[{index}]", Unfit("is not a job with jobid, submitted_time and attempts", error))
            continue
        except Unwanted as unwanted:
            parsed.drop(unwanted)
            continue
        for number in range(1, len(found.attempts) + 1):
            try:
                yield _attempt(found, number, context, f"{context.ref}:[{index}]")
            except Unfit as unfit:
                parsed.quarantine(f"[{index}]", unfit)
            except Unwanted as unwanted:
                parsed.drop(unwanted)


def _attempt(found: _Job, number: int, context: Context, ref: str) -> Job:
    """Raises Unfit or Unwanted."""
    attempts = found.attempts or []
    attempt = attempts[number - 1]
    submit = moment(found.submitted_time, context.zone)
    start, end = moment(attempt.start_time, context.zone), moment(attempt.end_time, context.zone)
    if not found.jobid or submit is None:
        raise Unfit("has no id or no submitted_time", found.jobid)
    if start and end and end < start:
        raise Unfit("ends before it starts", found.jobid)
    gpus, nodes = _places(attempt)
    if not gpus:
        raise Unwanted("asks for no GPU")
    state = _state(found.status, end is not None) if number == len(attempts) else JobState.FAILED
    return Job(
        id=found.jobid,
        attempt=number,
        cluster=context.cluster,
        tenant=found.vc or context.fallback_tenant,
        user=found.user or None,
        submit=submit,
        requeued=(start or submit) if number > 1 else None,
        start=start,
        end=None if state.live else end,
        state=state,
        gpus=gpus,
        gpus_per_node=gpus // len(nodes) if nodes and gpus % len(nodes) == 0 else None,
        nodes=len(nodes) or None,
        source=context.source,
        raw_ref=ref,
    )


def _state(status: str, ended: bool) -> JobState:
    """Where nothing is written, an end says that it is over."""
    if status:
        return words.state(status)
    return JobState.GONE if ended else JobState.UNKNOWN


def _places(attempt: _Attempt) -> tuple[int, list[str]]:
    """(GPUs, names of the nodes). Raises Unfit."""
    gpus, nodes = 0, list[str]()
    for place in attempt.detail or []:
        if not isinstance(place, dict) or not isinstance(place.get("gpus", []), list):
            raise Unfit("has a detail that is no list of places with gpus", place)
        gpus += len(place.get("gpus", []))
        nodes.append(str(place.get("ip")))
    return gpus, nodes
