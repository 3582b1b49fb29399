"""Seeded kills of real processes between the first intent and the last outcome, while jobs and faults change."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from broker.apply.boundary import Boundary
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from tests.crash.cell import Stage, get_well
from tests.crash.clouds import CLOUDS, Cloud
from tests.crash.process import Ended, in_process, killed_after
from tests.crash.steps import run
from tests.crash.truth import check_ledger, held_in_truth

KILLS = 110
"""In each cloud."""

MOST = 8
INSIDE = (
    Boundary.AFTER_INTENT,
    Boundary.AFTER_CALL,
    Boundary.BEFORE_OUTCOME,
    Boundary.BEFORE_SETTLED,
    Boundary.AFTER_LOOK,
    Boundary.BEFORE_REPEAT,
    Boundary.AFTER_REPEAT,
)
_FAULTS = (
    FaultKind.REPLY_LOST,
    FaultKind.RESET_BEFORE,
    FaultKind.RESET_AFTER,
    FaultKind.HIDDEN,
    FaultKind.MALFORMED,
    FaultKind.ERROR_AFTER,
)


class History:
    """Days in the life of a broker that is killed all the time. The same seed gives the same wishes and faults."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.kills = 0
        self.killed_at: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._want = 0

    def go_on_until(self, kills: int) -> None:
        for _ in range(40 * kills):
            if self.kills >= kills:
                return
            self._one()
        raise AssertionError(f"only {self.kills} kills")

    def settle_down(self) -> int:
        """Get well and let time pass until nothing is wanted; what is wanted at last."""
        get_well(self.stage)
        for _ in range(4):
            self.stage.past_the_window()
            self.stage.whole_run(self._want)
        return self._want

    def _one(self) -> None:
        draw = self._draw
        self._want = draw.randint(0, MOST) if draw.random() < 0.7 else self._want
        self.stage._world["grow"] = draw.random() < 0.6
        get_well(self.stage)
        self._go_wrong()
        before = self._held()
        ended = self._killed(draw.random() < 0.5)
        self.kills += ended.killed
        self.killed_at.update([ended.passed[-1].value] if ended.killed else [])
        assert self._held() <= max(before, self._want), "bought what was held or under way already"
        self.stage.sandbox.advance(timedelta(seconds=draw.choice((1, 30, 120, 400, 4000))))

    def _held(self) -> int:
        return sum(held_in_truth(self.stage.sandbox, self.stage.cloud).values())

    def _go_wrong(self) -> None:
        draw, cloud = self._draw, self.stage.cloud
        operation = draw.choice((cloud.reserve, cloud.resize, cloud.release))
        if draw.random() < 0.5:
            kind = draw.choice(_FAULTS)
            self.stage.sandbox.fault(kind, operation, cloud.name, delay_s=draw.uniform(0, 240), status=500)
        elif draw.random() < 0.3:
            with self.stage.sandbox.world.lock:
                self.stage.sandbox.market.set_capacity(PoolRule(provider=cloud.name, capacity=draw.randint(0, MOST)))

    def _killed(self, from_outside: bool) -> Ended:
        want, draw = self._want, self._draw
        self.stage.forked(want, lambda _: None)
        if from_outside:
            return killed_after(
                lambda c: run(self.stage.forked(want, c)),
                first=Boundary.AFTER_INTENT,
                last=Boundary.AFTER_OUTCOME,
                wait_s=draw.uniform(0, 0.02),
            )
        return in_process(lambda c: run(self.stage.forked(want, c)), die_at=draw.choice(INSIDE))


def live(sandbox: Sandbox, cloud: Cloud, folder: Path, *, kills: int, seed: int) -> Counter[str]:
    """One history, held to the truth at its end; where it was killed how often, and `kills` in all."""
    stage = Stage(sandbox, cloud, folder / "state.db")
    history = History(stage, seed)
    history.go_on_until(kills)
    want = history.settle_down()
    assert sum(held_in_truth(sandbox, cloud).values()) == want, "duplicate, leak or loss"
    check_ledger(sandbox, cloud, stage.state, stage.now)
    return history.killed_at + Counter(kills=history.kills)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.name)
def test_hundreds_of_kills(cloud: Cloud, seed: int, sandbox: Sandbox, tmp_path: Path, tally: Counter[str]) -> None:
    tally.update(live(sandbox, cloud, tmp_path, kills=KILLS // 10, seed=seed))
