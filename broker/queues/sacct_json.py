"""`sacct --json` and slurmrestd's `/slurmdb/.../jobs`: what slurmdbd keeps, in all shapes of its data parsers.

Ask with `sacct -aXD -S now-7days --json`. The records nest what `squeue --json` keeps flat; they are laid flat and
read as those. `end: 0` means not ended, limits are minutes, steps are not looked at, every requeue is an attempt.
"""

from typing import Any

import msgspec

from broker.queues import sacct, slurm_document
from broker.queues.parsed import Context, Parsed, Unfit
from broker.queues.slurm_links import linked
from broker.queues.slurm_record import Record


class _Nested(msgspec.Struct):
    """The fields that are used, in whatever shape the data parser gives them."""

    job_id: Any = None
    array: Any = None
    het: Any = None
    association: Any = None
    name: Any = None
    user: Any = None
    account: Any = None
    cluster: Any = None
    partition: Any = None
    priority: Any = None
    hold: Any = None
    time: Any = None
    state: Any = None
    tres: Any = None
    allocation_nodes: Any = None
    nodes: Any = None
    constraints: Any = None
    restart_cnt: Any = None
    sluid: Any = None
    original_sluid: Any = None


_NESTED = msgspec.json.Decoder(_Nested)


def suits(head: str) -> str:
    """Why this looks like `sacct --json`, "" if it does not."""
    if slurm_document.is_document(head) and slurm_document.is_accounting(head):
        return 'it is one JSON object with "jobs" as slurmdbd keeps them'
    return ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    raws = slurm_document.read(text, parsed, "sacct --json", "slurmdbd (sacctmgr ping)")
    drafts = list(slurm_document.drafts(raws, _flat, context, parsed))
    parsed.jobs = sacct.attempts(linked(drafts, parsed), parsed)
    return parsed


def _flat(raw: msgspec.Raw) -> Record:
    """Raises Unfit."""
    nested = _NESTED.decode(raw)
    times, state, tres = _table(nested.time), _table(nested.state), _table(nested.tres)
    array, het, whose = _table(nested.array), _table(nested.het), _table(nested.association)
    return Record(
        job_id=nested.job_id,
        array_job_id=array.get("job_id"),
        array_task_id=array.get("task_id"),
        array_task_string=array.get("task"),
        array_max_tasks=_at_once(array),
        het_job_id=het.get("job_id"),
        het_job_offset=het.get("job_offset"),
        name=nested.name,
        user_name=nested.user or whose.get("user"),
        account=nested.account or whose.get("account"),
        partition=nested.partition or whose.get("partition"),
        cluster=nested.cluster or whose.get("cluster"),
        submit_time=times.get("submission"),
        eligible_time=times.get("eligible"),
        start_time=times.get("start"),
        end_time=times.get("end"),
        job_state=state.get("current"),
        state_reason=state.get("reason"),
        hold=nested.hold,
        restart_cnt=nested.restart_cnt,
        priority=nested.priority,
        time_limit=times.get("limit"),
        tres_req_str=_tres(tres.get("requested")),
        tres_alloc_str=_tres(tres.get("allocated")),
        node_count=nested.allocation_nodes,
        nodes=None if nested.nodes == "None assigned" else nested.nodes,
        features=nested.constraints,
        named_for_good=nested.original_sluid or nested.sluid,
    )


def _table(part: Any) -> dict[str, Any]:
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise Unfit("holds something else where a JSON object should be", part)
    return part


def _at_once(array: dict[str, Any]) -> Any:
    """`limits.max.running.tasks`, wherever that path ends early."""
    found: Any = array.get("limits")
    for step in ("max", "running", "tasks"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _tres(items: Any) -> str:
    """The list as the text that `squeue` has: `gres/gpu=8,gres/gpu:a100=8`."""
    if items is None:
        return ""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Unfit("tres is not a list of JSON objects", items)
    return ",".join(f"{_tres_name(item)}={item.get('count') or 0}" for item in items)


def _tres_name(item: dict[str, Any]) -> str:
    return f"{item.get('type')}/{item['name']}" if item.get("name") else str(item.get("type"))
