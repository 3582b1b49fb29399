"""A `Job` -> what the history keeps of it."""

import msgspec

from broker.model.job import Job, JobState
from broker.queues.normal import flat
from state.encode import to_us
from state.history.facts import GONE, LIVE, TOLD, Fact, turn_of
from state.history.words import Words

_MORE = ("min_gpus", "max_gpus", "gpus_per_node", "time_min_s", "depends_on", "not_before", "deadline", "gang",
         "preemptible", "constraint", "uid")  # fmt: skip
_USUAL = {"gang": True, "preemptible": False}


def fact(job: Job, words: Words, *, feed: int | None = None, seen: int | None = None) -> Fact:
    """`seen`: when a job that lives was seen; None where only the job itself tells. `feed`: the queue that lists it."""
    told = LIVE if job.state.live else GONE if job.state is JobState.GONE else TOLD
    latest = newest(job)
    return Fact(
        cluster=words.cluster[job.cluster],
        id=job.id,
        submit=to_us(job.requeued or job.submit),
        turn=turn_of(job.uid) if job.uid else job.attempt - 1 if job.requeued is None else 0,
        part=0,
        told=told,
        seen=max(latest, seen) if told == LIVE and seen is not None else latest,
        state=job.state.value,
        eligible=None if job.eligible is None else to_us(job.eligible),
        began=None if job.start is None else to_us(job.start),
        ended=None if job.end is None else to_us(job.end),
        gpus=job.gpus,
        nodes=job.nodes,
        model=words.model[job.gpu_model] if job.gpu_model else None,
        tenant=words.tenant[job.tenant],
        user=words.user[job.user] if job.user else None,
        queue=words.queue[job.queue] if job.queue else None,
        name=words.name(job.name),
        time_limit_s=job.time_limit_s,
        priority=job.priority,
        more=_more(job),
        feed=feed,
    )


def newest(job: Job) -> int:
    """The latest time that the job speaks of."""
    return max(to_us(at) for at in (job.submit, job.requeued, job.start, job.end) if at is not None)


def _more(job: Job) -> str | None:
    """What only few jobs have; GPUs a node follow from nodes where they divide evenly."""
    record = flat(job)
    if job.nodes and job.gpus_per_node and job.nodes * job.gpus_per_node == job.gpus:
        del record["gpus_per_node"]
    kept = {name: record[name] for name in _MORE if name in record and record[name] != _USUAL.get(name)}
    return msgspec.json.encode(kept).decode() if kept else None
