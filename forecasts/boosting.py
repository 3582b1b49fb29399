"""Gradient-boosted quantiles: one small LightGBM model a level, kept as text, never as a pickle."""

import functools
from typing import Any

import lightgbm
import msgspec
import numpy as np

from forecasts.quantiles import LEVELS, Array, in_order


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is fitted with. The same recipe, seed and rows give the same model: one thread, row-wise."""

    rounds: int = 120
    learning_rate: float = 0.06
    leaves: int = 15
    rows_per_leaf: int = 40
    column_share: float = 0.8
    l2: float = 1.0
    seed: int = 0


class Boosted(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted set of quantile models. `models` holds LightGBM's text form, one a level."""

    levels: tuple[float, ...]
    models: tuple[str, ...]

    def predict(self, rows: Array) -> Array:
        """Shape (n, columns) -> (n, levels), in order along the levels."""
        found = [_booster(text).predict(rows, num_threads=1) for text in self.models]
        return in_order(np.stack(found, axis=1))


def fit(
    rows: Array,
    target: Array,
    *,
    recipe: Recipe,
    weight: Array | None = None,
    categories: tuple[int, ...] = (),
    levels: tuple[float, ...] = LEVELS,
) -> Boosted:
    """`rows` (n, columns) with NaN where unknown, `target` and `weight` (n,); `categories` are column numbers."""
    data = lightgbm.Dataset(
        rows, label=target, weight=weight, categorical_feature=list(categories), free_raw_data=False
    )
    boosters = [lightgbm.train(_parameters(recipe, level), data, num_boost_round=recipe.rounds) for level in levels]
    return Boosted(levels=levels, models=tuple(booster.model_to_string() for booster in boosters))


def _parameters(recipe: Recipe, level: float) -> dict[str, Any]:
    return {
        "objective": "quantile",
        "alpha": level,
        "learning_rate": recipe.learning_rate,
        "num_leaves": recipe.leaves,
        "min_data_in_leaf": recipe.rows_per_leaf,
        "feature_fraction": recipe.column_share,
        "lambda_l2": recipe.l2,
        "seed": recipe.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }


@functools.lru_cache(maxsize=64)
def _booster(text: str) -> Any:
    return lightgbm.Booster(model_str=text)
