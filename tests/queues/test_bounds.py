"""Names are bounded in every format: what identifies is set aside when it is too long, what is only shown is cut."""

import json
from pathlib import Path

import pytest

from broker.model.job import Job
from broker.model.snapshot import Trust
from broker.queues import bounds
from tests.queues.fuzzing import checked
from tests.queues.test_bad_input import ALONE, TABLES, leaves, named, plain, said

LONG = "n" * 100_000


def bounded(job: Job) -> bool:
    """Whatever fields a job has: those of texts, and of lists of texts."""
    values = [(name, getattr(job, name)) for name in Job.__struct_fields__]
    texts = [(name, text) for name, value in values for text in (value if isinstance(value, tuple) else [value])]
    return all(len(text) <= _most(name) for name, text in texts if isinstance(text, str))


def _most(name: str) -> int:
    return bounds.LONGEST_CONSTRAINT if name == "constraint" else bounds.LONGEST


@pytest.mark.parametrize("path", ALONE, ids=named)
def test_a_name_without_end_in_any_place_costs_its_record_at_most(path: Path) -> None:
    document, usual = json.loads(path.read_bytes()), plain(path)
    for holder, key in list(leaves(document))[:300]:
        kept, holder[key] = holder[key], LONG
        found = checked(path.parent.name, json.dumps(document).encode())
        holder[key] = kept
        assert all(map(bounded, found.jobs)), key
        assert found.trust is Trust.UNKNOWN or found.kept >= usual.kept - 12, key
        assert all(len(line) < 1000 for line in found.problems), key


@pytest.mark.parametrize("path", TABLES, ids=named)
def test_a_name_without_end_in_any_cell_costs_its_row_at_most(path: Path) -> None:
    mark = {"csv": ",", "helios": ",", "sacct": "|", "swf": " ", "scontrol": " "}[path.parent.name]
    lines, usual = path.read_text().split("\n"), plain(path)
    row = next(at for at in range(len(lines) - 1, 0, -1) if lines[at].count(mark) > 1)
    cells = lines[row].split(mark)
    for at in range(len(cells)):
        before = f"{cells[at].partition('=')[0]}=" if "=" in cells[at] else ""
        changed = mark.join([*cells[:at], before + LONG, *cells[at + 1 :]])
        found = checked(path.parent.name, "\n".join([*lines[:row], changed, *lines[row + 1 :]]).encode())
        assert all(map(bounded, found.jobs)), at
        assert found.trust is Trust.UNKNOWN or found.kept >= usual.kept - 3, at


def test_what_tells_jobs_apart_is_set_aside_and_what_is_shown_is_cut() -> None:
    jobs = [
        {"id": "a", "submit": 1, "gpus": 1, "name": LONG},
        {"id": "b", "submit": 1, "gpus": 1, "user": LONG},
        {"id": "c" * bounds.LONGEST, "submit": 1, "gpus": 1},
        {"id": "d" * (bounds.LONGEST + 1), "submit": 1, "gpus": 1},
        {"id": "e", "submit": 1, "gpus": 1, "constraint": "c" * bounds.LONGEST_CONSTRAINT},
        {"id": "f", "submit": 1, "gpus": 1, "constraint": "c" * (bounds.LONGEST_CONSTRAINT + 1)},
        {"id": "g", "submit": 1, "gpus": 1, "depends_on": ["a", LONG]},
        {"id": "h", "submit": 1, "gpus": 1, "node_names": [LONG, "n1"]},
    ]
    found = checked("jsonl", b"".join(json.dumps(job).encode() + b"\n" for job in jobs))
    assert [job.id[0] for job in found.jobs] == ["a", "c", "e"]
    assert found.jobs[0].name == "n" * bounds.LONGEST_TITLE
    assert found.quarantined == 5
    assert said(found)
    assert any(bounds.CUT in line for line in found.problems)


@pytest.mark.parametrize("written", ["999999999999999999", "3153600001"])
def test_a_limit_of_centuries_is_none(written: str) -> None:
    """Added to any date it would be beyond the last one that there is."""
    table = f"id,submit,gpus,time_limit_s,time_min_s\n7,2026-03-04T08:00:00Z,8,{written},{written}\n"
    found = checked("csv", table.encode())
    assert [(job.time_limit_s, job.time_min_s) for job in found.jobs] == [(None, None)]
    assert any("more than 100 years count as none" in line for line in found.problems)
