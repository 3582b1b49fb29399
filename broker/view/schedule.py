"""Grants, loans and reclaims as text and JSON."""

from broker.sia.live import Step
from broker.sia.machine import Decision
from broker.view.document import document
from broker.view.text import table


def schedule_text(step: Step) -> str:
    """One line a decision; jobs that are left out below."""
    rows = [[d.kind.value, d.job, d.tenant, str(d.gpus), f"{d.lag_s:.0f}", d.reason] for d in step.decisions]
    header = ["decision", "job", "tenant", "GPUs", "lag s", "why"]
    blocks = [table(header, rows, right=frozenset({3, 4})) if rows else "Nothing to start or to call back."]
    if step.left_out:
        blocks.append("\n".join(f"left out: {job}: {reason}" for job, reason in step.left_out))
    return "\n\n".join(blocks)


def schedule_json(step: Step) -> str:
    """For a scheduler's plug-in: do what `decisions` say, in order."""
    pool = step.machine.state.pool[0]
    left_out = [{"job": job, "reason": reason} for job, reason in step.left_out]
    fields = {
        "capacity_gpus": pool.capacity,
        "claimed_gpus": pool.claimed,
        "short_gpus": pool.short,
        "decisions": [_decision(each) for each in step.decisions],
        "left_out": left_out,
    }
    return document("schedule", fields)


def _decision(each: Decision) -> dict[str, object]:
    return {
        "kind": each.kind.value,
        "job": each.job,
        "tenant": each.tenant,
        "gpus": each.gpus,
        "lag_s": each.lag_s,
        "reason": each.reason,
    }
