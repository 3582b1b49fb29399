"""Everything of the sandbox that is not HTTP: clock, market, faults, record, and what the faces remember."""

import contextlib
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from broker import regular
from broker.errors import Exit, InputError
from broker.model.place import ProviderName
from providers.sandbox.catalogue import Catalogue
from providers.sandbox.clock import DEFAULT_START, ClockState, WorldClock
from providers.sandbox.faults import Faults, RuleState
from providers.sandbox.market import Market
from providers.sandbox.record import Record
from providers.sandbox.terms import MarketState

FORMAT = 1


class UnsavedError(InputError):
    """Something was done in these clouds, and their file does not hold it."""

    exit = Exit.PARTLY_DONE


class Saved(msgspec.Struct, kw_only=True):
    """A world in a file. `format` changes when an older file cannot be read any more."""

    format: int = FORMAT
    clock: ClockState
    market: MarketState
    faults: list[RuleState]
    record: Record
    memory: dict[ProviderName, dict[str, Any]]


class World:
    """`lock` is held by whoever reads or changes it. `memory[provider]` is the face's own, JSON values only."""

    def __init__(
        self,
        *,
        seed: int = 0,
        start: datetime = DEFAULT_START,
        speed: float = 0.0,
        busy: float = 0.0,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.catalogue = catalogue or Catalogue()
        self.clock = WorldClock(start, speed)
        self.record = Record()
        self.faults = Faults(seed)
        self.market = Market(self.clock, self.record, MarketState(seed=seed, busy=busy), self.catalogue)
        self.memory: dict[ProviderName, dict[str, Any]] = {name: {} for name in ProviderName}
        self._kept = self._begun = 0
        self.keep_in: Path | None = None
        """Where `keep` writes: the server calls it after each call."""

    @property
    def seed(self) -> int:
        return self.market.state.seed

    @property
    def request_id(self) -> str:
        """Of the call in hand; for the face's replies."""
        return f"req-{self.seed}-{self.market.call}"

    def page_size(self, provider: ProviderName, default: int) -> int:
        """How many things a page of that cloud's lists holds at most: what was set, or the face's default."""
        return int(self.memory[provider].get("page_size", default))

    def saved(self) -> bytes:
        """The whole world as JSON."""
        with self.lock:
            return msgspec.json.encode(
                Saved(
                    clock=self.clock.state,
                    market=self.market.state,
                    faults=self.faults.rules,
                    record=self.record.recent(),
                    memory=self.memory,
                )
            )

    def restore(self, data: bytes) -> None:
        """Become the saved world; its clock has gone on meanwhile if it was running. Raises msgspec's errors."""
        saved = msgspec.json.decode(data, type=Saved)
        if saved.format != FORMAT:
            raise ValueError(f"its format is {saved.format}, this broker reads {FORMAT}")
        with self.lock:
            self.clock.state = saved.clock
            self.record = saved.record
            self.faults = Faults(saved.market.seed, saved.faults)
            self.market = Market(self.clock, self.record, saved.market, self.catalogue)
            self.memory = {name: saved.memory.get(name, {}) for name in ProviderName}
            self._kept = self._begun = len(self.record.effects)

    def save(self, path: Path) -> None:
        """Whole or not at all. Raises InputError, or UnsavedError where it had effects since it was begun or read."""
        part = path.with_name(f".{path.name}.part")
        try:
            with self.lock:
                part.write_bytes(self.saved())
                part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise self._unsaved(path, error) from error

    def may_be_saved(self, path: Path) -> None:
        """Before anything is done in it. Raises InputError."""
        part = path.with_name(f".{path.name}.part")
        try:
            part.touch()
            part.unlink()
        except OSError as error:
            raise self._unsaved(path, error) from error

    def _unsaved(self, path: Path, error: OSError) -> InputError:
        kind = UnsavedError if len(self.record.effects) != self._begun else InputError
        return kind(f"cannot write the sandbox's world {path}: {error.strerror}", next_step="Check its folder and disk")

    def keep(self) -> None:
        """Write the world to where it is kept, if anywhere, when something has happened since."""
        if self.keep_in is not None and len(self.record.effects) != self._kept:
            self.save(self.keep_in)
            self._kept = len(self.record.effects)

    def load(self, path: Path) -> None:
        """Raises InputError."""
        data = read(path)
        try:
            self.restore(data)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise not_a_world(path, str(error)) from error


def read(path: Path) -> bytes:
    """A saved world, still to be decoded. Raises InputError."""
    try:
        return regular.content(path)
    except FileNotFoundError:
        raise InputError(f"there is no sandbox world {path}", next_step="Make one: broker init DIR --sandbox") from None
    except OSError as error:
        what = f"cannot read the sandbox's world {path}: {error.strerror}"
        raise InputError(what, next_step="Check the path and its mode") from error


def not_a_world(path: Path, why: str) -> InputError:
    return InputError(f"{path} is not a sandbox world: {why}", next_step="Make one: broker init DIR --sandbox")
