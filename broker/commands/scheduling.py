"""`schedule`: queue and ledger are read; the schedule's memory is brought up to now and kept beside the state."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from broker import regular
from broker.clock import WallClock
from broker.commands import queue_reading
from broker.commands.foretelling import Durations, Starts
from broker.commands.workplace import clock_of
from broker.config import Config, ScheduleSettings, load
from broker.config.values import nearest
from broker.errors import Exit, StateError, UsageError
from broker.model.policy import Policy
from broker.model.reservation import Reservation
from broker.observe.entitlements import observe_entitlements
from broker.observe.observe import observe_queues
from broker.schedule import explaining, supposing
from broker.schedule.foretold import Experts, nothing
from broker.schedule.memory import Memory, dumps, loads
from broker.schedule.orders import Schedule
from broker.schedule.promises import with_read
from broker.schedule.step import Seen, begin, begin_again, look
from state.whole_file import write_whole


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """`keep` false: nothing is written, as if nobody had looked. `trust` are classes of jobs that may borrow again.

    `files`, `entitlements` and `capacity` suppose something else than what is: that is decided afresh and forgotten.
    """

    files: tuple[Path, ...] = ()
    entitlements: Mapping[str, int] = {}
    capacity: int | None = None
    pools: tuple[str, ...] = ()
    explain: str | None = None
    keep: bool = True
    begin_again: bool = False
    trust: tuple[str, ...] = ()


class Made(msgspec.Struct, frozen=True, kw_only=True):
    schedule: Schedule
    explained: explaining.Explained | None = None

    @property
    def exit_code(self) -> Exit:
        """Nothing decided is an error; some pools decided and some not is neither."""
        undecided = [pool for pool in self.schedule.pools if pool.undecided]
        if not undecided:
            return Exit.OK
        return Exit.ERROR if len(undecided) == len(self.schedule.pools) else Exit.PARTLY_DONE


def schedule(path: Path, wish: Wish, *, flags: Mapping[str, str]) -> Made:
    """Raises UsageError for names that there are not, StateError for a memory that cannot be read or written."""
    if wish.files or wish.entitlements or wish.capacity is not None:
        return _supposed(path, wish, flags=flags)
    config = load(path, flags=flags, env=os.environ)
    _check(config.policy, wish.pools)
    place = memory_path(config)
    clock = clock_of(config)
    with _alone(place, config, keep=wish.keep):
        sources, promised = observe_queues(config, clock), observe_entitlements(config, clock, wish.pools)
        reservations, held_at = _held(config)
        seen = Seen(now=clock.now(), sources=sources, reservations=reservations, held_at=held_at, entitlements=promised)
        memory = _begun_again(place, seen) if wish.begin_again else _remembered(place, seen)
        _trust(memory, wish.trust)
        durations, starts = Durations(config, seen.now, keeps=wish.keep), Starts(config)
        policy = with_read(config.policy, promised)
        made = look(memory, seen, policy, config.schedule, wish.pools, Experts(durations, starts))
        explained = explaining.explain(memory, wish.explain, sources) if wish.explain else None
        if wish.keep:
            _save(place, dumps(memory))
            starts.keep()
    return Made(schedule=_noted(made, *durations.notes, *starts.notes), explained=explained)


def _supposed(path: Path, wish: Wish, *, flags: Mapping[str, str]) -> Made:
    """For the queue as of its own time, without memory."""
    read = queue_reading.read(path, queue_reading.Given(files=tuple(wish.files)), flags=flags)
    config = load(path, flags=flags, env=os.environ) if path.exists() else None
    reservations, held_at = _held(config) if config else ((), None)
    promised = observe_entitlements(config, clock_of(config), wish.pools) if config else ()
    configured = with_read(config.policy if config else Policy(), promised)
    policy = supposing.suppose(configured, wish.pools, wish.entitlements, wish.capacity)
    _check(policy, wish.pools)
    told = [view.as_of for view in read.sources if view.as_of is not None]
    now = max(told) if told else (clock_of(config) if config else WallClock()).now()
    seen = Seen(now=now, sources=read.sources, reservations=reservations, held_at=held_at, entitlements=promised)
    memory = begin(now, taught=True)
    durations = Durations(config, now, keeps=False) if config else None
    settings = config.schedule if config else ScheduleSettings()
    made = look(memory, seen, policy, settings, wish.pools, Experts(durations or nothing))
    explained = explaining.explain(memory, wish.explain, read.sources) if wish.explain else None
    return Made(schedule=_noted(made, *(durations.notes if durations else ())), explained=explained)


def _noted(made: Schedule, *notes: str) -> Schedule:
    return msgspec.structs.replace(made, notes=(*made.notes, *notes))


def memory_path(config: Config) -> Path:
    return config.state.with_name(f"{config.state.stem}.schedule.json")


def _check(policy: Policy, pools: Sequence[str]) -> None:
    names = [pool.name for pool in policy.pools]
    if not names:
        raise UsageError("no pool is configured", next_step="Add [[pool]] to the configuration: docs/configuration.md")
    for name in pools:
        if name not in names:
            raise UsageError(
                f'there is no pool "{name}"{nearest(name, names)}', next_step=f"Use one of {', '.join(names)}"
            )


@contextmanager
def _alone(place: Path, config: Config, *, keep: bool) -> Iterator[None]:
    """Two looks at once would each forget what the other ordered."""
    if not keep:
        yield
        return
    from state.lock import Lock

    now = clock_of(config).now()
    with Lock(place, command="broker schedule", now=now, timeout=config.lock_timeout):
        yield


def _held(config: Config) -> tuple[tuple[Reservation, ...], datetime | None]:
    """What the last run saw, and when; nothing where there is no state: own nodes need none."""
    if not config.state.exists():
        return (), None
    from state.store import Store

    with Store.open(config.state, read_only=True) as store:
        heartbeat = store.heartbeat()
        return store.reservations(), heartbeat.at if heartbeat else None


def _remembered(place: Path, seen: Seen) -> Memory:
    try:
        return loads(regular.content(place))
    except FileNotFoundError:
        return begin(seen.now)
    except OSError as error:
        raise StateError(f"cannot read {place}: {error.strerror}", next_step="Check the path and its mode") from None


def _begun_again(place: Path, seen: Seen) -> Memory:
    try:
        return begin_again(seen.now, _remembered(place, seen))
    except StateError:  # it may be why it begins again
        return begin(seen.now)


def _trust(memory: Memory, classes: Sequence[str]) -> None:
    for name in classes:
        found = [pool.habits[name] for pool in memory.pools.values() if name in pool.habits]
        if not found:
            known = sorted({each for pool in memory.pools.values() for each in pool.habits})
            raise UsageError(
                f'no class of jobs "{name}" was seen{nearest(name, known)}', next_step="See: broker schedule"
            )
        for habit in found:
            habit.overdue, habit.reclaim_s = [], []


def _save(place: Path, text: bytes) -> None:
    """For the owner's eyes: it names users. Raises StateError."""
    try:
        write_whole(place, text)
    except OSError as error:
        raise StateError(
            f"cannot write {place}: {error.strerror}", next_step="Check the folder, or use --look"
        ) from None
