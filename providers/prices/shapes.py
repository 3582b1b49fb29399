"""What one instance of each GPU machine type holds."""

from decimal import Decimal
from functools import cache
from pathlib import Path

from broker.model.gpu import normalise
from broker.model.offer import Shape
from broker.model.place import ProviderName
from providers.prices.rows import Row, read_rows

_FILE = Path(__file__).with_name("shapes.csv")
_COLUMNS = ("provider", "machine_type", "gpu_model", "gpus", "vcpus", "memory_gib", "source")


def shape_of(provider: ProviderName, machine_type: str) -> Shape | None:
    """None for a type that we do not know. A type with a fraction of a GPU has 0: no whole GPU fits on it."""
    return shapes().get((provider, machine_type))


@cache
def shapes() -> dict[tuple[ProviderName, str], Shape]:
    """Every known GPU machine type, by provider and name."""
    return dict(read_rows(_FILE, _COLUMNS, _shape))


def _shape(row: Row) -> tuple[tuple[ProviderName, str], Shape]:
    model = normalise(row["gpu_model"])
    if model is None:
        raise ValueError(f"{row['gpu_model']} is no GPU model")
    shape = Shape(
        machine_type=row["machine_type"],
        gpu_model=model,
        gpus=int(Decimal(row["gpus"])),
        vcpus=int(row["vcpus"]),
        memory_gib=Decimal(row["memory_gib"]),
    )
    return (ProviderName(row["provider"]), shape.machine_type), shape
