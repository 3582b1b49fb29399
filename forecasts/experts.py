"""Competing forecasts: fixed-share Hedge on pinball loss, then a correction that keeps each level honest.

A forecast that is bad, stale or absurd costs little: its share falls with its loss, and no expert's share falls so
far that it cannot come back. The correction needs no model of the errors.
"""

import msgspec
import numpy as np

from forecasts.quantiles import LEVELS, Array, in_order
from forecasts.scores import pinball


class Hedge(msgspec.Struct, kw_only=True):
    """Shares of the experts, for each level apart: (experts, levels), each column sums to 1.

    `rate` is on losses in units of `scale`, a running mean of the best loss. `switch` is the share that is
    spread over all experts each step. Source: Herbster and Warmuth, Machine Learning 32 (1998).
    """

    shares: Array
    rate: float = 0.3
    switch: float = 0.01
    scale: float = 0.0

    @staticmethod
    def among(experts: int, levels: int = len(LEVELS), *, rate: float = 0.3, switch: float = 0.01) -> "Hedge":
        """Equal shares for all."""
        return Hedge(shares=np.full((experts, levels), 1.0 / experts), rate=rate, switch=switch)

    def mix(self, forecasts: Array) -> Array:
        """Shape (experts, levels) -> (levels,); an expert with any value that is not finite is left out."""
        mixed: Array = self.mix_many(forecasts[:, None])[0]
        return mixed

    def mix_many(self, forecasts: Array) -> Array:
        """Shape (experts, n, levels) -> (n, levels), each of n as `mix` does it; NaN where no expert speaks."""
        present: Array = np.asarray(np.isfinite(forecasts).all(axis=2, keepdims=True))
        shares = self.shares[:, None] * present
        total = shares.sum(axis=0)
        mixed = (np.where(present, forecasts, 0.0) * shares).sum(axis=0)
        said = (total > 0).all(axis=1, keepdims=True)
        return in_order(np.where(said, mixed / np.where(total > 0, total, 1.0), np.nan))

    def learn(self, forecasts: Array, actual: float, levels: tuple[float, ...] = LEVELS) -> None:
        """Move the shares by how each expert did; one that gave no number does as badly as the worst."""
        present: Array = np.asarray(np.isfinite(forecasts).all(axis=1))
        if not present.any():
            return
        losses = np.stack(
            [pinball(np.array(actual), forecasts[:, at], level) for at, level in enumerate(levels)], axis=1
        )
        losses = np.where(present[:, None], losses, np.max(losses[present], axis=0))
        if self._rescale(losses.mean(axis=1)) > 0.0:
            excess = np.minimum((losses - losses.min(axis=0)) / self.scale, 50.0)
            grown = self.shares * np.exp(-self.rate * excess)
            self.shares = (1.0 - self.switch) * grown / grown.sum(axis=0) + self.switch / len(forecasts)

    def _rescale(self, losses: Array) -> float:
        """A running mean of the smallest loss that is not 0, so that a perfect expert wins too."""
        if losses.max() > 0.0:
            best = float(losses[losses > 0.0].min())
            self.scale = best if self.scale == 0.0 else 0.99 * self.scale + 0.01 * best
        return self.scale


class Correction(msgspec.Struct, kw_only=True):
    """What is added to each level (levels,), in units of demand, moved against each miss.

    After each outcome the correction of level u rises by eta (u - [outcome <= quantile]): over time each level is
    exceeded as often as it says, whatever the errors. `eta` is `pace` times a running mean of the absolute errors,
    in which one absurd error counts as at most ten of them.
    Source: Gibbs and Candes, NeurIPS 34 (2021).
    """

    added: Array
    pace: float = 0.05
    size: float = 0.0

    @staticmethod
    def none(levels: int = len(LEVELS), *, pace: float = 0.05) -> "Correction":
        """Nothing added to any level yet."""
        return Correction(added=np.zeros(levels), pace=pace)

    def apply(self, quantiles: Array) -> Array:
        """Shape (levels,) or (n, levels), kept: corrected, in order, and nowhere below 0."""
        return np.maximum(in_order(quantiles + self.added), 0.0)

    def learn(self, corrected: Array, actual: float, levels: tuple[float, ...] = LEVELS) -> None:
        """One outcome, against what `apply` had given for it (levels,), in the same unit."""
        middle = float(np.interp(0.5, levels, corrected))
        error = abs(actual - middle)
        self.size = 0.98 * self.size + 0.02 * min(error, 10.0 * self.size) if self.size else error
        self.added = self.added + self.pace * self.size * (np.asarray(levels) - (actual <= corrected))
