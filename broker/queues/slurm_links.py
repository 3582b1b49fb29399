"""What only all records together tell: gangs of several records, arrays that may not run all at once, dependencies."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from broker.model.job import Job, JobState
from broker.queues.parsed import Parsed
from broker.queues.slurm_record import Draft

Waits = dict[str, tuple[str, ...]]
"""By id of a job, the ids of those that it waits for."""

_MOST_FORMER = 100
"""Of an array that must end first, this many tasks (its last) are named: they end last."""


def linked(drafts: list[Draft], parsed: Parsed) -> list[Job]:
    """The jobs, each with what it waits for; parts of a heterogeneous job are merged into one."""
    whole = [*_gangs(drafts, parsed), *(draft for draft in drafts if not draft.het)]
    live = [draft for draft in whole if draft.job.state.live]
    throttled = _throttled(live)
    arrays = _arrays(live)
    earlier = _earlier(live)
    return [job for draft in whole for job in _jobs(draft, _former(draft, arrays), throttled, earlier)]


def _gangs(drafts: list[Draft], parsed: Parsed) -> Iterable[Draft]:
    """One job for all components: they start together. Its nodes are all nodes; per node it has the largest need."""
    groups: defaultdict[tuple[str, str], list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.het:
            groups[draft.job.cluster, draft.het].append(draft)
    for (_, leader), parts in groups.items():
        parsed.merged += len(parts) - 1
        yield msgspec.structs.replace(parts[0], job=_gang(leader, [part.job for part in parts]))


def _gang(leader: str, parts: list[Job]) -> Job:
    models = {part.gpu_model for part in parts if part.gpu_model}
    even = len({part.gpus_per_node for part in parts}) == 1
    counts = [part.nodes for part in parts]
    return msgspec.structs.replace(
        parts[0],
        id=leader,
        gpus=sum(part.gpus for part in parts),
        gpu_model="+".join(sorted(models)) or None,
        gpus_per_node=parts[0].gpus_per_node if even else None,
        nodes=sum(count or 1 for count in counts) if even and all(counts) else None,
        node_names=tuple(name for part in parts for name in part.node_names),
    )


def _throttled(live: list[Draft]) -> Waits:
    """`%N`: the task N places further on waits for this one, so that never more than N are asked for at once."""
    groups: defaultdict[str, list[Draft]] = defaultdict(list)
    for draft in live:
        if draft.array:
            groups[draft.array].append(draft)
    waits: Waits = {}
    for drafts in groups.values():
        if at_once := max(draft.at_once for draft in drafts):
            running = [draft.job.id for draft in drafts if draft.job.state is JobState.RUNNING]
            queue = running + [id for draft in drafts if draft.job.state is not JobState.RUNNING for id in draft.ids]
            begin = max(at_once, len(running))
            waits.update(zip(queue[begin:], zip(queue[begin - at_once :], strict=True), strict=False))
    return waits


def _arrays(live: list[Draft]) -> dict[str, tuple[str, ...]]:
    """The last live tasks of each array."""
    tasks: defaultdict[str, list[str]] = defaultdict(list)
    for draft in live:
        if draft.array:
            tasks[draft.array] += msgspec.structs.replace(draft, tasks=draft.tasks[-_MOST_FORMER:]).ids
    return {array: tuple(ids[-_MOST_FORMER:]) for array, ids in tasks.items()}


def _former(draft: Draft, arrays: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """An array stands for its tasks; `aftercorr` and `124_*` name one as well."""
    return tuple(former for name in draft.after for former in arrays.get(name.removesuffix("_*"), (name,)))


def _earlier(live: list[Draft]) -> Waits:
    """`singleton`: one job of that name and user at a time."""
    if not any(draft.singleton for draft in live):
        return {}
    last: dict[tuple[str | None, str | None], str] = {}
    waits: Waits = {}
    for draft in sorted(live, key=lambda draft: (draft.job.state is not JobState.RUNNING, draft.job.submit)):
        same = (draft.job.user, draft.job.name)
        queue = [last[same], *draft.ids] if same in last else draft.ids
        if draft.singleton:
            waits.update(zip(queue[1:], zip(queue, strict=True), strict=False))
        last[same] = queue[-1]
    return waits


def _jobs(draft: Draft, former: tuple[str, ...], throttled: Waits, earlier: Waits) -> Iterable[Job]:
    """The job, or one for each task that waits in the draft."""
    job = msgspec.structs.replace(draft.job, depends_on=former) if former else draft.job
    if not draft.tasks and job.id not in throttled and job.id not in earlier:
        return (job,)
    copied = msgspec.structs.replace
    if not throttled and not earlier:
        return [copied(job, id=id) for id in draft.ids]
    none = ()
    return [copied(job, id=id, depends_on=former + throttled.get(id, none) + earlier.get(id, none)) for id in draft.ids]
