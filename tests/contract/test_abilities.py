"""What a cloud cannot do is asked of its adapter, and is true."""

from pathlib import Path

import pytest

from providers.base import Capabilities, ProviderError
from providers.sandbox.faults import FaultKind
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
