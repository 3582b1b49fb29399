from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.clock import FixedClock
from state.store import Store
from tests.apply.cloud import Cloud
from tests.state.worlds import LINEAGE, T0


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(T0)


@pytest.fixture
def cloud(clock: FixedClock) -> Cloud:
    return Cloud(clock)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.restore(tmp_path / "state.db", now=T0, lineage=LINEAGE) as made:
        yield made
