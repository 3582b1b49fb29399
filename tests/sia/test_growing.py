"""An elastic job that starts on more than it asked for must be able to pay for giving it back."""

import random

import pytest

from broker.backtest.replay import Course
from broker.sia.columns import CREDIT, TINY_S, Job
from broker.sia.state import Rules
from tests.sia.tiny import Instance, draw, largest_excess


def resumed(off: frozenset[int] = frozenset()) -> Instance:
    """At 20 the third job starts with 4 s of service and no credit: it was called back at 14, and was due at 16. Were
    it to grow then, the fourth would have its slot called back at 21, which costs a drain of 4 s and a restore of 1 s.
    """
    rigid = Job(gpus=1, most=1, reclaim_s=4.0, restore_s=1.0)
    wide = Job(gpus=2, most=2, lendable=0, reclaim_s=4.0, restore_s=1.0)
    grows = Job(gpus=1, most=2, speed_power=0.8, reclaim_s=4.0, restore_s=1.0)
    last = Job(gpus=1, most=1, lendable=0, reclaim_s=4.0, restore_s=1.0)
    plan = [Course(1.0, 13.0), Course(4.0, 2.0), Course(9.0, 13.0), Course(21.0, 5.0)]
    rules = Rules(reclaim_s=4.0, restore_s=1.0, off=off)
    return Instance([2], [rigid, wide, grows, last], plan, [(0.0, 2)], rules)


def test_one_that_resumes_without_credit_does_not_grow() -> None:
    excess = largest_excess(resumed())
    assert excess is not None
    assert excess <= TINY_S


def test_without_credit_that_would_be_too_late() -> None:
    excess = largest_excess(resumed(frozenset({CREDIT})))
    assert excess is not None
    assert excess == pytest.approx(2 - 2**0.8)  # a pause of 5 s, less what a second on two slots gained, over 4 s


def test_found_by_random_search() -> None:
    rng = random.Random(1262877)
    extras = {"elastic"} | {name for name in ("cancels", "moves", "firm") if rng.randint(0, 3) == 0}
    excess = largest_excess(draw(rng, extras), rng, "changing")
    assert excess is not None
    assert excess <= TINY_S
