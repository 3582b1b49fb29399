"""The compiled allocator decides as the plain one."""

import random

import pytest

from broker.backtest.replay import replay_until
from broker.sia.columns import NEVER
from broker.sia.compiling import run
from tests.sia.tiny import build, draw, draw_extras


@pytest.mark.parametrize("seed", range(30))
def test_compiled_equals_plain(seed: int) -> None:
    ends, starts, counters = [], [], []
    for plain in (True, False):
        rng = random.Random(seed)
        state, world = build(draw(rng, draw_extras(rng)))
        run(replay_until, state, world, NEVER, plain=plain)
        ends.append([course.end for course in world.plan])
        starts.append([course.start for course in world.plan])
        counters.append(state.pool[0])
    assert ends[0] == ends[1]
    assert starts[0] == starts[1]
    assert counters[0] == counters[1]
