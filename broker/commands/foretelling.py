"""What was learned, as the schedule asks for it: durations from the history, starts from the looks before."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from broker.commands import kept_models
from broker.config import Config
from broker.errors import StateError
from broker.extras import FORECASTS, missing
from broker.model.job import Job
from broker.schedule.foretold import Foretold, HourOver
from state.history.store import History, beside
from state.history.words import Words

if TYPE_CHECKING:
    from broker.commands.start_memory import StartMemory
    from forecasts.history import Arrival
    from forecasts.lasting import Lasting

DURATIONS, STARTS = "durations", "starts"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Durations:
    """Read, or learned, when the first job has to be foretold. `notes` say what was amiss.

    Nothing is said where there is no history, or where the libraries for numbers are not installed.
    """

    def __init__(self, config: Config, now: datetime, *, keeps: bool) -> None:
        self._config, self._now, self._keeps = config, now, keeps
        self._model: Lasting | None = None
        self._words = Words()
        self._read = False
        self.notes: tuple[str, ...] = ()

    def __call__(self, jobs: Sequence[Job]) -> Sequence[Foretold | None]:
        """One each; None where nothing can be said."""
        if jobs and not self._read and not missing(FORECASTS):
            self._read = True
            self._load()
        return [None] * len(jobs) if self._model is None or not jobs else _said(self._model, jobs, self._words)

    def _load(self) -> None:
        from forecasts import lasting

        place = beside(self._config.state)
        if not place.exists():
            return
        kept_at = kept_models.path_of(self._config, DURATIONS)
        try:
            with History.open(place, read_only=True) as history:
                self._words = history.words()
                self._model, self.notes = kept_models.current(
                    kept_at,
                    lasting.Lasting,
                    lasting.VERSION,
                    self._now,
                    lambda: _learn(history, self._now),
                    keeps=self._keeps,
                )
        except StateError as error:
            self.notes = (f"durations are not learned: {error}",)


class Starts:
    """One forecaster a pool, asked once an hour; read when it is asked first, and written by `keep`."""

    def __init__(self, config: Config) -> None:
        self._place = kept_models.path_of(config, STARTS)
        self._memory: StartMemory | None = None
        self.notes: tuple[str, ...] = ()

    def __call__(self, over: HourOver) -> float | None:
        if missing(FORECASTS):
            return None
        from broker.commands import start_memory

        if self._memory is None:
            kept, self.notes = kept_models.kept(self._place, start_memory.StartMemory, start_memory.VERSION)
            self._memory = kept or start_memory.StartMemory()
        return self._memory.asked(over)

    def keep(self) -> None:
        """Nothing is written unless it was asked. Where it cannot be written, `notes` say so."""
        if self._memory is not None:
            self.notes = (*self.notes, *kept_models.keep(self._place, self._memory))


def _learn(history: History, now: datetime) -> "Lasting | None":
    from broker.commands.demand_history import submitted
    from broker.history.past import jobs
    from forecasts.lasting import learn

    seen = sorted((job for job in jobs(history) if job.gpus > 0 and job.start is not None), key=lambda job: job.submit)
    columns, groups = submitted([job for job in seen if job.submit <= now], _EPOCH)
    return learn(columns, groups, now.timestamp(), kept_models.SEED)


def _arrival(at: int, job: Job, group: int) -> "Arrival":
    from forecasts.history import Arrival

    limit_s = float("nan") if job.time_limit_s is None else float(job.time_limit_s)
    return Arrival(id=f"live/{at}", now_s=job.submit.timestamp(), group=group, gpus=job.gpus, time_limit_s=limit_s)


def _said(model: "Lasting", jobs: Sequence[Job], words: Words) -> list[Foretold | None]:
    import numpy as np

    from forecasts.quantiles import LEVELS

    order = sorted(range(len(jobs)), key=lambda at: jobs[at].submit)
    groups = [model.number(words.hidden("u", job.user) if job.user else job.tenant) for job in jobs]
    said = np.empty((len(jobs), len(LEVELS)))
    said[order] = model.say([_arrival(at, jobs[at], groups[at]) for at in order])
    quick, typical = said[:, LEVELS.index(0.1)].tolist(), said[:, LEVELS.index(0.5)].tolist()
    sure = [bool(np.isfinite(row).all()) for row in said]
    each = zip(sure, quick, typical, groups, strict=True)
    return [Foretold(low, middle, group >= 0) if able else None for able, low, middle, group in each]
