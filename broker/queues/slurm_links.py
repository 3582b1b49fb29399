"""What only all records together tell: gangs of several records, arrays that may not run all at once, dependencies."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from broker.model.job import Job, JobState
from broker.queues.parsed import Parsed
from broker.queues.slurm_record import Draft

_MOST_FORMER = 100
"""Of an array that must end first, this many tasks (its last) are named: they end last."""


def linked(drafts: list[Draft], parsed: Parsed) -> list[Job]:
    """The jobs, each with what it waits for; parts of a heterogeneous job are merged into one."""
    whole = [*_gangs(drafts, parsed), *(draft for draft in drafts if not draft.het)]
    live = [draft for draft in whole if draft.job.state.live]
    throttled = _throttled(live)
    arrays = _arrays(live)
    earlier = _earlier(live)
    return [_with(draft.job, _former(draft, arrays) + throttled.get(draft.job.id, ()) + earlier.get(draft.job.id, ()))
            for draft in whole]  # fmt: skip


def _gangs(drafts: list[Draft], parsed: Parsed) -> Iterable[Draft]:
    """One job for all components: they start together. Its nodes are all nodes; per node it has the largest need."""
    groups: defaultdict[tuple[str, str], list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.het:
            groups[draft.job.cluster, draft.het].append(draft)
    for (_, leader), parts in groups.items():
        parsed.merged += len(parts) - 1
        yield parts[0]._replace(job=_gang(leader, [part.job for part in parts]))


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


def _throttled(live: list[Draft]) -> dict[str, tuple[str, ...]]:
    """`%N`: the task N places further on waits for this one, so that never more than N are asked for at once."""
    groups: defaultdict[str, list[Draft]] = defaultdict(list)
    for draft in live:
        if draft.array:
            groups[draft.array].append(draft)
    waits: dict[str, tuple[str, ...]] = {}
    for tasks in groups.values():
        at_once = max(task.at_once for task in tasks)
        queue = sorted(tasks, key=lambda task: task.job.state is not JobState.RUNNING)
        if at_once:
            waits |= {
                later.job.id: (first.job.id,)
                for first, later in zip(queue, queue[at_once:], strict=False)
                if later.job.state is not JobState.RUNNING
            }
    return waits


def _arrays(live: list[Draft]) -> dict[str, tuple[str, ...]]:
    """The last live tasks of each array."""
    tasks: defaultdict[str, list[str]] = defaultdict(list)
    for draft in live:
        if draft.array:
            tasks[draft.array].append(draft.job.id)
    return {array: tuple(ids[-_MOST_FORMER:]) for array, ids in tasks.items()}


def _former(draft: Draft, arrays: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """An array stands for its tasks; `aftercorr` and `124_*` name one as well."""
    return tuple(former for name in draft.after for former in arrays.get(name.removesuffix("_*"), (name,)))


def _earlier(live: list[Draft]) -> dict[str, tuple[str, ...]]:
    """`singleton`: one job of that name and user at a time."""
    last: dict[tuple[str | None, str | None], str] = {}
    waits: dict[str, tuple[str, ...]] = {}
    for draft in sorted(live, key=lambda draft: (draft.job.state is not JobState.RUNNING, draft.job.submit)):
        same = (draft.job.user, draft.job.name)
        if draft.singleton and same in last:
            waits[draft.job.id] = (last[same],)
        last[same] = draft.job.id
    return waits


def _with(job: Job, depends_on: tuple[str, ...]) -> Job:
    return msgspec.structs.replace(job, depends_on=depends_on) if depends_on else job
