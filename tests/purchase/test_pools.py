"""Which pool a job asks: by model, queue, tenant and constraint, in the order of the configuration."""

from datetime import UTC, datetime

import msgspec
import pytest

from broker.model.job import Job, JobState
from broker.model.policy import Pool
from broker.purchase.pools import asks, pool_of

JOB = Job(
    id="1", tenant="team", submit=datetime(2026, 3, 4, tzinfo=UTC), state=JobState.PENDING, gpus=8, gpu_model="h100",
    queue="big", constraint="zone=a&node.kubernetes.io/instance-type=p5.48xlarge",
)  # fmt: skip
POOL = Pool(name="p", gpu_models=("h100",), places=())


@pytest.mark.parametrize(
    ("narrowed", "taken"),
    [
        ({}, True),
        ({"queues": ("big",)}, True),
        ({"queues": ("small",)}, False),
        ({"tenants": ("other",)}, False),
        ({"constraints": ("zone=a",)}, True),
        ({"constraints": ("zone=b", "node.kubernetes.io/instance-type=p5.*")}, True),
        ({"constraints": ("zone=b",)}, False),
        ({"gpu_models": ("a100",)}, False),
        ({"constraints": ("zone=a",), "queues": ("small",)}, False),
    ],
)
def test_every_rule_of_a_pool_must_hold(narrowed: dict[str, tuple[str, ...]], taken: bool) -> None:
    pool = msgspec.structs.replace(POOL, **narrowed)
    assert (pool_of(JOB, (pool,)) is pool) == taken


def test_a_pool_with_constraints_takes_no_job_without_any() -> None:
    free = msgspec.structs.replace(JOB, constraint=None)
    assert pool_of(free, (msgspec.structs.replace(POOL, constraints=("zone=a",)),)) is None


def test_the_first_pool_that_fits_is_asked() -> None:
    narrow = msgspec.structs.replace(POOL, name="narrow", constraints=("zone=a",))
    assert pool_of(JOB, (narrow, POOL)) is narrow
    other = msgspec.structs.replace(JOB, constraint="zone=b")
    assert pool_of(other, (narrow, POOL)) is POOL
    assert asks(JOB) != asks(other), "what decides the pool tells the two apart"


def test_features_of_slurm_are_constraints_too() -> None:
    job = msgspec.structs.replace(JOB, constraint="[a100-80gb|h100]&ib*2")
    assert pool_of(job, (msgspec.structs.replace(POOL, constraints=("ib",)),)) is not None
