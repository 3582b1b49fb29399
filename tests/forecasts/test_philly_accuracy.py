"""On a public trace of 82,247 jobs: each forecast beats each baseline, and its 90% band holds 90% within 3 points."""

import csv
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from forecasts.accuracy import OURS, Accuracy, of_demand, of_durations
from forecasts.demand import Jobs, series
from forecasts.history import Submitted
from tests.measures import Take

TRACE = Path(os.environ.get("BROKER_TRACES", "")) / "philly.csv.gz"
TAUGHT_S = 40 * 86400
pytestmark = [pytest.mark.bench, pytest.mark.skipif(not TRACE.is_file(), reason="BROKER_TRACES names no trace folder")]


def _columns() -> Submitted:
    with gzip.open(TRACE, "rt", encoding="utf-8") as text:
        rows = [(r["submit_s"], r["duration_s"], r["gpus"], r["tenant"]) for r in csv.DictReader(text)]
    submit, duration, gpus = (np.array([float(row[at]) for row in rows]) for at in range(3))
    group = np.unique([row[3] for row in rows], return_inverse=True)[1].astype(float)
    order = np.argsort(submit, kind="stable")
    return Submitted(
        submit_s=submit[order],
        start_s=submit[order],
        end_s=(submit + duration)[order],
        gpus=gpus[order],
        group=group[order],
        time_limit_s=np.full(len(rows), np.nan),
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _print_and_hold(accuracy: Accuracy, take: Take) -> None:
    ours = next(score for score in accuracy.scores if score.by == OURS)
    for score in accuracy.scores:
        ratio = f"{score.pinball / ours.pinball:6.2f}x ours" if score is not ours else ""
        _say(
            f"{score.figure:22} {score.by:18} pinball {score.pinball:9.3f} {score.unit:11} crps {score.crps:9.3f}"
            f"  90% band holds {score.coverage_90:6.1%}  {ratio}"
        )
    index = f"autocorrelation {accuracy.error_autocorrelation:.2f}, tail index {accuracy.error_tail_index:.2f}"
    _say(f"  {accuracy.figure}: errors' {index}")
    worst = sorted(accuracy.parts, key=lambda part: part.coverage_90)[:4]
    _say("  furthest below 90%: " + ", ".join(f"{p.split} {p.part} {p.coverage_90:.1%} of {p.count}" for p in worst))
    best = min(score.pinball for score in accuracy.scores if score is not ours)
    take(f"{accuracy.figure}: pinball loss against the best baseline", ours.pinball / best, 1, "x")
    take(f"{accuracy.figure}: 90% band is off by", 100 * abs(ours.coverage_90 - 0.9), 3, "points")


@pytest.mark.parametrize("ahead_h", [1, 6, 24])
def test_demand(ahead_h: int, take: Take) -> None:
    jobs = _columns()
    hours = int(jobs.submit_s[-1] // 3600)
    past = series(Jobs(submit_s=jobs.submit_s, end_s=jobs.end_s, gpus=jobs.gpus), hours)
    _print_and_hold(of_demand(past, ahead_h, TAUGHT_S // 3600), take)


def test_durations(take: Take) -> None:
    _print_and_hold(of_durations(_columns(), TAUGHT_S), take)
