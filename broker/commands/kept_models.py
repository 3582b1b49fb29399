"""Learned models beside the state: what one command has learned the next one reads, until it is old.

They can be lost at no cost. One that is damaged, of another version or of a time that has not come is left unread
and learned anew, which is said in one line.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from broker import regular
from broker.config import Config
from state.whole_file import write_whole

SEED = 0
STALE = timedelta(hours=24)


class Dated(Protocol):
    """Times in seconds since 1970: what taught it began at `first_s`, and it knows nothing later than `until_s`."""

    @property
    def version(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def first_s(self) -> float: ...
    @property
    def until_s(self) -> float: ...


M = TypeVar("M", bound=Dated)


def path_of(config: Config, name: str) -> Path:
    return config.state.with_name(f"{config.state.stem}.{name}.json")


def kept(place: Path, kind: type[M], version: int) -> tuple[M | None, tuple[str, ...]]:
    """What was learned before, however old, and a line where a file is there that cannot be used."""
    from forecasts.stored import unseal

    try:
        model = unseal(regular.content(place), kind, version=version)
    except FileNotFoundError:
        return None, ()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return None, (f"{place.name} is not used: {why}; it is learned anew",)
    return (model, ()) if model.seed == SEED else (None, ())


def fresh(model: Dated | None, now: datetime) -> bool:
    """Old enough to have happened, and not too old."""
    return model is not None and timedelta(0) <= now - at(model.until_s) <= STALE


def keep(place: Path, model: Dated) -> tuple[str, ...]:
    """A line where it could not be written: the next command learns it again."""
    from forecasts.stored import seal

    span = {
        "trained_from": f"{at(model.first_s):%Y-%m-%dT%H:%M:%SZ}",
        "trained_until": f"{at(model.until_s):%Y-%m-%dT%H:%M:%SZ}",
    }
    try:
        write_whole(place, seal(model, version=model.version, seed=model.seed, **span))
    except OSError as error:
        return (f"{place.name} could not be written: {error.strerror}",)
    return ()


def current(
    place: Path, kind: type[M], version: int, now: datetime, learn: Callable[[], M | None], *, keeps: bool
) -> tuple[M | None, tuple[str, ...]]:
    """The kept model while it is fresh, else one that is learned now and kept. Where nothing is to be kept, nothing
    is learned either, and an old one has to do.
    """
    model, notes = kept(place, kind, version)
    if fresh(model, now) or not keeps:
        return model, notes
    learned = learn()
    return learned, (*notes, *(keep(place, learned) if learned else ()))


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
