"""Quantile functions on a fixed grid of levels: put in order, condition on what is known."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Of floats, everywhere in this package; shapes are in the docstrings."""

LEVELS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""The levels that every forecast here states."""


def in_order(quantiles: Array) -> Array:
    """Sort along the last axis (levels), which repairs crossing quantiles and never worsens their pinball loss.

    Source: Chernozhukov, Fernandez-Val, Galichon, Econometrica 78 (2010).
    """
    return np.sort(quantiles, axis=-1)


def given_longer_than(quantiles: Array, elapsed: float, tail_index: float, levels: tuple[float, ...] = LEVELS) -> Array:
    """Quantiles of T given T > `elapsed`, from quantiles of T > 0; shape (levels,).

    With F the distribution function, the conditional quantile at u is that of T at F(elapsed) + u (1 - F(elapsed)).
    Beyond the last level the tail is Pareto with `tail_index`, so that a job that outlives all that was seen is
    expected to go on in proportion to its age.
    """
    passed = _distribution(quantiles, elapsed, tail_index, levels)
    wanted = [passed + level * (1.0 - passed) for level in levels]
    return np.maximum([_quantile(quantiles, level, tail_index, levels) for level in wanted], elapsed)


def _distribution(quantiles: Array, value: float, tail_index: float, levels: tuple[float, ...]) -> float:
    last = float(quantiles[-1])
    if value >= last > 0:
        return float(1.0 - (1.0 - levels[-1]) * (last / value) ** tail_index)
    return float(np.interp(value, np.concatenate(([0.0], quantiles)), np.concatenate(([0.0], levels))))


def _quantile(quantiles: Array, level: float, tail_index: float, levels: tuple[float, ...]) -> float:
    if level > levels[-1]:
        beyond = max((1.0 - level) / (1.0 - levels[-1]), 1e-12)
        return float(float(quantiles[-1]) * beyond ** (-1.0 / tail_index))
    return float(np.interp(level, np.concatenate(([0.0], levels)), np.concatenate(([0.0], quantiles))))
