"""The world's machine types are real ones: compared to a dump of EC2's own answers, and to our tables."""

import gzip
import json
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from broker.model.gpu import normalise
from broker.model.place import ProviderName
from providers.prices.shapes import shape_of
from providers.sandbox.catalogue import Catalogue, MachineType

TYPES = Catalogue().machine_types


def dump() -> dict[str, Any]:
    """moto's copy of DescribeInstanceTypes, read without importing moto."""
    spec = find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    return dict(json.loads(gzip.decompress(path.read_bytes())))


def test_aws_types_hold_what_ec2_says() -> None:
    real = dump()
    checked = 0
    for mine in TYPES:
        if mine.provider is not ProviderName.AWS or mine.name not in real:
            continue
        theirs = real[mine.name]
        assert mine.vcpus == theirs["VCpuInfo"]["DefaultVCpus"], mine.name
        assert int(mine.memory_gib * 1024) == theirs["MemoryInfo"]["SizeInMiB"], mine.name
        assert mine.gpus == sum(gpu["Count"] for gpu in theirs["GpuInfo"]["Gpus"]), mine.name
        checked += 1
    assert checked >= 20


@pytest.mark.parametrize("provider", list(ProviderName))
def test_every_type_is_one_that_the_broker_can_name_and_count(provider: ProviderName) -> None:
    mine = [m for m in TYPES if m.provider is provider]
    assert len({m.region for m in mine}) >= 2
    for machine_type in mine:
        shape = shape_of(provider, machine_type.name)
        assert shape is not None, machine_type.name
        assert (shape.gpus, shape.vcpus) == (machine_type.gpus, machine_type.vcpus), machine_type.name
        assert normalise(machine_type.gpu) == shape.gpu_model, machine_type.name


def test_prices_and_capacities_are_figures() -> None:
    assert all(sane(machine_type) for machine_type in TYPES)


def sane(machine_type: MachineType) -> bool:
    priced = Decimal("0.1") < machine_type.usd_per_hour < 500
    return priced and machine_type.capacity > 0 and bool(machine_type.zones) and machine_type.quota_units > 0
