from datetime import UTC, datetime
from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from broker.model.money import from_micro, to_micro
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import ReleaseRequest, Request, ReserveRequest, ResizeRequest, buys

PLACE = Place(Scope(ProviderName.AWS, "main", "us-east-1"), "us-east-1a", "use1-az1")
RESERVE = ReserveRequest(key="k1", lineage="l1", place=PLACE, machine_type="p5.48xlarge", count=2)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_micro_dollars_survive_the_database(micro: int) -> None:
    assert to_micro(from_micro(micro)) == micro


def test_a_request_comes_back_from_json_as_what_it_was() -> None:
    end = datetime(2026, 3, 4, 14, tzinfo=UTC)
    for request in (RESERVE, msgspec.structs.replace(RESERVE, end=end)):
        assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


def test_only_new_money_is_a_purchase() -> None:
    grow = ResizeRequest(key="k", lineage="l", place=PLACE, reservation_id="cr-1", from_count=1, to_count=2)
    shrink = msgspec.structs.replace(grow, from_count=2, to_count=1)
    release = ReleaseRequest(key="k", lineage="l", place=PLACE, reservation_id="cr-1")
    assert [buys(request) for request in (RESERVE, grow, shrink, release)] == [True, True, False, False]
    assert to_micro(Decimal("1.5")) == 1_500_000
