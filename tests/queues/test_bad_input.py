"""What may be wrong with an input, tried with every format that it concerns: one clear line, never an empty queue."""

import codecs
import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues.json_documents import documents
from broker.queues.read import read_all
from broker.queues.registry import FORMATS
from tests.queues import fixtures
from tests.queues.fuzzing import checked
from tests.queues.test_read import CLOCK

TEXTS = [path for path in fixtures.paths() if path.parent.name != "parquet"]
JSON = [path for path in TEXTS if path.read_text().lstrip().startswith(("{", "["))]
ALONE = [path for path in JSON if len(documents(path.read_text()).found) == 1]
"""Of one document."""

TABLES = [path for path in TEXTS if path.parent.name in ("csv", "sacct", "helios", "swf", "scontrol")]
BEYOND = (2**63, -(2**70), 10**400, "9" * 30, "10000-01-01T00:00:00Z", "99999-12-31", 1e308)


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


def plain(path: Path) -> SourceView:
    return checked(path.parent.name, path.read_bytes())


def refused(path: Path, raw: bytes, why: str) -> None:
    """By the reader that was told and by the one that is found."""
    for name in (path.parent.name, "auto"):
        found = checked(name, raw)
        assert (found.trust, found.jobs) == (Trust.UNKNOWN, ())
        (line,) = found.problems
        assert why in line


def said(found: SourceView) -> bool:
    return found.trust is not Trust.COMPLETE or bool(found.problems)


