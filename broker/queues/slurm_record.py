"""One record of `squeue --json` -> the draft of a job, or of all tasks of an array that still waits."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from broker.model.job import Job, JobState
from broker.queues import words
from broker.queues.arrays import Tasks, waiting
from broker.queues.hostlist import names
from broker.queues.parsed import MOST_DIGITS, Context, Parsed, Unfit, Unwanted
from broker.queues.tres import Gpus, gpus, kind_in

_BASE = frozenset((
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
))  # fmt: skip
_HOLD_FLAGS = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT"})
HELD_REASONS = frozenset((
    "JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", "job_requeued_in_held_state",
    "launch_failed_requeued_held", "InvalidAccount", "InvalidQOS",
))  # fmt: skip
"""Somebody has to act before the job can start, whatever capacity there is."""
_LIMIT = re.compile(r"(?:Assoc(?:iation)?|QOS)(?:Grp|Max|Min|Job|Resource|Time|Usage)\w+|Max\w+PerAccount")
"""Reasons of waiting for a limit that the site has set, in the words of Slurm's job_reason_codes."""
_STARTED = frozenset({JobState.RUNNING, JobState.SUSPENDED})
_CONDITION = re.compile(r"after\w*:([^,?]+)")
_FORMER_ID = re.compile(r"\d+(?:_(?:\d+|\*))?")


