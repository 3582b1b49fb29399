"""No job ends later than in STATIC + the longest reclaim, whatever was forecast, while capacity covers the claims."""

import random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from broker.sia.columns import TINY_S
from tests.sia.tiny import FORECASTS, draw, draw_extras, largest_excess

RANDOMS = st.randoms(use_true_random=False)


def check(rng: random.Random) -> None:
    """Only what is held to the promise counts as an example: not where capacity did not cover the claims."""
    extras = draw_extras(rng)
    excess = largest_excess(draw(rng, extras), rng)
    assume(excess is not None)
    for extra in extras:
        event(extra)
    assert excess is not None
    assert excess <= TINY_S


@settings(max_examples=200)
@given(rng=RANDOMS)
def test_no_job_is_later_than_static_and_one_reclaim(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@given(rng=RANDOMS)
def test_no_job_is_later_than_static_and_one_reclaim_deep(rng: random.Random) -> None:
    check(rng)


@pytest.mark.deep
@pytest.mark.parametrize("kind", FORECASTS)
def test_no_job_is_later_in_a_long_random_search(kind: str) -> None:
    """Plain random search: cheaper an example than the property above, so many more of them."""
    counted = 0
    for seed in range(20_000):
        rng = random.Random(f"{kind} {seed}")
        excess = largest_excess(draw(rng, draw_extras(rng)), rng, kind)
        counted += excess is not None
        assert excess is None or excess <= TINY_S, seed
    assert counted > 10_000
