"""One cell of the matrix: a change that is wanted, a mode in which its call goes wrong, a boundary at which to die."""

from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec

from broker.apply.boundary import Boundary, Checkpoint
from providers.base import Provider
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from state.store import Store
from tests.crash.clouds import CLOUDS, ENDING, Cloud, prepared
from tests.crash.process import Ended, in_process
from tests.crash.steps import World, run
from tests.crash.truth import bought, check_ledger, ends, held_in_truth, sent_again

VISIBLE_LATER = timedelta(minutes=3)
PAST_THE_WINDOW = timedelta(minutes=6)
END_AHEAD = timedelta(minutes=40)
SETTLING = frozenset(boundary for boundary in Boundary if boundary.startswith("settle"))


class Mode(StrEnum):
    KILLED = "killed"
    REPLY_LOST = "reply lost"
    REFUSED = "refused"
    LATER = "visible only later"


class Wish(StrEnum):
    """What the run wants to change, as instances held before and wanted after."""

    RESERVE = "reserve"
    GROW = "grow"
    SHRINK = "shrink"
    RELEASE = "release"
    EXTEND = "extend"

    @property
    def before(self) -> int:
        return {"reserve": 0, "grow": 2, "shrink": 3, "release": 2, "extend": 2}[self]

    @property
    def after(self) -> int:
        return {"reserve": 2, "grow": 3, "shrink": 2, "release": 0, "extend": 2}[self]

    @property
    def end_ahead(self) -> timedelta | None:
        """How far ahead the end of what is bought is set, where it is set at all."""
        return END_AHEAD if self is Wish.EXTEND else None

    @property
    def clouds(self) -> tuple[Cloud, ...]:
        return ENDING if self is Wish.EXTEND else CLOUDS

    def operation(self, cloud: Cloud) -> str:
        others = {"reserve": cloud.reserve, "release": cloud.release, "extend": cloud.move_end}
        return others.get(self, cloud.resize)

    @property
    def buys(self) -> bool:
        return self.after > self.before


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    cloud: Cloud
    wish: Wish
    mode: Mode
    boundary: Boundary

    def __str__(self) -> str:
        return f"{self.cloud.name}-{self.wish}-{self.mode}-{self.boundary.name.lower()}".replace(" ", "-")


class Stage:
    """A sandbox and a state, and the broker run against them in processes that may die."""

    def __init__(self, sandbox: Sandbox, cloud: Cloud, state: Path, **world: object) -> None:
        self.sandbox = sandbox
        self.cloud = cloud
        self.state = state
        self._world = world
        Store.create(state, now=self.now).close()

    @property
    def now(self) -> datetime:
        return self.sandbox.clock.now()

    def world(self, want: int) -> World:
        world = World(cloud=self.cloud, endpoint=self.sandbox.endpoint, state=self.state, now=self.now, want=want)
        return msgspec.structs.replace(world, **self._world)

    def run(self, want: int, *, die_at: Boundary | None = None) -> Ended:
        self._ready()
        return in_process(lambda checkpoint: run(self.forked(want, checkpoint)), die_at=die_at)

    def forked(self, want: int, checkpoint: Checkpoint) -> World:
        """The world of a run in a process of its own."""
        return msgspec.structs.replace(self.world(want), checkpoint=checkpoint, ready=self._ready())

    def _ready(self) -> Provider:
        return prepared(self.cloud, self.sandbox.endpoint, self.now)

    def whole_run(self, want: int) -> Ended:
        ended = self.run(want)
        assert ended.exit == 0 and not ended.killed
        return ended

    def past_the_window(self) -> None:
        self.sandbox.advance(PAST_THE_WINDOW)


def go_wrong(stage: Stage, wish: Wish, mode: Mode) -> None:
    cloud, operation = stage.cloud, wish.operation(stage.cloud)
    if mode is Mode.REPLY_LOST:
        stage.sandbox.fault(FaultKind.REPLY_LOST, operation, cloud.name)
    elif mode is Mode.LATER:
        stage.sandbox.fault(FaultKind.HIDDEN, operation, cloud.name, delay_s=VISIBLE_LATER.total_seconds())
    elif mode is Mode.REFUSED and wish.buys:
        with stage.sandbox.world.lock:
            stage.sandbox.market.set_capacity(PoolRule(provider=cloud.name))
    elif mode is Mode.REFUSED:
        stage.sandbox.fault(FaultKind.ERROR, operation, cloud.name, status=403, code=cloud.denied)


def get_well(stage: Stage) -> None:
    with stage.sandbox.world.lock:
        stage.sandbox.world.faults.clear()
        stage.sandbox.market.clear_capacity()


def play(stage: Stage, cell: Cell) -> list[Ended]:
    """Get to where the change is wanted, die on the way, get well, and run past the window until nothing is wanted."""
    wish = cell.wish
    ended = [stage.whole_run(wish.before)]
    stage.past_the_window()
    if wish.end_ahead:
        stage.sandbox.advance(wish.end_ahead / 2 - PAST_THE_WINDOW + timedelta(minutes=1))
    go_wrong(stage, wish, cell.mode)
    if cell.boundary in SETTLING:
        ended.append(stage.run(wish.after, die_at=Boundary.AFTER_CALL))
        stage.sandbox.advance(timedelta(minutes=1))
    ended.append(stage.run(wish.after, die_at=cell.boundary))
    stage.sandbox.advance(timedelta(minutes=1))
    ended.append(stage.whole_run(wish.after))
    get_well(stage)
    stage.past_the_window()
    ended.append(stage.whole_run(wish.after))
    stage.past_the_window()
    ended.append(stage.whole_run(wish.after))
    return ended


def survive(stage: Stage, cell: Cell) -> Counter[Boundary]:
    """Play the cell and hold what is left to the truth; the boundaries at which a process died."""
    ended = play(stage, cell)
    wish, sandbox = cell.wish, stage.sandbox
    assert sum(held_in_truth(sandbox, cell.cloud).values()) == wish.after, "duplicate, leak or loss"
    assert bought(sandbox) == wish.before + max(wish.after - wish.before, 0), "bought more than was wanted"
    assert sent_again(sandbox, cell.cloud) == [], "a purchase was sent more than once for one decision"
    check_ledger(sandbox, cell.cloud, stage.state, stage.now)
    if wish.end_ahead:
        assert ends(stage.state) > stage.now + wish.end_ahead / 2, "not renewed"
    return Counter(each.passed[-1] for each in ended if each.killed)
