"""What a cloud cannot do is asked of its adapter, and is true."""

from pathlib import Path

import pytest

from broker.model.offer import Allowance
from broker.model.place import Place
from providers.base import Capabilities, ProviderError, QuotaExceeded
from providers.sandbox.faults import FaultKind
from providers.sandbox.terms import QuotaRule
from tests.contract.cloud import Bench

QUESTIONS = tuple(name for name in Capabilities.__struct_fields__ if name != "max_count")


def cannot(bench: Bench) -> frozenset[str]:
    capabilities = bench.provider.capabilities()
    return frozenset(name for name in QUESTIONS if not getattr(capabilities, name))


def test_what_it_cannot_do_is_what_the_fixture_says(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    missing = cannot(bench)

    with capsys.disabled():
        print(f"\n  {bench.provider.name} cannot: {', '.join(sorted(missing))}", end="")  # noqa: T201
    assert missing == bench.cloud.cannot


def test_no_call_is_made_to_ask(bench: Bench) -> None:
    bench.provider.capabilities()
    bench.provider.scopes()

    assert bench.sandbox.record.calls == []


def test_it_says_who_we_are(bench: Bench) -> None:
    identity = bench.provider.identify(bench.cloud.place.scope)

    assert identity.account
    assert identity.principal


def test_offers_name_the_machine_type_with_its_gpus_and_room(bench: Bench) -> None:
    offers = bench.provider.offers(bench.cloud.place.scope, ("h100",))

    mine = [o for o in offers if (o.place, o.shape.machine_type) == (bench.cloud.place, bench.cloud.machine_type)]
    assert [(o.shape.gpu_model, o.shape.gpus, o.price, o.excluded) for o in mine] == [("h100", 8, None, "")]
    assert all(offer.shape.gpu_model.startswith("h100") for offer in offers)
    assert mine[0].end_settable is bench.provider.capabilities().end_settable


def test_quotas_count_what_is_held(bench: Bench) -> None:
    name, units = bench.cloud.quota
    before = {quota.name: quota for quota in bench.provider.quotas(bench.cloud.place.scope)}
    bench.provider.reserve(bench.reserve_request())

    after = {quota.name: quota for quota in bench.provider.quotas(bench.cloud.place.scope)}

    if name in before:
        assert (before[name].used, after[name].used) == (0, 2 * units)


def test_what_others_draw_on_too_is_one_quota_to_all_of_them(bench: Bench) -> None:
    for number, (name, units, place, machine_type) in enumerate(bench.cloud.shared):
        bench.sandbox.market.set_quota(QuotaRule(provider=place.scope.provider, quota=name, limit=10 * units))
        before, others = _allowance(bench, name, place, machine_type)
        assert (before.per_instance, others.quota, others.left) == (units, before.quota, before.left)

        bench.provider.reserve(bench.reserve_request(f"k{number}", 2, place=place, machine_type=machine_type))

        after, _ = _allowance(bench, name, place, machine_type)
        assert before.left - after.left == 2 * others.per_instance


def _allowance(bench: Bench, name: str, place: Place, machine_type: str) -> tuple[Allowance, Allowance]:
    """What a quota leaves as the cloud's own type sees it, and as another does."""
    sought = ((bench.cloud.place, bench.cloud.machine_type), (place, machine_type))
    offers = {
        (offer.place, offer.shape.machine_type): offer
        for scope in {bench.cloud.place.scope, place.scope}
        for offer in bench.provider.offers(scope)
    }
    one, other = (
        next(a for a in offers[key].allowances if a.quota.lower().endswith(f"/{name.lower()}")) for key in sought
    )
    return one, other


def test_more_than_a_shared_quota_leaves_is_refused_there(bench: Bench) -> None:
    """What makes planning within it worth while."""
    for number, (name, units, place, machine_type) in enumerate(bench.cloud.shared):
        bench.sandbox.market.set_quota(QuotaRule(provider=place.scope.provider, quota=name, limit=2 * units))
        bench.provider.reserve(bench.reserve_request(f"{number}a", 1, place=place, machine_type=machine_type))
        with pytest.raises(QuotaExceeded):
            bench.provider.reserve(bench.reserve_request(f"{number}b", 2))


def test_how_to_use_it_names_it_and_calls_nothing(bench: Bench) -> None:
    bought = bench.provider.reserve(bench.reserve_request())
    calls = len(bench.sandbox.record.calls)

    lines = bench.provider.consumption(bought)

    assert len(bench.sandbox.record.calls) == calls
    text = "\n".join(value for _, value in lines)
    assert Path(bought.id).name in text
    assert bench.cloud.machine_type in text
    assert "verify" in dict(lines)


@pytest.mark.parametrize("method", ["offers", "reservations", "quotas", "identify"])
def test_every_failure_of_a_read_is_a_provider_error(bench: Bench, method: str) -> None:
    bench.fault(FaultKind.MALFORMED, "*", times=None)

    try:
        getattr(bench.provider, method)(bench.cloud.place.scope)
    except ProviderError as error:
        assert error.operation
