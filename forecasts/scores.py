"""How good a forecast was: a score is a function. All take actual values of shape (n,)."""

import numpy as np

from forecasts.quantiles import LEVELS, Array


def pinball(actual: Array, predicted: Array, level: float) -> Array:
    """Loss of each quantile forecast (n,): `level` times what it was short by, or 1 - `level` times its excess.

    Source: Koenker and Bassett, Econometrica 46 (1978).
    """
    short = actual - predicted
    loss: Array = np.maximum(level * short, (level - 1.0) * short)
    return loss


def mean_pinball(actual: Array, quantiles: Array, levels: tuple[float, ...] = LEVELS) -> Array:
    """Mean over the levels, for each of n; `quantiles` (n, levels)."""
    loss: Array = np.mean([pinball(actual, quantiles[:, at], level) for at, level in enumerate(levels)], axis=0)
    return loss


def crps(actual: Array, quantiles: Array, levels: tuple[float, ...] = LEVELS) -> Array:
    """Continuous ranked probability score: twice the integral of the pinball loss over the levels, for each of n.

    The integral is a trapezoid over the stated levels, closed flat to 0 and 1. Source: Gneiting and Raftery,
    J. Am. Stat. Assoc. 102 (2007).
    """
    losses = np.stack([pinball(actual, quantiles[:, at], level) for at, level in enumerate(levels)], axis=1)
    low = pinball(actual, quantiles[:, 0], 0.0)[:, None]
    high = pinball(actual, quantiles[:, -1], 1.0)[:, None]
    grid = np.concatenate(([0.0], levels, [1.0]))
    result: Array = 2.0 * np.trapezoid(np.concatenate((low, losses, high), axis=1), grid, axis=1)
    return result


def covered(actual: Array, low: Array, high: Array) -> float:
    """Share of the actual values inside [low, high]."""
    return float(np.mean((actual >= low) & (actual <= high)))


def autocorrelation(errors: Array, lag: int) -> float:
    """Of the errors with themselves `lag` steps earlier; 0 where they do not vary."""
    centred = errors - errors.mean()
    power = float(centred @ centred)
    return float(centred[lag:] @ centred[: len(centred) - lag] / power) if power > 0 and 0 < lag < len(errors) else 0.0


def tail_index(errors: Array, share: float = 0.05) -> float:
    """Hill's estimate from the largest `share` of the absolute errors: below 2 their variance is infinite.

    Infinite where the tail does not vary. Source: Hill, Ann. Stat. 3 (1975).
    """
    sizes = np.sort(np.abs(errors[errors != 0]))[::-1]
    count = max(int(len(sizes) * share), min(len(sizes) - 1, 10))
    if count < 1:
        return float("inf")
    spread = float(np.mean(np.log(sizes[:count] / sizes[count])))
    return 1.0 / spread if spread > 0 else float("inf")
