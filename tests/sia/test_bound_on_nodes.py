"""On nodes as well, no job ends later than in STATIC, placed on its tenant's nodes, and the longest reclaim."""

import random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from broker.sia.columns import NEVER
from tests.sia.placed import draw_placed, largest_placed_excess, placed_static_ends, play_placed
from tests.sia.tiny import FORECASTS, draw_extras

RANDOMS = st.randoms(use_true_random=False)
ROUNDING_S = 1e-3
"""What is late waits two microseconds more, until nothing that was rounded can matter; such waits add up."""


def check(rng: random.Random) -> None:
    """Only what is held to the promise counts as an example: not where too few nodes were held for the claims."""
    extras = draw_extras(rng)
    excess = largest_placed_excess(*draw_placed(rng, extras), rng)
    assume(excess is not None)
    for extra in extras:
        event(extra)
    assert excess is not None
    assert excess <= ROUNDING_S


@settings(max_examples=200)
@given(rng=RANDOMS)
def test_no_job_is_later_than_placed_static_and_one_reclaim(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@given(rng=RANDOMS)
def test_no_job_is_later_than_placed_static_and_one_reclaim_deep(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@pytest.mark.parametrize("kind", FORECASTS)
def test_no_job_is_later_on_nodes_in_a_long_random_search(kind: str) -> None:
    """Plain random search: cheaper an example than the property above, so many more of them."""
    counted = 0
    for seed in range(6_000):
        rng = random.Random(f"{kind} {seed}")
        excess = largest_placed_excess(*draw_placed(rng, draw_extras(rng)), rng, kind)
        counted += excess is not None
        assert excess is None or excess <= ROUNDING_S, seed
    assert counted > 4_000


@pytest.mark.parametrize("seed", range(100))
def test_the_static_schedule_is_replayed_exactly(seed: int) -> None:
    """Starts that were decided on with what was known then are those of the schedule with every work known."""
    rng = random.Random(seed)
    instance, size = draw_placed(rng, draw_extras(rng))
    state, _, short = play_placed(instance, size, rng)
    ends = placed_static_ends(instance, size, state)
    for job, course, end in zip(state.jobs, instance.plan, ends, strict=True):
        if not short and job.shadow_start < NEVER and course.cancel_at == NEVER:
            assert job.shadow_start + course.duration == pytest.approx(end, abs=ROUNDING_S)
