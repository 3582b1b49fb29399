"""`broker history`: import, show, prune, export; and what other commands take from the history."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from broker.clock import WallClock
from broker.commands.queue_reading import checked_source
from broker.commands.workplace import clock_of
from broker.config import Config, load
from broker.errors import Exit, StateError, UsageError
from broker.model.job import Job
from broker.model.snapshot import SourceView, Trust
from state.history.store import History, beside

if TYPE_CHECKING:
    from broker.history.importing import Imported, Options
    from broker.history.summary import Summary


class Imports(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    files: "tuple[Imported, ...]"

    @property
    def exit_code(self) -> Exit:
        return Exit.ERROR if any(each.failed for each in self.files) else Exit.OK


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """`count` jobs were forgotten, or written as rows."""

    path: str
    count: int
    before: datetime | None = None


def bring_in(
    path: Path, wanted: Sequence[str], options: "Options", *, hash_names: bool, flags: Mapping[str, str]
) -> Imports:
    """Each is a file, or the name of a configured queue. Raises UsageError, StateError."""
    from broker.history.importing import import_file, import_view
    from broker.queues.read import read_source

    config = _config(path, flags)
    state = _state(config, flags)
    checked_source(Path("file"), options.format, options.timezone)
    clock = clock_of(config) if config else WallClock()
    queues = {queue.name: queue for queue in config.queues} if config else {}
    with History.open(beside(state)) as history:
        if hash_names or (config and config.history.hash_names):
            history.hide_names()
        found = tuple(
            import_view(read_source(queues[each], clock), history, clock.now())
            if each in queues and not Path(each).exists()
            else import_file(Path(each), options, history, clock.now())
            for each in wanted
        )
    return Imports(path=str(beside(state)), files=found)


def summary(path: Path, *, flags: Mapping[str, str]) -> "Summary":
    from broker.history.summary import summarise

    with _existing(_state(_config(path, flags), flags)) as history:
        return summarise(history)


def prune(path: Path, keep_days: int | None, *, flags: Mapping[str, str]) -> Done:
    """Forget what was over for longer, and give the room back."""
    from state.encode import to_us

    config = _config(path, flags)
    days = keep_days or (config.history.keep_days if config else None)
    if days is None:
        raise UsageError("it is not said how much to keep", next_step="Give --keep-days, or a configuration")
    clock = clock_of(config) if config else WallClock()
    before = clock.now() - timedelta(days=days)
    with _existing(_state(config, flags), read_only=False) as history:
        count = history.forget(to_us(before))
        history.shrink()
        return Done(path=str(history.path), count=count, before=before)


def export(path: Path, target: Path, form: str, *, flags: Mapping[str, str]) -> Done:
    """Raises UsageError for another form than csv and parquet, or where pyarrow is missing."""
    from broker.history import exporting
    from broker.history.past import jobs

    write = exporting.writer(form)
    with _existing(_state(_config(path, flags), flags)) as history:
        return Done(path=str(target), count=exporting.to_file(target, write, jobs(history)))


def remembered(config: Config) -> list[Job]:
    """All jobs that the history holds; none where there is none. Raises StateError."""
    from broker.history.past import jobs

    if not beside(config.state).exists():
        return []
    with History.open(beside(config.state), read_only=True) as history:
        return list(jobs(history))


def as_view(config: Config) -> SourceView | None:
    """The history as a source beside others; None where it holds nothing. One that cannot be read says why."""
    try:
        jobs = remembered(config)
    except StateError as error:
        return SourceView(source="history", trust=Trust.PARTIAL, as_of=None, problems=(str(error),))
    if not jobs:
        return None
    return SourceView(
        source="history", trust=Trust.COMPLETE, as_of=None, jobs=tuple(jobs), rows=len(jobs), kept=len(jobs)
    )


def _config(path: Path, flags: Mapping[str, str]) -> Config | None:
    """With --state, the configuration may be missing."""
    return load(path, flags=flags, env=os.environ) if path.exists() or "state" not in flags else None


def _state(config: Config | None, flags: Mapping[str, str]) -> Path:
    return config.state if config else Path(flags["state"])


@contextmanager
def _existing(state: Path, *, read_only: bool = True) -> Iterator[History]:
    path = beside(state)
    if not path.exists():
        raise StateError(f"there is no history yet ({path})", next_step="Begin one: broker history import FILE")
    with History.open(path, read_only=read_only) as history:
        yield history
