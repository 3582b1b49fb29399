"""docs/queues-fields.md is what the readers make of the fixtures. To write it anew: delete it and run this twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model.job import Job
from broker.queues import encoding
from broker.queues.registry import FORMATS
from tests.queues import fixtures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "queues-fields.md"
SAME = frozenset({"source", "raw_ref", "cluster"})
HEAD = """# Fields by source

Which fields of a job each reader fills, found by reading the fixtures of every format with it. A field without a mark
is not in that source, or not in any of its fixtures. Parquet holds what CSV does.

"""


def _jobs(name: str) -> Iterator[Job]:
    for path in fixtures.of_format(name):
        yield from FORMATS[name].read(encoding.text(path.read_bytes(), 1 << 20), fixtures.context()).jobs


def _filled(name: str) -> set[str]:
    """Fields that differ from what a job has when nothing is said of it."""
    defaults = Job(id="", tenant="", submit=fixtures.AT, state=next(iter(_jobs(name))).state, gpus=0)
    needed = {"id", "tenant", "submit", "state", "gpus"}
    return needed | {
        field
        for job in _jobs(name)
        for field in Job.__struct_fields__
        if getattr(job, field) != getattr(defaults, field)
    }


def table() -> str:
    filled = {name: _filled(name) for name in sorted(set(FORMATS) - {"parquet"})}
    rows = [["Field", *filled], ["---"] * (len(filled) + 1)]
    for field in Job.__struct_fields__:
        if field not in SAME:
            rows.append([f"`{field}`", *("x" if field in each else "" for each in filled.values())])
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_table_of_fields_is_current() -> None:
    written = table()
    if not PAGE.exists():
        PAGE.write_text(written)
        pytest.fail(f"{PAGE} was missing and has been written: look at it")
    assert PAGE.read_text() == written
