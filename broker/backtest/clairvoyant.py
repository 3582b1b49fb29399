"""What could be done by one who knows the future: for comparison only."""

from dataclasses import dataclass

import numpy as np

from broker.backtest.entitlements import concurrency
from broker.backtest.hourly import HOUR_S, Hour
from broker.backtest.protocols import Case
from broker.backtest.trace import Floats, Ints, Trace


def hourly_peaks(trace: Trace) -> tuple[Floats, Ints, Ints]:
    """Whole hours from the first submit's to the last end's; at each, the GPUs in use if every job starts on submit,
    and the most in use from then until the next hour.
    """
    end = trace.submit_s + trace.duration_s
    times = np.sort(np.concatenate([trace.submit_s, end]), kind="stable")
    level, _ = concurrency(trace.submit_s, end, trace.gpus)
    settled = np.flatnonzero(np.diff(times) > 0)  # of several changes at one instant, the last counts
    times, level = times[settled], level[settled]
    hours = np.arange(np.floor(times[0] / HOUR_S), np.floor(end.max() / HOUR_S) + 1) * HOUR_S
    now = np.searchsorted(times, hours, side="right") - 1
    starts = np.where(now >= 0, level[np.maximum(now, 0)], 0)
    peaks = starts.copy()
    np.maximum.at(peaks, np.searchsorted(hours, times, side="right") - 1, level)
    return hours, starts, peaks


def capacity_without_waits(trace: Trace) -> float:
    """GPU-seconds, first to last submit, of the least capacity decided at whole hours under which no job waits."""
    hours, _, peaks = hourly_peaks(trace)
    first, last = float(trace.submit_s[0]), float(trace.submit_s[-1])
    length = np.clip(hours + HOUR_S, first, last) - np.clip(hours, first, last)
    return float(np.sum(length * peaks))


@dataclass(frozen=True, slots=True)
class Known:
    """Covers what runs and waits and its true rise within `ahead` hours, were every job to start on submit."""

    hours: Floats
    starts: Ints
    peaks: Ints
    ahead: int

    def goal(self, hour: Hour) -> int:
        at = min(int(np.searchsorted(self.hours, hour.at, side="right")) - 1, len(self.hours) - 1)
        rise = int(self.peaks[at : at + self.ahead].max() - self.starts[at])
        return max(hour.claims, hour.demand + rise)


def known_demand(case: Case, hours: int) -> Known:
    return Known(*hourly_peaks(case.trace), hours)
