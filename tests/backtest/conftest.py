"""The public traces are not part of the project: BROKER_TRACES names the folder that has them."""

import os
from pathlib import Path

import numpy as np
import pytest

from broker.backtest.readers import read_trace
from broker.backtest.trace import Trace


@pytest.fixture(scope="session")
def philly() -> Trace:
    folder = os.environ.get("BROKER_TRACES")
    if not folder:
        pytest.skip("BROKER_TRACES is not set")
    return read_trace(Path(folder) / "philly.csv.gz")


def random_trace(seed: int, jobs: int = 300, tenants: int = 4) -> Trace:
    """Small, in whole seconds, with ties."""
    rng = np.random.default_rng(seed)
    return Trace(
        tenants=tuple(f"t{v}" for v in range(tenants)),
        users=("",),
        ids=tuple(str(j) for j in range(jobs)),
        tenant=rng.integers(0, tenants, jobs),
        user=np.zeros(jobs, dtype=np.int64),
        submit_s=np.sort(rng.integers(0, 500, jobs)).astype(np.float64),
        duration_s=rng.integers(1, 60, jobs).astype(np.float64),
        gpus=rng.choice([1, 1, 2, 4, 8], jobs),
        wait_s=np.full(jobs, np.nan),
    )
