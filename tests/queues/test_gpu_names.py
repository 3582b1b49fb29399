import csv
from pathlib import Path

import pytest

import providers.prices
from broker.queues.gpu_names import UNKNOWN, Named, named, renamed, unknown_among
from providers.prices.shapes import shapes

PRICES = Path(providers.prices.__file__).with_name("prices.csv")


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("a100", Named("a100")),
        ("NVIDIA-A100-SXM4-80GB", Named("a100-80gb", 80)),
        ("nvidia_a100_80gb_pcie", Named("a100-80gb", 80)),
        ("Tesla V100-SXM2-32GB", Named("v100-32gb", 32)),
        ("gpu:h100_mega", Named("h100", 80)),
        ("gpu:h100_mega:4", Named("h100", 80, 4)),
        ("gres/gpu:a100-80gb=8", Named("a100-80gb", 80, 8)),
        ("nvidia-h100-80gb", Named("h100", 80)),
        ("nvidia-h100-mega-80gb", Named("h100", 80)),
        ("nvidia-tesla-t4", Named("t4", 16)),
        ("NVIDIA-H100-NVL", Named("h100-nvl", 94)),
        ("NVIDIA H200", Named("h200", 141)),
        ("gh200", Named("gh200")),
        ("AMD Instinct MI300X", Named("mi300x", 192)),
        ("ml.p5.48xlarge", Named("h100", 80, 8)),
        ("p4de.24xlarge", Named("a100-80gb", 80, 8)),
        ("Standard_ND96isr_H100_v5", Named("h100", 80, 8)),
        ("standard_nd96isr_h100_v5", Named("h100", 80, 8)),
        ("a3-megagpu-8g", Named("h100", 80, 8)),
        ("1g.10gb", Named(None, None, 0, "mig-1g.10gb")),
        ("nvidia.com/mig-3g.40gb", Named(None, None, 0, "mig-3g.40gb")),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", Named("a100-80gb", None, 0, "mig-1g.10gb")),
        ("gpu:a100_1g.5gb:2", Named("a100", None, 0, "mig-1g.5gb")),
        ("1g.10gb+me", Named(None, None, 0, "mig-1g.10gb")),
        ("gres/shard", Named(None, None, 0, "shared")),
        ("nvidia.com/gpu.shared", Named(None, None, 0, "shared")),
        ("NVIDIA-A100-SXM4-40GB-SHARED", Named("a100-40gb", None, 0, "shared")),
        ("gres/mps:100", Named(None, None, 0, "mps")),
        ("volcano.sh/vgpu-number", Named(None, None, 0, "vgpu")),
        ("brandnew-gpu", UNKNOWN),
        ("", UNKNOWN),
        ("gpu:8", UNKNOWN),
        ("a100 h100", UNKNOWN),
    ],
)
def test_what_people_write(written: str, means: Named) -> None:
    assert named(written) == means


def test_every_gpu_machine_type_with_a_price_is_known() -> None:
    with PRICES.open() as file:
        types = {row["machine_type"] for row in csv.DictReader(file)}
    assert types and [name for name in sorted(types) if not named(name).known] == []


def test_every_shape_says_its_model_and_count() -> None:
    for (_, machine_type), shape in shapes().items():
        found = named(machine_type)
        assert (found.model, found.count) == (shape.gpu_model, shape.gpus)
        assert bool(found.piece) == (shape.gpus == 0)


def test_aliases_win_may_stand_for_each_other_and_need_not_end() -> None:
    aliases = {"big": "BIGGER", "bigger": "a100-80gb", "a100": "a100-80gb", "x": "y", "y": "x"}
    assert named("Big", aliases) == named("a100", aliases) == Named("a100-80gb", 80)
    assert named("x", aliases) == UNKNOWN
    assert renamed("a100", aliases) == "a100-80gb"
    assert renamed("bigger+h100", aliases) == "a100-80gb+h100"
    assert renamed(None, aliases) is None


def test_unknown_models_are_listed_once() -> None:
    assert unknown_among(["h100", None, "new1", "a100+new2", "new1"]) == ("new1", "new2")
