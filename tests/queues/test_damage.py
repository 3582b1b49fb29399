"""Damaged input: no exception but the one for it, and never an empty queue that is believed."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues import csv_jobs, encoding, jsonl_jobs, read
from broker.queues.fetch import Fetched
from broker.queues.parsed import Context, Unreadable
from tests.queues.test_read import CLOCK, NOW
from tests.queues.test_sacct import HEADER, line
from tests.queues.test_squeue import record

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
_KUBERNETES = json.loads((EXAMPLES / "objects.json").read_bytes())
_TABLE = "id,submit,gpus,gpu_type\n7,2026-03-04T08:00:00Z,8,h100\n8,2026-03-04T08:00:00Z,16,a100-80gb\n"
_JOBS = csv_jobs.read(_TABLE, Context("q")).jobs
SAMPLES = st.sampled_from((
    json.dumps({"meta": {}, "jobs": [record(job_id=number) for number in range(1, 4)], "errors": []}).encode(),
    f"{HEADER}\n{line()}\n{line(JobID='13')}\n".encode(),
    _TABLE.encode(),
    csv_jobs.write(_JOBS).encode(),
    jsonl_jobs.write(_JOBS).encode(),
    (EXAMPLES / "workloads.yaml").read_bytes(),
    json.dumps(_KUBERNETES | {"items": _KUBERNETES["items"][:4]}).encode(),
))  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def seen(raw: bytes) -> SourceView:
    source = QueueSource(name="q")
    try:
        part = read._part(source, Fetched(raw, NOW), "f")
        return read._view(source, part, CLOCK.now())
    except Unreadable as why:
        assert "\n" not in str(why)
        return read.unknown(source, str(why))


def not_believed_empty(raw: bytes) -> None:
    view = seen(raw)
    assert view.rows == view.kept + view.merged + view.dropped + view.quarantined
    assert view.trust is not Trust.COMPLETE or view.rows


@given(SAMPLES, st.data())
def test_cut_off_anywhere(raw: bytes, data: st.DataObject) -> None:
    """But for a cut right behind a header line: that is what an empty queue looks like, and nothing can tell."""
    at = data.draw(st.integers(0, len(raw) - 1))
    header_only = raw[:at].count(b"\n") == 1 and raw[:at].endswith(b"\n") and not raw.startswith(b"{")
    if not header_only:
        not_believed_empty(raw[:at])


@given(SAMPLES, st.data())
def test_a_stretch_overwritten(raw: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=12))
    not_believed_empty(raw[:at] + junk + raw[at + len(junk) :])


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_anything_at_all(raw: bytes) -> None:
    not_believed_empty(raw)


@given(VALUES, st.sampled_from(sorted(record())))
def test_any_value_in_any_field(value: object, field: str) -> None:
    view = seen(json.dumps({"jobs": [record(), record(job_id=7) | {field: value}], "errors": []}).encode())
    assert view.rows == 2


def test_depth_and_size_of_numbers_are_no_way_in() -> None:
    for raw in (
        b"[" * 100_000,
        b'{"jobs":' + b"[" * 100_000,
        b"id,submit,gpus\n1,1e999,8\n",
        b"id,submit,gpus\n1,9,1e9\n",
    ):
        assert seen(raw).trust is Trust.UNKNOWN
    assert encoding.text(b"a", 1) == "a"
