"""Each fixture is read as its golden file says. To write one anew: delete it and run this test twice."""

from pathlib import Path

import msgspec
import pytest

from broker.queues import encoding
from broker.queues.registry import FORMATS, detect
from tests.queues import fixtures

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_fixture(name: str) -> None:
    assert fixtures.of_format(name)


def _text(path: Path) -> str:
    if path.parent.name == "parquet":
        pytest.importorskip("pyarrow")
    return encoding.text(path.read_bytes(), 1 << 20)


@pytest.mark.parametrize("path", fixtures.paths(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_fixture_is_read_as_it_was(path: Path) -> None:
    parsed = FORMATS[path.parent.name].read(_text(path), fixtures.context())
    assert parsed.rows == len(parsed.jobs) + parsed.merged + parsed.dropped.total() + parsed.quarantined.total()
    asides = ("set_aside", "read_as", "tasks", "limited")
    shown = {name: value for name, value in msgspec.structs.asdict(parsed).items() if name not in asides}
    written = msgspec.json.format(msgspec.json.encode(shown), indent=1).decode() + "\n"
    golden = GOLDEN / f"{path.parent.name}-{path.name}.golden.json"
    if not golden.exists():
        golden.write_text(written)
        pytest.fail(f"{golden} was missing and has been written: look at it")
    assert golden.read_text() == written


@pytest.mark.parametrize("path", fixtures.paths(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_fixture_is_recognised(path: Path) -> None:
    found = detect(_text(path))
    assert found.name == path.parent.name
    assert found.why