class Record(msgspec.Struct):
    """The fields that are used, in whatever shape the data parser gives them.

    `named_for_good` is no field of `squeue`: its `sluid` is renewed by a resize, and then a job would seem to be new.
    """

    job_id: Any = None
    array_job_id: Any = None
    array_task_id: Any = None
    array_task_string: Any = None
    array_max_tasks: Any = None
    het_job_id: Any = None
    het_job_offset: Any = None
    name: Any = None
    user_name: Any = None
    user_id: Any = None
    account: Any = None
    partition: Any = None
    cluster: Any = None
    submit_time: Any = None
    eligible_time: Any = None
    start_time: Any = None
    end_time: Any = None
    deadline: Any = None
    job_state: Any = None
    state_reason: Any = None
    hold: Any = None
    restart_cnt: Any = None
    priority: Any = None
    dependency: Any = None
    time_limit: Any = None
    time_minimum: Any = None
    tres_req_str: Any = None
    tres_alloc_str: Any = None
    tres_per_job: Any = None
    tres_per_node: Any = None
    tres_per_socket: Any = None
    tres_per_task: Any = None
    node_count: Any = None
    tasks: Any = None
    nodes: Any = None
    job_resources: Any = None
    gres_detail: Any = None
    features: Any = None
    requeue: Any = None
    named_for_good: Any = None


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A job whose links to other records are still to be made.

    `array` and `at_once`: the array it waits in, and how many of that may run at one time (0: all). `tasks`: those of
    the array that wait as one record; they differ in nothing but the id, and become jobs at last. `het`: the
    heterogeneous job it is a part of. `after` names jobs or arrays, `singleton` waits for the user's same-named job.
    """

    job: Job
    array: str = ""
    tasks: Sequence[int] = ()
    at_once: int = 0
    het: str = ""
    after: tuple[str, ...] = ()
    singleton: bool = False

    @property
    def ids(self) -> list[str]:
        return [f"{self.array}_{task}" for task in self.tasks] if self.tasks else [self.job.id]


def number(raw: Any) -> int | None:
    """None for null, "not set" and infinite. Raises Unfit."""
    if isinstance(raw, dict):
        raw = None if raw.get("infinite") or raw.get("set") is False else raw.get("number")
    if raw is None or raw == "":
        return None
    try:
        found = int(raw)
    except (TypeError, ValueError, OverflowError):
        raise Unfit("holds something else where a number should be", raw) from None
    if abs(found) >= 10**MOST_DIGITS:
        raise Unfit("holds a number that cannot be", str(raw)[:MOST_DIGITS])
    return found


def draft(record: Record, context: Context, ref: str, parsed: Parsed) -> Draft:
    """Raises Unfit or Unwanted."""
    array = number(record.array_job_id) or 0
    tasks = _waiting_tasks(record, array, parsed)
    try:
        job, state = _job(record, context, ref), _words(record)
    except Unwanted as unwanted:
        raise Unwanted(unwanted.reason, max(len(tasks.ids), 1)) from None
    _note_unknown(state, job, parsed)
    note_limit(_text(record.state_reason), job.state, parsed, max(len(tasks.ids), 1))
    return Draft(
        job,
        array=str(array) if array else "",
        tasks=tasks.ids,
        at_once=tasks.at_once or (number(record.array_max_tasks) or 0),
        het=str(number(record.het_job_id) or ""),
        after=_after(record),
        singleton="singleton" in _text(record.dependency),
    )


def _waiting_tasks(record: Record, array: int, parsed: Parsed) -> Tasks:
    """The tasks that one record stands for: only while they wait."""
    text = _text(record.array_task_string)
    if not array or not text or number(record.array_task_id) is not None:
        return Tasks(())
    found = waiting(text, parsed)
    if found.cut:
        parsed.damage("the list of an array's tasks is cut off; raise SLURM_BITSTR_LEN, or use squeue -r")
    return found


def _job(record: Record, context: Context, ref: str) -> Job:
    state = _state(record)
    wanted = _gpus(record, state)
    submit = _time(record.submit_time)
    if submit is None:
        raise Unfit("has no submit_time", record.job_id)
    per_node, nodes = _layout(record, state, wanted.count)
    minutes, least = number(record.time_limit), number(record.time_minimum)
    return Job(
        id=_id(record),
        attempt=(number(record.restart_cnt) or 0) + 1,
        cluster=_text(record.cluster) or context.cluster,
        tenant=_text(record.account) or context.fallback_tenant,
        user=_text(record.user_name) or _text(record.user_id) or None,
        name=_text(record.name) or None,
        queue=_text(record.partition).split(",")[0] or None,
        submit=submit,
        requeued=submit if number(record.restart_cnt) else None,
        eligible=_time(record.eligible_time),
        start=_time(record.start_time) if state in _STARTED or not state.live else None,
        end=None if state.live else _time(record.end_time),
        state=state,
        gpus=wanted.count,
        gpu_model=wanted.kind or kind_in(_text(record.features)),
        gpus_per_node=per_node,
        nodes=nodes,
        time_limit_s=minutes * 60 if minutes else None,
        time_min_s=least * 60 if least else None,
        priority=number(record.priority) or 0,
        not_before=_time(record.eligible_time) if "BeginTime" in _text(record.state_reason) else None,
        deadline=_time(record.deadline),
        node_names=names(_node_list(record)) if state in _STARTED else (),
        constraint=_text(record.features) or None,
        uid=_text(record.named_for_good) or None,
        source=context.source,
        raw_ref=ref,
    )


def _id(record: Record) -> str:
    array, task = number(record.array_job_id), number(record.array_task_id)
    if array and task is not None:
        return f"{array}_{task}"
    plain = number(record.job_id)
    if not plain:
        raise Unfit("has no job_id")
    return str(plain)


def _words(record: Record) -> list[str]:
    raw = record.job_state
    return [str(word).upper() for word in (raw if isinstance(raw, list) else [raw]) if word]


def _state(record: Record) -> JobState:
    found = _words(record)
    if "REVOKED" in found:
        raise Unwanted("runs in another cluster of the federation")
    base = [word for word in found if word in _BASE]
    state = words.state(base[0] if base else (found[0] if found else ""))
    if state is JobState.PENDING and (_HOLD_FLAGS.intersection(found) or _held(record)):
        return JobState.HELD
    return state


def _held(record: Record) -> bool:
    reason = _text(record.state_reason)
    return (
        record.hold is True
        or reason in HELD_REASONS
        or number(record.priority) == 0
        or "(failed)" in _text(record.dependency)
    )


def _note_unknown(found: list[str], job: Job, parsed: Parsed) -> None:
    if job.state is JobState.UNKNOWN:
        parsed.note(f"state {'+'.join(found) or 'missing'} is not known: such jobs count as live")


def note_limit(reason: str, state: JobState, parsed: Parsed, jobs: int = 1) -> None:
    """Whether it waits for a limit rather than for capacity."""
    if state is JobState.PENDING and _LIMIT.fullmatch(reason):
        parsed.limited[reason] += jobs


def _gpus(record: Record, state: JobState) -> Gpus:
    """Whole-job totals where Slurm states them; else what is asked for each part, times the parts."""
    texts = [record.tres_alloc_str, record.tres_req_str] if state in _STARTED else [record.tres_req_str]
    totals = [gpus(_text(text)) for text in [*texts, record.tres_per_job]]
    found = next((total for total in totals if total.count), None) or _multiplied(record)
    found = found if found.count else _detailed(record)
    if found.count:
        return msgspec.structs.replace(found, kind=found.kind or _kind(record))
    if found.fractions or any(total.fractions for total in totals):
        raise Unwanted("asks for a fraction of a GPU")
    raise Unwanted("asks for no GPU")


def _multiplied(record: Record) -> Gpus:
    for text, parts in ((record.tres_per_node, record.node_count), (record.tres_per_task, record.tasks)):
        each = gpus(_text(text))
        if each.count:
            return msgspec.structs.replace(each, count=each.count * max(number(parts) or 1, 1))
    if gpus(_text(record.tres_per_socket)).count:
        raise Unfit("asks for GPUs per socket without a total", _text(record.tres_per_socket))
    return Gpus()


def _detailed(record: Record) -> Gpus:
    """What each node has given, where a site shows nothing else: `["gpu:h100:8(IDX:0-7)"]`."""
    details = record.gres_detail if isinstance(record.gres_detail, list) else []
    each = [gpus(_text(item)) for item in details]
    kinds = sorted({one.kind for one in each if one.kind})
    return Gpus(sum(one.count for one in each), "+".join(kinds) or None, sum(one.fractions for one in each))


def _kind(record: Record) -> str | None:
    """The totals need not name the type that the request names."""
    requests = (record.tres_per_job, record.tres_per_node, record.tres_per_task, record.tres_per_socket)
    return next((kind for text in requests if (kind := gpus(_text(text)).kind)), None)


def _layout(record: Record, state: JobState, total: int) -> tuple[int | None, int | None]:
    """(GPUs per node, nodes), None where the job does not fix them: node_count is a minimum while a job waits."""
    each = gpus(_text(record.tres_per_node)).count
    if each and total % each == 0:
        return each, total // each
    nodes = number(record.node_count)
    free = _text(record.tres_per_job) or _text(record.tres_per_task) or _text(record.tres_per_socket)
    if not nodes or total % nodes or (state not in _STARTED and free and nodes == 1):
        return None, nodes if nodes and nodes > 1 else None
    return total // nodes, nodes


def _node_list(record: Record) -> str:
    """`nodes`, which sites may filter out, or what `job_resources` says: a text once, an object since v0.0.41."""
    resources = record.job_resources if isinstance(record.job_resources, dict) else {}
    inner = resources.get("nodes")
    return _text(record.nodes) or _text(inner.get("list") if isinstance(inner, dict) else inner)


def _after(record: Record) -> tuple[str, ...]:
    """Jobs that must end first. Of alternatives (`?`) the first is taken: waiting too long costs least."""
    conditions = _CONDITION.findall(_text(record.dependency).partition("?")[0])
    named = [part.split("(")[0].split("+")[0] for condition in conditions for part in condition.split(":")]
    return tuple(name for name in named if _FORMER_ID.fullmatch(name))


def _time(raw: Any) -> datetime | None:
    seconds = number(raw)
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds and seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        raise Unfit("holds a time that cannot be", raw) from None


def _text(raw: Any) -> str:
    return raw.strip() if isinstance(raw, str) else str(raw) if isinstance(raw, int) else ""
