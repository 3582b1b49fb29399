"""Each example is read as its golden file says. To write them anew: delete them and run this test twice."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from broker.clock import FixedClock
from broker.config import load
from broker.model.snapshot import SourceView, Trust
from broker.queues.read import read_all

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/broker.toml"))
GOLDEN = Path(__file__).with_name("golden")
NOW = datetime(2026, 3, 4, 9, tzinfo=UTC)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_read_as_it_was(folder: Path) -> None:
    config = load(folder / "broker.toml")
    views = read_all(config.queues, FixedClock(NOW))
    assert views and all(view.trust is Trust.COMPLETE for view in views), [view.problems for view in views]
    golden = GOLDEN / f"{folder.name}.json"
    text = _text(views)
    if not golden.exists():
        golden.write_text(text)
        pytest.fail(f"{golden} was missing and has been written: look at it")
    assert golden.read_text() == text


def _text(views: tuple[SourceView, ...]) -> str:
    """Without what depends on the time at which the example was checked out."""
    stable = [msgspec.structs.replace(view, as_of=None) for view in views]
    return msgspec.json.format(msgspec.json.encode(stable), indent=1).decode() + "\n"
