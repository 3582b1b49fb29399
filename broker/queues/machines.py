"""What a managed service's machine type holds: whole GPUs and their model."""

import re
from functools import cache

from broker.model.offer import Shape
from broker.queues.parsed import Unfit, Unwanted
from providers.prices.shapes import shapes

_GPU_FAMILY = re.compile(r"(p|g)\d.*\..*|standard_n.*|(a2|a3|a4|a4x|g2|g4)-.*")
"""Names by which the clouds call machines with GPUs, whether or not we know how many they hold."""


def machine(written: str) -> Shape:
    """Also as SageMaker writes it (`ml.p5.48xlarge`). Raises Unwanted for one without whole GPUs, Unfit if unknown."""
    found = known(written)
    if found is None and _GPU_FAMILY.fullmatch(_plain(written)):
        raise Unfit("has a machine type whose GPUs are not known", written)
    if found is None:
        raise Unwanted("asks for no GPU")
    if not found.gpus:
        raise Unwanted("asks for a fraction of a GPU")
    return found


def model_of(written: str) -> str | None:
    """The GPU model of a machine type, None where it is not known."""
    found = known(written)
    return found.gpu_model if found else None


def known(written: str) -> Shape | None:
    """Whatever cloud sells it, or its managed service."""
    return _by_name().get(_plain(written))


def _plain(written: str) -> str:
    return written.strip().lower().removeprefix("ml.")


@cache
def _by_name() -> dict[str, Shape]:
    return {name.lower(): shape for (_, name), shape in shapes().items()}
