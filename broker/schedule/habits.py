"""What is measured of a class of jobs: how fast it gives slots back, what stopping costs it, how long it runs.

Jobs of one tenant, user and queue are a class: they mostly share the code that writes checkpoints. All figures are
bounds or estimates, for a queue shows neither checkpoints nor progress: a reclaim is taken to have lasted until the
job was seen without its slots, and a restore costs what stopped jobs ran longer than others of their class and size.
"""

from statistics import median

from broker.config import ScheduleSettings
from broker.model.job import Job
from broker.schedule.memory import Habit, Known

KEPT = 200
RECLAIMS = 20
FEWEST = 5


def class_of(job: Job) -> str:
    return f"{job.tenant}/{job.user or '-'}/{job.queue or '-'}"


def reclaim_s(habit: Habit | None, settings: ScheduleSettings) -> float:
    """The longest of the last reclaims; what the configuration says while none was seen."""
    seen = habit.reclaim_s[-RECLAIMS:] if habit else []
    return max(seen) if seen else settings.reclaim.total_seconds()


def restore_s(habit: Habit | None, settings: ScheduleSettings) -> float:
    """The median of what stopping cost; what the configuration says while fewer than five were seen."""
    seen = habit.restore_s[-KEPT:] if habit else []
    return median(seen) if len(seen) >= FEWEST else settings.restore.total_seconds()


def may_borrow(habit: Habit | None, settings: ScheduleSettings) -> bool:
    """Not while a reclaim is overdue, nor when a measured one took longer than the bound allows."""
    if habit is None:
        return True
    return not habit.overdue and reclaim_s(habit, settings) <= settings.reclaim.total_seconds()


def quick_s(habit: Habit | None, gpus: int) -> float:
    """The 10% quantile of the runs; 0, which is the cautious side, while too few were seen."""
    runs = _runs(habit, gpus)
    return runs[len(runs) // 10] if len(runs) >= FEWEST else 0.0


def typical_s(habit: Habit | None, gpus: int) -> float | None:
    runs = _runs(habit, gpus)
    return median(runs) if len(runs) >= FEWEST else None


def note_reclaim(habit: Habit, took_s: float) -> None:
    habit.reclaim_s = [*habit.reclaim_s[-KEPT + 1 :], took_s]


def note_end(habit: Habit, job: Known) -> None:
    """A job has ended by itself: the length of its run, or what having been stopped cost it."""
    if job.run_s <= 0:
        return
    if not job.called_back:
        habit.run_s[job.gpus] = [*habit.run_s.get(job.gpus, [])[-KEPT + 1 :], job.run_s]
        return
    usual = typical_s(habit, job.gpus)
    if usual is not None:
        cost = max(0.0, job.run_s - usual) / job.called_back
        habit.restore_s = [*habit.restore_s[-KEPT + 1 :], cost]


def _runs(habit: Habit | None, gpus: int) -> list[float]:
    return sorted(habit.run_s.get(gpus, [])) if habit else []
