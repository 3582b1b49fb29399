"""A job trace made up from a seed: tenants, seasons of day and week, bursts, users with heavy-tailed durations, gangs.

Its marginals follow what is published of the Philly cluster (Jeon et al., ATC '19): 93% of jobs on one GPU, 2% each on
2, 4 and 8, the rest on 16 to 128; durations of median 1,144 s, 90% below 11,265 s, 99% below 254,758 s; jobs a day
with a median of 471 and a largest of 3,712.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from broker.backtest.trace import Floats, Ints, Rows, Trace, build

DAY_S, HOUR_S = 86_400.0, 3_600.0
SIZES = (1, 2, 4, 8, 16, 32, 64)
SIZE_SHARES = (0.93, 0.022, 0.0225, 0.02, 0.0035, 0.0015, 0.0005)
LONGEST_S = 30 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """`jobs_a_day` is the mean over all tenants, whose sizes fall off as a power law."""

    days: int = 60
    tenants: int = 10
    users_a_tenant: int = 12
    jobs_a_day: float = 560.0
    median_s: float = 1_000.0
    spread: float = 1.5  # of log durations within a user's jobs
    user_spread: float = 1.0  # of users' medians, in logs
    long_share: float = 0.025  # jobs of the long kind: training runs of hours to weeks
    burst_share: float = 0.35  # jobs that come in bursts: sweeps of one user with equal GPUs
    burst_size: float = 25.0


def synthesise(seed: int, recipe: Recipe | None = None) -> Trace:
    """The same trace for the same seed and recipe, on every machine with the same numpy."""
    made = recipe or Recipe()
    chance = np.random.default_rng(seed)
    rows = Rows()
    weights = 1.0 / np.arange(1, made.tenants + 1) ** 1.2
    for tenant, weight in enumerate(weights / weights.sum()):
        _tenant(rows, tenant, made.jobs_a_day * float(weight), made, chance)
    return replace(build(rows, "the synthetic trace"), notes=Counter())  # nothing that was read had to be sorted


def _tenant(rows: Rows, tenant: int, jobs_a_day: float, made: Recipe, chance: np.random.Generator) -> None:
    medians = np.log(made.median_s) + chance.normal(0.0, made.user_spread, made.users_a_tenant)
    activity = chance.dirichlet(np.full(made.users_a_tenant, 0.6))
    phase_h = chance.uniform(-3.0, 3.0)
    leaders = _moments(jobs_a_day * _leaders_a_job(made), phase_h, made, chance)
    if not len(leaders):
        return
    count = np.where(
        chance.random(len(leaders)) < _burst_chance(made), 1 + chance.geometric(1 / made.burst_size, len(leaders)), 1
    )
    user = np.repeat(chance.choice(made.users_a_tenant, len(leaders), p=activity), count)
    gpus = np.repeat(chance.choice(SIZES, len(leaders), p=np.array(SIZE_SHARES) / sum(SIZE_SHARES)), count)
    submit = np.repeat(leaders, count) + np.concatenate([np.cumsum(chance.exponential(20.0, c)) for c in count])
    duration = _durations(medians[user], gpus, made, chance)
    for j in range(len(submit)):
        rows.add(
            id=f"{tenant}-{j}",
            tenant=f"tenant-{tenant:02d}",
            user=f"user-{tenant:02d}-{user[j]:02d}",
            submit_s=float(np.floor(submit[j])),
            duration_s=float(duration[j]),
            gpus=float(gpus[j]),
            wait_s=float("nan"),
        )


def _burst_chance(made: Recipe) -> float:
    """Chance that a leader begins a burst, such that `burst_share` of all jobs come in bursts."""
    odds = made.burst_share / ((1 - made.burst_share) * (1 + made.burst_size))
    return odds / (1 + odds)


def _leaders_a_job(made: Recipe) -> float:
    return 1.0 / (1 + _burst_chance(made) * made.burst_size)


def _moments(a_day: float, phase_h: float, made: Recipe, chance: np.random.Generator) -> Floats:
    """Poisson arrivals: most in the afternoon, half on weekends, and days that differ much."""
    hour = np.arange(made.days * 24)
    day_shape = 1 + 0.6 * np.cos((hour % 24 - 15 - phase_h) * 2 * np.pi / 24)
    week_shape = np.where(hour // 24 % 7 >= 5, 0.5, 1.2)
    level = np.repeat(chance.lognormal(-0.28, 0.75, made.days + 1), 24)[: len(hour)]
    counts = chance.poisson(a_day / 24 * day_shape * week_shape * level)
    return np.asarray(np.sort(np.repeat(hour, counts) * HOUR_S + chance.uniform(0, HOUR_S, int(counts.sum()))))


def _durations(log_median: Floats, gpus: Ints, made: Recipe, chance: np.random.Generator) -> Floats:
    """Log-normal around the user's own median; some jobs are of the long kind, larger gangs more often."""
    logs = chance.normal(log_median, made.spread)
    is_long = chance.random(len(gpus)) < made.long_share * (1 + np.log2(gpus))
    logs = np.where(is_long, chance.normal(np.log(1.2 * DAY_S), 1.2, len(gpus)), logs)
    return np.asarray(np.clip(np.round(np.exp(logs)), 1.0, LONGEST_S))


def marginals(trace: Trace) -> dict[str, float]:
    """The figures by which a synthetic and a real trace are compared."""
    a_day = np.bincount((trace.submit_s // DAY_S).astype(np.int64))
    hour = (trace.submit_s % DAY_S // HOUR_S).astype(np.int64)
    return {
        "jobs_a_day_median": float(np.median(a_day)),
        "jobs_a_day_largest": float(a_day.max()),
        "one_gpu_share": float(np.mean(trace.gpus == 1)),
        "over_8_gpus_share": float(np.mean(trace.gpus > 8)),
        "duration_p50_s": float(np.quantile(trace.duration_s, 0.5)),
        "duration_p90_s": float(np.quantile(trace.duration_s, 0.9)),
        "duration_p99_s": float(np.quantile(trace.duration_s, 0.99)),
        "afternoon_over_night": int(np.sum((hour >= 12) & (hour < 20))) / max(1, int(np.sum(hour < 8))),
        "largest_tenant_share": float(np.bincount(trace.tenant).max() / len(trace)),
    }
