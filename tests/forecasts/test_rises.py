"""The forecast of rises: honest over time, better than rolling quantiles where there is something to know."""

import numpy as np

from forecasts.rises import RiseForecast, Setting
from forecasts.scores import pinball

SETTING = Setting(quantile=0.9, hours=1)


def play(hours: int, setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Demand that rises each morning after a sign of it (a known figure); noise everywhere."""
    rng, forecast = np.random.default_rng(5), RiseForecast.new(setting)
    signs = (rng.random(hours + 2) < 0.15).astype(float)
    level = 100 + rng.normal(0, 3, hours + 2)
    level[1:] += 60 * signs[:-1]
    said, rolling = [], []
    for hour in range(hours):
        forecast.see(level[hour], level[hour], [signs[hour]], hour)
        expected = forecast.expected()
        said.append(np.nan if expected is None else expected)
        rolling.append(np.quantile(forecast.rises[-168:], setting.quantile) if forecast.rises else np.nan)
    rises = [max(0.0, level[h + 1 : h + 1 + setting.hours].max() - level[h]) for h in range(hours)]
    return np.array(said), np.array(rolling), np.array(rises)


def test_beats_rolling_quantiles_and_is_exceeded_as_often_as_it_says() -> None:
    said, rolling, rises = play(900, SETTING)
    late = slice(300, 898)
    ours, theirs = (pinball(rises[late], x[late], 0.9).mean() for x in (said, rolling))
    assert ours < 0.8 * theirs
    assert abs(np.mean(rises[late] <= said[late]) - 0.9) < 0.04


def test_says_nothing_before_a_rise_was_seen() -> None:
    forecast = RiseForecast.new(Setting(quantile=0.9, hours=2))
    for hour in range(2):
        forecast.see(5.0, 5.0, [], hour)
        assert forecast.expected() is None
    forecast.see(9.0, 9.0, [], 2)
    assert forecast.expected() == 4.0
