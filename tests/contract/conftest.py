"""Every test here runs once for each cloud in `clouds/`."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from providers.sandbox.local import Sandbox
from tests.contract.cloud import Bench, Cloud

CLOUDS = sorted(path.stem for path in (Path(__file__).parent / "clouds").glob("[a-z]*.py"))


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    found: Cloud = import_module(f"tests.contract.clouds.{request.param}").CLOUD
    return found


@pytest.fixture
def bench(cloud: Cloud) -> Iterator[Bench]:
    with Sandbox() as sandbox:
        waits: list[float] = []
        yield Bench(cloud, sandbox, cloud.connect(sandbox, sandbox.clock, waits.append, 5.0), waits)
