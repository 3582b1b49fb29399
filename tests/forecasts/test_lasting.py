"""Durations learned from a history in one go: the same past gives the same bytes and no future is in them."""

import numpy as np
import pytest

from forecasts.history import Arrival, Submitted
from forecasts.lasting import Lasting, learn
from forecasts.quantiles import LEVELS, Array
from forecasts.stored import seal, unseal
from tests.forecasts.test_durations import DAY, some_jobs

NAMES = {f"user-{number}": number for number in range(6)}
NOW = 45 * DAY


@pytest.fixture(scope="module")
def lasting() -> Lasting:
    return learned(some_jobs(11))


def learned(jobs: Submitted, until_s: float = NOW) -> Lasting:
    found = learn(jobs, NAMES, until_s, seed=0)
    assert found is not None
    return found


def written(model: Lasting) -> bytes:
    return seal(model, version=1, seed=model.seed, trained_from="a", trained_until="b")


def medians(model: Lasting, groups: list[int]) -> Array:
    """From what was written, for what was said changes what is known."""
    model = unseal(written(model), Lasting, version=1)
    jobs = [Arrival(id=str(at), now_s=NOW + at, group=group, gpus=8) for at, group in enumerate(groups)]
    said: Array = model.say(jobs)[:, LEVELS.index(0.5)]
    return said


def test_the_same_past_and_seed_give_the_same_bytes(lasting: Lasting) -> None:
    assert written(learned(some_jobs(11))) == written(lasting)
    other = learn(some_jobs(11), NAMES, NOW, seed=1)
    assert other is not None
    assert other.model != lasting.model


def test_each_user_is_foretold_what_his_jobs_did(lasting: Lasting) -> None:
    said = medians(lasting, [lasting.number(f"user-{number}") for number in range(6)])
    assert np.allclose(np.log(said), 5.0 + np.arange(6), atol=0.6)


def test_somebody_new_is_foretold_what_everybody_did(lasting: Lasting) -> None:
    (said,) = medians(lasting, [lasting.number("nobody")])
    assert 5.0 < np.log(said) < 10.0


def test_ends_that_lie_ahead_are_not_known() -> None:
    jobs, now = some_jobs(12), 30 * DAY
    seen = jobs.submit_s <= now
    past = Submitted(**{name: getattr(jobs, name)[seen] for name in Submitted.__struct_fields__})
    later = np.where(past.end_s > now, past.end_s + 9 * DAY, past.end_s)
    other = Submitted(
        submit_s=past.submit_s, start_s=past.start_s, end_s=later, gpus=past.gpus, group=past.group,
        time_limit_s=past.time_limit_s,
    )  # fmt: skip
    assert written(learned(past, now)) == written(learned(other, now))


def test_nothing_is_learned_from_nothing() -> None:
    jobs = some_jobs(1)
    none = Submitted(**{name: getattr(jobs, name)[:0] for name in Submitted.__struct_fields__})
    assert learn(none, {}, NOW, seed=0) is None


def test_a_few_jobs_teach_without_a_model() -> None:
    model = learned(some_jobs(3, count=60))
    assert model.model is None
    assert np.isfinite(medians(model, [0, 5])).all()


def test_a_job_that_is_told_late_is_taken_as_it_comes(lasting: Lasting) -> None:
    model = unseal(written(lasting), Lasting, version=1)
    said = model.say([Arrival(id=str(at), now_s=NOW - at * DAY, group=1, gpus=1) for at in range(40)])
    assert np.isfinite(said).all()
