"""What the schedule remembers between looks: the allocator's state, what was ordered, and how jobs behaved."""

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

import msgspec

from broker.errors import StateError
from broker.sia.holdback import HoldBack
from broker.sia.machine import Machine

FORMAT = 1
_AGAIN = "Begin again from the queue as it is: broker schedule --begin-again"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler was told to do with a job, and has not been seen to have done. `at` in seconds."""

    kind: str
    at: float
    reason: str


class Known(msgspec.Struct, kw_only=True):
    """A live job. Times in seconds since the first look; `name` is what the allocator calls it.

    `began` is the start of the run that was seen last, None while none was; `done` is the service before that run,
    `service` that at the last look, in seconds. `run_s` sums the runs that are over. `gpus` are promised; an elastic
    job can use `most` (0: it is rigid), held `shown` at the last look, and does nothing until `rests`, since it grew.
    `stays` says why it may not borrow, "" if it may.
    """

    name: str
    kind: str
    gpus: int
    began: float | None = None
    done: float = 0.0
    service: float = 0.0
    run_s: float = 0.0
    called_back: int = 0
    order: Order | None = None
    nodes: tuple[str, ...] = ()
    most: int = 0
    shown: int = 0
    rests: float = 0.0
    stays: str = ""


class Habit(msgspec.Struct, kw_only=True):
    """How a class of jobs behaved, in seconds, latest last. `overdue` are the jobs for which it may not borrow.

    `run_s` are runs of jobs that nothing stopped, by GPUs.
    """

    reclaim_s: list[float] = []
    restore_s: list[float] = []
    run_s: dict[int, list[float]] = {}
    overdue: list[str] = []


class PoolMemory(msgspec.Struct, kw_only=True):
    machine: Machine
    hold: HoldBack
    known: dict[str, Known] = {}
    habits: dict[str, Habit] = {}
    names: int = 0
    hour: int = 0
    starts: int = 0
    misses: int = 0


class Memory(msgspec.Struct, kw_only=True):
    """`since` is the first look, `at` the last; lags are counted from the first on. `taught` is of suppositions, which
    are never saved: lending begins at once. `promised` are GPUs of jobs from before the past was forgotten, which a
    queue cannot tell of elastic ones that run; they count at a pool's first look.
    """

    since: datetime
    at: datetime
    pools: dict[str, PoolMemory] = {}
    promised: dict[str, int] = {}
    taught: bool = False

    def promises(self) -> dict[str, int]:
        """Of the live jobs of all pools."""
        live = {key: known.gpus for pool in self.pools.values() for key, known in pool.known.items()}
        return {**self.promised, **live}


def dumps(memory: Memory) -> bytes:
    pools = {
        name: {
            "machine": msgspec.Raw(pool.machine.dumps()),
            "hold": {**asdict(pool.hold), "history": [list(hour.items()) for hour in pool.hold.history]},
            **{
                field: getattr(pool, field)
                for field in PoolMemory.__struct_fields__
                if field not in ("machine", "hold")
            },
        }
        for name, pool in memory.pools.items()
    }
    document = {"format_version": FORMAT, "since": memory.since, "at": memory.at, "pools": pools}
    return msgspec.json.encode({**document, "promised": memory.promised})


class _SavedPool(msgspec.Struct, kw_only=True):
    machine: msgspec.Raw
    hold: dict[str, Any]
    known: dict[str, Known]
    habits: dict[str, Habit]
    names: int
    hour: int
    starts: int
    misses: int


class _Saved(msgspec.Struct, kw_only=True):
    format_version: int
    since: datetime
    at: datetime
    pools: dict[str, _SavedPool]
    promised: dict[str, int] = {}


def loads(text: bytes) -> Memory:
    """Raises StateError for what is damaged or of a newer version."""
    try:
        saved = msgspec.json.decode(text, type=_Saved)
        if saved.format_version != FORMAT:
            raise StateError(f"the schedule's state has format {saved.format_version}", next_step="Use a newer broker")
        pools = {name: _pool(pool) for name, pool in saved.pools.items()}
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError) as error:
        raise StateError(f"the schedule's state is damaged: {error}", next_step=_AGAIN) from None
    return Memory(since=saved.since, at=saved.at, pools=pools, promised=saved.promised)


def _pool(saved: _SavedPool) -> PoolMemory:
    others = {name: getattr(saved, name) for name in ("known", "habits", "names", "hour", "starts", "misses")}
    return PoolMemory(machine=Machine.loads(bytes(saved.machine)), hold=_hold(saved.hold), **others)


def _hold(saved: dict[str, Any]) -> HoldBack:
    hold = HoldBack(capacity=saved["capacity"], windows=saved["windows"])
    for field in fields(HoldBack):
        if field.name != "history" and field.name in saved:  # what an older broker did not know begins as new
            setattr(hold, field.name, saved[field.name])
    hold.history.extend({int(gpus): int(count) for gpus, count in hour} for hour in saved["history"])
    return hold
