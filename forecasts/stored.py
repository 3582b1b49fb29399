"""Models as data: JSON in, JSON out, never a pickle."""

from typing import Any, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")


def dump(model: Any) -> bytes:
    """Any Struct of this package, its arrays as nested lists."""
    return msgspec.json.encode(model, enc_hook=lambda value: value.tolist())


def load(text: bytes, kind: type[T]) -> T:
    """What `dump` wrote. Raises msgspec.ValidationError where it is not one."""
    return msgspec.json.decode(text, type=kind, dec_hook=lambda _, value: np.asarray(value, dtype=float))
