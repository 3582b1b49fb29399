"""A seeded part of what `make fuzz` tries, and that it would notice."""

from pathlib import Path

import pytest

from broker.model.snapshot import Trust
from broker.queues.registry import FORMATS, Format
from tests.queues import fixtures
from tests.queues.fuzzing import block, checked, looks_empty

TRIES = 300


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_that_must_not_be(name: str) -> None:
    found = block(name, 20260304, TRIES)
    assert found.tried == TRIES
    assert found.refused


@pytest.mark.parametrize("path", fixtures.paths(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_is_whole_is_not_refused(path: Path) -> None:
    if path.parent.name == "parquet":
        pytest.importorskip("pyarrow")
    assert checked("auto" if path.suffix != ".swf" else "swf", path.read_bytes()).trust is not Trust.UNKNOWN


def test_a_reader_that_takes_anything_for_an_empty_queue_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.queues.parsed import Parsed

    monkeypatch.setitem(FORMATS, "csv", Format(lambda text, context: Parsed(), lambda head: ""))
    with pytest.raises(AssertionError, match="believed to be an empty queue"):
        block("csv", 1, 50)


def test_a_reader_that_lets_an_exception_through_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "csv", Format(lambda text, context: 1 / 0, lambda head: ""))  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        block("csv", 1, 50)


@pytest.mark.parametrize("raw", [b"id,submit,gpus\n", b'{"jobs": []}', b"[]\n", b"No jobs in the system\n"])
def test_what_an_empty_queue_looks_like(raw: bytes) -> None:
    assert looks_empty(raw)
    assert not looks_empty(raw[:-2])
