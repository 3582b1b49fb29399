"""On nodes as well, no job ends later than in STATIC, placed on its tenant's nodes, and the longest reclaim."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.sia.columns import CREDIT, ENTITLEMENT, HOME, NEVER, ORDER, RESTART, RESTORE
from tests.sia.placed import draw_placed, largest_placed_excess, placed_static_ends, play_placed
from tests.sia.tiny import draw_extras

RANDOMS = st.randoms(use_true_random=False)
ROUNDING_S = 1e-3
"""What is late waits two microseconds more, until nothing that was rounded can matter; such waits add up."""


def check(rng: random.Random) -> bool:
    instance, size = draw_placed(rng, draw_extras(rng))
    excess = largest_placed_excess(instance, size, rng)
    assert excess is None or excess <= ROUNDING_S
    return excess is not None


@settings(max_examples=200)
@given(rng=RANDOMS)
def test_no_job_is_later_than_placed_static_and_one_reclaim(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@given(rng=RANDOMS)
def test_no_job_is_later_than_placed_static_and_one_reclaim_deep(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
def test_no_job_is_later_on_nodes_in_a_long_random_search() -> None:
    """Plain random search: cheaper an example than the property above, so many more of them."""
    assert sum(check(random.Random(seed)) for seed in range(30_000)) > 20_000


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


@pytest.mark.parametrize("rule", [ENTITLEMENT, ORDER, RESTORE, RESTART, CREDIT, HOME])
def test_each_rule_is_needed_on_nodes(rule: int) -> None:
    """Switched off, late jobs turn up; with it on, the same instances are on time."""
    late, extras = 0, ["elastic"] if rule == CREDIT else []
    for seed in range(*WHERE[rule]):
        excess = largest_placed_excess(*draw_placed(random.Random(seed), extras, off=[rule]))
        if excess is not None and excess > ROUNDING_S:
            late += 1
            kept = largest_placed_excess(*draw_placed(random.Random(seed), extras))
            assert kept is None or kept <= ROUNDING_S
    assert late > 0


WHERE = {
    ENTITLEMENT: (0, 100),
    ORDER: (0, 60),
    RESTORE: (0, 60),
    RESTART: (100, 200),
    CREDIT: (100, 200),
    HOME: (700, 800),
}
