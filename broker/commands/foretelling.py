"""Durations of live jobs by what the history of the state has taught."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from broker.commands import kept_models
from broker.config import Config
from broker.errors import StateError
from broker.model.job import Job
from broker.schedule.foretold import Foretold
from state.history.store import History, beside
from state.history.words import Words

if TYPE_CHECKING:
    from forecasts.lasting import Lasting

NAME = "durations"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Foretelling:
    """`words` turn a user's name into what the history calls him."""

    def __init__(self, lasting: "Lasting", words: Words) -> None:
        self._lasting = lasting
        self._words = words

    def __call__(self, jobs: Sequence[Job]) -> list[Foretold | None]:
        """One each; None where nothing can be said."""
        import numpy as np

        from forecasts.history import Arrival
        from forecasts.quantiles import LEVELS

        if not jobs:
            return []
        order = sorted(range(len(jobs)), key=lambda at: jobs[at].submit)
        groups = [self._lasting.number(_group(job, self._words)) for job in jobs]
        arrivals = [
            Arrival(
                id=f"live/{at}",
                now_s=jobs[at].submit.timestamp(),
                group=groups[at],
                gpus=jobs[at].gpus,
                time_limit_s=float(jobs[at].time_limit_s or "nan"),
            )
            for at in order
        ]
        said = np.empty((len(jobs), len(LEVELS)))
        said[order] = self._lasting.say(arrivals)
        quick, typical = said[:, LEVELS.index(0.1)].tolist(), said[:, LEVELS.index(0.5)].tolist()
        return [
            Foretold(quick_s=quick[at], typical_s=typical[at], known=groups[at] >= 0)
            if np.isfinite(said[at]).all()
            else None
            for at in range(len(jobs))
        ]


def foretelling(config: Config, now: datetime, *, keeps: bool) -> tuple[Foretelling | None, tuple[str, ...]]:
    """None where there is no history, or where the libraries for numbers are not installed."""
    place = beside(config.state)
    if not place.exists() or not _numbers():
        return None, ()
    from forecasts import lasting

    try:
        with History.open(place, read_only=True) as history:
            words = history.words()
            model, notes = kept_models.current(
                kept_models.path_of(config, NAME),
                lasting.Lasting,
                lasting.VERSION,
                now,
                lambda: _learn(history, now),
                keeps=keeps,
            )
    except StateError as error:
        return None, (f"durations are not learned: {error}",)
    return (Foretelling(model, words) if model else None), notes


def _learn(history: History, now: datetime) -> "Lasting | None":
    from broker.commands.demand_history import submitted
    from broker.history.past import jobs
    from forecasts.lasting import learn

    seen = sorted((job for job in jobs(history) if job.gpus > 0 and job.start is not None), key=lambda job: job.submit)
    columns, groups = submitted([job for job in seen if job.submit <= now], _EPOCH)
    return learn(columns, groups, now.timestamp(), kept_models.SEED)


def _group(job: Job, words: Words) -> str:
    return words.hidden("u", job.user) if job.user else job.tenant


def _numbers() -> bool:
    try:
        import lightgbm  # noqa: F401
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True
