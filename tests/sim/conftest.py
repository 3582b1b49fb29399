"""One server for all tests of a module; its world is as new for each."""

from collections.abc import Iterator

import pytest

from providers.sandbox.local import Sandbox


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(seed=1) as started:
        yield started


@pytest.fixture
def sandbox(server: Sandbox) -> Iterator[Sandbox]:
    new = server.world.saved()
    yield server
    server.world.restore(new)
