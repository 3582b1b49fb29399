"""CPU time of the decision alone, against its bar."""

import gc
from time import process_time

import pytest

from broker.guard import guard
from broker.purchase.decide import decide
from tests.bench import crowd
from tests.measures import Take

BAR_S = 1.0


@pytest.mark.bench
def test_a_large_site_is_decided_within_a_second_of_cpu(take: Take) -> None:
    seen, rules = crowd.snapshot(), crowd.policy()
    assert (len(rules.pools), sum(len(view.reservations) for view in seen.scopes)) == (12, 500)
    taken = []
    for _ in range(3):
        gc.collect()
        began = process_time()
        plan = guard(decide(seen, rules), seen, rules)
        taken.append(process_time() - began)
    assert plan.changes
    site = "10,000 queued jobs, 12 pools, 500 reservations, 3 clouds"
    take(f"decide and guard, {site}", min(taken), BAR_S, "s CPU")
