"""Names and descriptions carry owner and tags there and back, whatever the tags contain."""

import re

from hypothesis import given
from hypothesis import strategies as st

from broker.model.reservation import Owner
from providers.gcp.naming import describe, name_of, owner_of, request_id_of, reservation_id, tags_in
from tests.providers.gcp.conftest import reserve_request, resize_request

TAGS = st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=20)), max_size=4).map(tuple)


@given(tags=TAGS)
def test_a_description_is_read_back_as_it_was_written(tags: tuple[tuple[str, str], ...]) -> None:
    text = describe("0123456789ab", "k1", tags)

    assert tags_in(text) == tags
    assert owner_of("a-name-of-their-own", text) == Owner("0123456789ab", "k1")
    assert text.isprintable()


@given(key=st.from_regex(r"[0-9a-f]{24}", fullmatch=True))
def test_a_name_says_whose_it_is_and_is_allowed(key: str) -> None:
    name = name_of(reserve_request(key))

    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63
    assert owner_of(name, "") == Owner("0123456789ab", key)


def test_what_is_not_ours_is_nobody_s() -> None:
    for name in (
        "theirs",
        "broker-0123456789ab",
        "broker-0123456789AB-k1",
        "my-broker-0123456789ab-k1",
        "broker-0123456789ab-shared",
    ):
        assert owner_of(name, "a description = with signs") is None
    assert tags_in("lineage=1 key=2 team=x") == ()


def test_request_ids_tell_decisions_apart() -> None:
    ids = {request_id_of(reserve_request(key)) for key in ("k1", "k2", "k1")}

    assert len(ids) == 2
    assert request_id_of(reserve_request("k1")) in ids
    assert request_id_of(resize_request(reservation_id("z", "n"), 1, 2, key="k9")) not in ids
