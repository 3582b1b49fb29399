"""No job ends later than in STATIC + the longest reclaim, whatever was forecast, while capacity covers the claims."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.sia.columns import CREDIT, ENTITLEMENT, ORDER, RESTART, RESTORE, TINY_S
from tests.sia.tiny import draw, draw_extras, largest_excess

RANDOMS = st.randoms(use_true_random=False)


def check(rng: random.Random) -> None:
    excess = largest_excess(draw(rng, draw_extras(rng)), rng)
    assert excess is None or excess <= TINY_S


@settings(max_examples=200)
@given(rng=RANDOMS)
def test_no_job_is_later_than_static_and_one_reclaim(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@given(rng=RANDOMS)
def test_no_job_is_later_than_static_and_one_reclaim_deep(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
def test_no_job_is_later_in_a_long_random_search() -> None:
    """Plain random search: cheaper an example than the property above, so many more of them."""
    counted = 0
    for seed in range(60_000):
        rng = random.Random(seed)
        excess = largest_excess(draw(rng, draw_extras(rng)), rng)
        counted += excess is not None
        assert excess is None or excess <= TINY_S, seed
    assert counted > 20_000


@pytest.mark.parametrize("rule", [ENTITLEMENT, ORDER, RESTORE, RESTART, CREDIT])
def test_each_rule_is_needed(rule: int) -> None:
    """Switched off, late jobs turn up; with it on, the same instances are on time."""
    late, extras = 0, ["elastic"] if rule == CREDIT else []
    for seed in range(*WHERE[rule]):
        excess = largest_excess(draw(random.Random(seed), extras, off=[rule]))
        if excess is not None and excess > TINY_S:
            late += 1
            kept = largest_excess(draw(random.Random(seed), extras))
            assert kept is None or kept <= TINY_S
    assert late > 0


WHERE = {ENTITLEMENT: (0, 300), ORDER: (400, 600), RESTORE: (0, 100), RESTART: (1900, 1950), CREDIT: (0, 300)}
