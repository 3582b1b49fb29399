"""At the size of a large site, the run after a purchase: what is in doubt is not bought again."""

import msgspec
import pytest

from broker.model.plan import Reserve, Resize
from broker.purchase.decide import decide
from tests.bench import crowd
from tests.measures import Take
from tests.purchase.test_promises import in_doubt_intent, purchases
from tests.purchase.worlds import added

BAR_PERCENT = 0.1


@pytest.mark.bench
def test_a_second_look_buys_next_to_nothing(take: Take) -> None:
    """Greedy packing may move a job or two; each is bought for once at most."""
    seen, rules = crowd.snapshot(), crowd.policy()
    first = purchases(decide(seen, rules))
    after = msgspec.structs.replace(seen, intents=tuple(in_doubt_intent(action) for action in first))
    second = purchases(decide(after, rules))
    share = _instances(second) / _instances(first)
    take("bought again while the first purchase is in doubt", 100 * share, BAR_PERCENT, "% of its instances")
    assert not {job for one in first for job in one.jobs} & {job for one in second for job in one.jobs}


def _instances(bought: list[Reserve | Resize]) -> int:
    return sum(added(action) for action in bought)
