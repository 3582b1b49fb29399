"""What was read of entitlements, put beside what the configuration states."""

from broker.model.policy import Tenant
from broker.model.snapshot import EntitlementView
from broker.schedule.promises import with_read
from tests.schedule.cluster import policy, tenant


def view(pool: str = "h100", **gpus: int) -> EntitlementView:
    return EntitlementView(source="s", pool=pool, gpus=tuple(gpus.items()))


def test_what_is_stated_wins_pool_by_pool_and_what_is_read_adds_up() -> None:
    given = policy(tenant("nlp", 0, lends=False), Tenant(name="idle"), pools=("h100", "l4"))
    made = with_read(given, [view(nlp=16, vision=8), view(vision=4), view("l4", nlp=2)])
    promised = {each.name: dict(each.entitlements) for each in made.tenants}
    assert promised == {"nlp": {"h100": 0, "l4": 2}, "idle": {}, "vision": {"h100": 12}}
    assert not made.tenants[0].lends
    assert made.pools == given.pools


def test_without_sources_nothing_changes() -> None:
    given = policy(tenant("nlp", 8))
    assert with_read(given, ()) == given
