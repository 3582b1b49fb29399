"""Log lines around a document are passed over and said; an error or a row of something else among them is more."""

import gzip
from pathlib import Path

import pytest

from broker.model.snapshot import Trust
from broker.queues.log_lines import apart
from broker.queues.registry import FORMATS
from tests.queues.fuzzing import checked
from tests.queues.test_bad_input import JSON, TEXTS, named, plain

DOCUMENTS = [path for path in JSON if FORMATS[path.parent.name].document]
BEFORE = "[2026-03-04 09:00:00] INFO: asking\nWARNING: a newer version is there\n\n"
AFTER = "\n[INFO] done in 3s\n"
PASSED = "lines around the JSON document were passed over"


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
@pytest.mark.parametrize(("before", "after"), [(BEFORE, ""), ("", AFTER), (BEFORE, AFTER)])
def test_they_cost_no_job(path: Path, before: str, after: str) -> None:
    usual, raw = plain(path), f"{before}{path.read_text()}{after}".encode()
    for name in (path.parent.name, "auto"):
        for written in (raw, raw.replace(b"\n", b"\r\n"), gzip.compress(raw, mtime=0)):
            found = checked(name, written)
            assert (found.jobs, found.rows, found.trust) == (usual.jobs, usual.rows, usual.trust)
            assert any(line.endswith(PASSED) for line in found.problems)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller", "Unable to contact"),
        ("id,submit,gpus", "another format"),
        ("JobID|State|Submit|ReqTRES", "another format"),
        ("JobId=7 JobName=train", "another format"),
    ],
)
def test_an_error_or_a_table_beside_the_document_makes_it_partial(path: Path, line: str, said: str) -> None:
    text = path.read_text()
    for raw in (f"{line}\n{text}", f"{text}\n{line}\n"):
        found = checked(path.parent.name, raw.encode())
        assert found.trust is Trust.PARTIAL
        assert found.jobs == plain(path).jobs
        assert any(said in problem for problem in found.problems)


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_a_piece_of_a_document_is_no_log_line(path: Path) -> None:
    """What is left of one that lost its beginning or its end, before or behind a whole one, is not passed over."""
    text = path.read_text()
    for at in range(1, len(text), len(text) // 23):
        for raw in (text[at:] + "\n" + text, text + "\n" + text[:at]):
            found = checked(path.parent.name, raw.encode())
            assert found.trust is not Trust.COMPLETE or PASSED not in "".join(found.problems), at


def test_an_empty_list_among_other_words_is_no_empty_queue() -> None:
    for name, empty in (("squeue", '{"jobs": []}'), ("vertex", "[]"), ("sagemaker", '{"TrainingJobs": []}')):
        found = checked(name, f"{BEFORE}{empty}\n".encode())
        assert found.trust is Trust.UNKNOWN
        assert "asking" in "".join(found.problems)


def test_nothing_is_apart_where_no_document_stands_alone() -> None:
    for text in ("", "x", "{", 'a": 2}\n{"b": 1}', '"c": 2}\n{"b": 1}\n', "a\n" * 2000 + '{"b": 1}\n'):
        assert apart(text).document == text
        assert not apart(text).lines