@pytest.mark.parametrize("path", TEXTS, ids=named)
@pytest.mark.parametrize("written", ["utf-8-sig", "utf-16", "gzip", "crlf"])
def test_ways_to_write_the_same_text(path: Path, written: str) -> None:
    text = path.read_text()
    raw = {
        "gzip": lambda: gzip.compress(text.encode(), mtime=0), "crlf": lambda: text.replace("\n", "\r\n").encode(),
    }.get(written, lambda: text.encode(written))()  # fmt: skip
    found, usual = checked(path.parent.name, raw), plain(path)
    assert (found.jobs, found.trust, found.rows) == (usual.jobs, usual.trust, usual.rows)


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_what_is_no_text(path: Path) -> None:
    raw = path.read_bytes()
    refused(path, raw.decode().encode("utf-16-le"), "NUL bytes")
    refused(path, raw[:40] + b"\0" + raw[40:], "NUL bytes")
    refused(path, raw + b"\xff\xfe\xfa", "is not UTF-8 (byte")
    refused(path, codecs.BOM_UTF16_LE + raw[: len(raw) // 2 * 2 - 1], "is not UTF-16")
    refused(path, gzip.compress(raw, mtime=0)[:-10], "broken gzip")
    refused(path, b"\x1f\x8b" + raw, "broken gzip")
    refused(path, b"", "is empty")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>\n<html><body>Sign in, please</body></html>\n",
        "<?xml version='1.0'?><Error/>",
        "502 Bad Gateway\n",
    ],
)
def test_an_error_page_is_no_queue(name: str, page: str) -> None:
    found = checked(name, page.encode())
    assert (found.trust, found.jobs) == (Trust.UNKNOWN, ())
    assert len(found.problems) == 1


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_a_cut_within_the_last_line_is_noticed(path: Path) -> None:
    raw = path.read_bytes().rstrip()
    for left in (len(raw) - 2, len(raw) - 9, len(raw) // 2):
        found = checked(path.parent.name, raw[:left])
        assert found.trust is not Trust.COMPLETE or found.jobs == plain(path).jobs  # YAML: all jobs may stand before it


@pytest.mark.parametrize("path", ALONE, ids=named)
def test_documents_that_are_nested_without_end(path: Path) -> None:
    for deep in (b"[" * 200_000, b'{"jobs":' * 50_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000):
        assert checked(path.parent.name, deep).trust is Trust.UNKNOWN
    document = json.loads(path.read_bytes())
    records = (
        document if isinstance(document, list) else next(v for v in document.values() if isinstance(v, list) and v)
    )
    records[0]["deep"] = 7
    found = checked(
        path.parent.name, json.dumps(document).replace('"deep": 7', f'"deep": {"[" * 3000}{"]" * 3000}').encode()
    )
    assert said(found) or found.jobs == plain(path).jobs


@pytest.mark.parametrize("path", JSON, ids=named)
def test_log_lines_around_a_document_are_said_or_refused(path: Path) -> None:
    usual = plain(path)
    for raw in (b"INFO asking the server\n" + path.read_bytes(), path.read_bytes().rstrip() + b"\nINFO done in 3 s\n"):
        found = checked(path.parent.name, raw)
        assert said(found)
        assert found.trust is Trust.UNKNOWN or [job.id for job in found.jobs] == [job.id for job in usual.jobs]


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_one_format_behind_another_is_noticed(path: Path) -> None:
    for other in TEXTS:
        if other.parent.name != path.parent.name:
            found = checked(path.parent.name, path.read_bytes() + b"\n" + other.read_bytes())
            assert said(found), other


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(inner, dict | list):
            yield from leaves(inner)
        else:
            yield value, key


@pytest.mark.parametrize("path", ALONE, ids=named)
def test_a_number_or_date_beyond_reason_in_any_place_costs_its_record_at_most(path: Path) -> None:
    document, usual = json.loads(path.read_bytes()), plain(path)
    for place, (holder, key) in enumerate(list(leaves(document))[:600]):
        kept, holder[key] = holder[key], BEYOND[place % len(BEYOND)]
        found = checked(path.parent.name, json.dumps(document).encode())
        assert found.trust is Trust.UNKNOWN or found.kept >= usual.kept - 12, (key, holder[key])
        assert all(job.gpus < 10**9 and job.submit.year < 9999 for job in found.jobs)
        holder[key] = kept


@pytest.mark.parametrize("path", TABLES, ids=named)
def test_a_number_or_date_beyond_reason_in_any_cell_costs_its_row_at_most(path: Path) -> None:
    mark = {"csv": ",", "helios": ",", "sacct": "|", "swf": " ", "scontrol": " "}[path.parent.name]
    lines, usual = path.read_text().split("\n"), plain(path)
    row = next(at for at in range(len(lines) - 1, 0, -1) if lines[at].count(mark) > 1)
    cells = lines[row].split(mark)
    for at in range(len(cells)):
        for beyond in BEYOND:
            before, _, _ = cells[at].rpartition("=") if "=" in cells[at] else ("", "", "")
            changed = [*cells[:at], f"{before}={beyond}" if before else str(beyond), *cells[at + 1 :]]
            raw = "\n".join([*lines[:row], mark.join(changed), *lines[row + 1 :]]).encode()
            found = checked(path.parent.name, raw)
            assert found.trust is Trust.UNKNOWN or found.kept >= usual.kept - 3, (at, beyond)
            assert all(job.gpus < 10**9 and job.submit.year < 9999 for job in found.jobs)


@pytest.mark.parametrize("name", FORMATS)
def test_ids_of_a_second_cluster_are_other_jobs(name: str, tmp_path: Path) -> None:
    """Unless the format itself says that both are of one cluster."""
    path = fixtures.of_format(name)[0]
    if name == "parquet":
        pytest.importorskip("pyarrow")
    sources = [
        QueueSource(
            name=cluster, files=(path,), format=name, cluster=cluster, timezone="UTC", procs_per_gpu=8,
            max_age=timedelta(days=365_000),
        )
        for cluster in ("one", "two")
    ]  # fmt: skip
    one, two = read_all(sources, CLOCK)
    assert one.jobs
    own = {job.cluster for job in one.jobs}
    if own == {"one"}:
        assert [each.id for each in two.jobs] == [each.id for each in one.jobs]
        assert {each.cluster for each in two.jobs} == {"two"}
    else:
        assert two.merged >= sum(job.cluster != "one" for job in one.jobs)


LINE_BYTES = {"quick": 4 * 2**20, "deep": 100 * 2**20}


@pytest.mark.parametrize("size", ["quick", pytest.param("deep", marks=pytest.mark.deep)])
@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_a_line_that_does_not_end(path: Path, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred megabytes of it take no longer than a second for each, and what stands before it may be used."""
    monkeypatch.setattr("tests.queues.fuzzing.MOST_BYTES", 1 << 28)
    raw, long = path.read_bytes(), b"7" * LINE_BYTES[size]
    for damaged in (long, raw + long, raw[: len(raw) // 2] + long + raw[len(raw) // 2 :], raw.rstrip() + b'"' + long):
        found = checked(path.parent.name, damaged)
        assert said(found) or found.rows == plain(path).rows  # it may stand within a text
        assert all(len(line) < 1000 for line in found.problems)


def test_every_format_is_tried() -> None:
    assert {path.parent.name for path in TEXTS} == set(FORMATS) - {"parquet"}
    assert msgspec.json.decode(JSON[0].read_bytes())
