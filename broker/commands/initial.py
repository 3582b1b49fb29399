"""`init`: a starter configuration, a state with a lineage of its own, and for the sandbox a world and a queue."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from broker.clock import WallClock
from broker.config import load
from broker.config.starter import SANDBOX_QUEUE, sandbox_starter, starter
from broker.errors import UsageError

CONFIG = "broker.toml"
STATE = "state.db"
WORLD = "world.json"
QUEUE = "queue.csv"


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `kept` was there already and was left as it is."""

    folder: Path
    config: Path
    state: Path
    lineage: str
    files: tuple[Path, ...]
    kept: tuple[Path, ...]
    sandbox: bool


def init(folder: Path, *, sandbox: bool, state: str | None) -> Made:
    """Nothing that exists is overwritten, and what cannot be made to the end is taken away again. Raises UsageError for
    a folder that cannot be made, StateError for a state that exists. A configuration that exists gets a state only.
    """
    from state.store import Store

    config, database, now = folder / CONFIG, Path(state) if state else folder / STATE, WallClock().now()
    if config.exists():
        return _state_only(config, state, now)
    texts = {config: sandbox_starter(), folder / QUEUE: _queue(now)} if sandbox else {config: starter()}
    _make(folder)
    with Store.create(database, now=now) as store:
        lineage = store.lineage
    kept = [path for path in (*texts, *([folder / WORLD] if sandbox else [])) if path.exists()]
    with _whole(database, *(path for path in (*texts, folder / WORLD) if path not in kept)):
        written = [path for path, text in texts.items() if path not in kept and _write(path, text)]
        written += [_world(folder / WORLD, now)] if sandbox and folder / WORLD not in kept else []
    return Made(
        folder=folder,
        config=config,
        state=database,
        lineage=lineage,
        files=tuple(written),
        kept=tuple(kept),
        sandbox=sandbox,
    )


def _state_only(config: Path, state: str | None, now: datetime) -> Made:
    """For a configuration whose state is missing: one that was copied here, or whose state was never worth keeping."""
    from state.mark import marked
    from state.store import Store

    found = load(config, flags={"state": state} if state else {}, env=os.environ)
    if found.state.exists():
        raise UsageError(
            f"{config} exists already, and so does its state",
            next_step="Use them, or give another folder: broker init DIR",
        )
    if marked(found.state):
        raise UsageError(
            f"{found.state} is missing, and had bought something: a new one would not know of it",
            next_step=f"Find again what it bought: broker state adopt -c {config}",
        )
    with Store.create(found.state, now=now) as store:
        return Made(
            folder=config.parent,
            config=config,
            state=found.state,
            lineage=store.lineage,
            files=(),
            kept=(config,),
            sandbox=found.sandbox is not None,
        )


@contextmanager
def _whole(*paths: Path) -> Iterator[None]:
    """All of them, or none: so that it can be tried again."""
    try:
        yield
    except BaseException:
        for path in paths:
            with suppress(OSError):
                path.unlink()
        raise


def _queue(now: datetime) -> str:
    """The sample queue, submitted yesterday."""
    return SANDBOX_QUEUE.replace("2026-03-04", f"{now - timedelta(days=1):%Y-%m-%d}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}", next_step="Give another DIR") from None


def _write(path: Path, text: str) -> bool:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", next_step="Check the folder's mode") from None
    return True


def _world(path: Path, now: datetime) -> Path:
    """Clouds whose time is ours, so that a real queue can be planned on them."""
    from providers.sandbox.local import Sandbox

    Sandbox(start=now, speed=1.0).save(path)
    return path
