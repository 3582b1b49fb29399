"""The history of jobs as text and JSON."""

import msgspec

from broker.commands.history import Done, Imports
from broker.counted import number
from broker.history.importing import Imported
from broker.history.summary import Counts, Summary
from broker.view.document import document
from broker.view.text import table, when

_COUNTS = frozenset(range(1, 8))


def imports_text(imports: Imports) -> str:
    return "\n".join(line for each in imports.files for line in _imported(each))


def _imported(each: Imported) -> list[str]:
    if each.failed:
        return [f"{each.file}: NOT IMPORTED", *(f"  {problem}" for problem in each.problems)]
    if each.known:
        return [f"{each.file}: is in already, unchanged; nothing to do"]
    counts = f"{each.kept:,} kept, {each.merged:,} merged, {each.dropped:,} dropped, {each.quarantined:,} quarantined"
    lines = [f"{each.file}: {each.rows:,} rows read ({each.format}) = {counts}; {each.changed:,} new or changed"]
    if each.forgotten:
        lines.append(f"  {number(each.forgotten, 'row')} ended before what is kept")
    return [*lines, *(f"  {problem}" for problem in each.problems)]


def imports_json(imports: Imports) -> str:
    return document("history_import", {"path": imports.path, "files": imports.files})


def summary_text(summary: Summary) -> str:
    if summary.first is None:
        return "The history holds no job. Import some: broker history import FILE"
    lines = [
        f"{summary.total.jobs:,} jobs, {summary.total.attempts:,} attempts, from {when(summary.first)} "
        f"to {when(summary.last)}; {number(summary.files, 'file')} imported",
        *_remarks(summary),
        "",
        table(
            ["tenant", "jobs", "attempts", "requeued", "alive", "left unseen", "runaway", "GPU hours"],
            [[_name(each.cluster, each.tenant), *_figures(each)] for each in summary.tenants],
            right=_COUNTS,
        ),
    ]
    return "\n".join(lines)


def _remarks(summary: Summary) -> list[str]:
    found = [
        f"Nothing happened from {when(gap.begin)} to {when(gap.end)}: idle, or not imported" for gap in summary.gaps
    ]
    if summary.hashed:
        found.append("Users and job names are kept as aliases.")
    if summary.kept_since:
        found.append(f"What was over before {when(summary.kept_since)} is forgotten.")
    return found


def _name(cluster: str, tenant: str) -> str:
    return f"{cluster}/{tenant}" if cluster else tenant


def _figures(counts: Counts) -> list[str]:
    whole = (counts.jobs, counts.attempts, counts.requeued, counts.live, counts.gone, counts.runaway)
    return [*(f"{each:,}" for each in whole), f"{counts.gpu_hours:,.1f}"]


def summary_json(summary: Summary) -> str:
    return document("history", msgspec.structs.asdict(summary))


def pruned_text(done: Done) -> str:
    return f"{number(done.count, 'job')} that were over before {when(done.before)} forgotten in {done.path}"


def exported_text(done: Done) -> str:
    return f"{number(done.count, 'row')} written to {done.path}"


def done_json(kind: str, done: Done) -> str:
    return document(kind, msgspec.structs.asdict(done))
